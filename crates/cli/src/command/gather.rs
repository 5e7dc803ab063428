//! `mithras gather`: the tables over runs, made of the slides' folders.

use super::detect::print_result;
use std::path::PathBuf;
use std::process::ExitCode;

/// Rebuild counts.csv, run.json and summary.html of runs of `detect`
#[derive(clap::Args)]
pub struct Args {
    /// Folders of `mithras detect`
    #[arg(required = true, value_name = "OUT")]
    outs: Vec<PathBuf>,
    /// Folder for the tables; made if missing [default: the first OUT]
    #[arg(long, alias = "out", value_name = "DIR")]
    into: Option<PathBuf>,
    /// Table of the slides with their cases: the column `slide` (file or its name), `case` or `patient`, and any
    /// others. The columns replace those that the slides had
    #[arg(long, value_name = "FILE")]
    list: Option<PathBuf>,
    /// Print the content of run.json
    #[arg(long)]
    json: bool,
}

pub fn run(a: Args) -> anyhow::Result<ExitCode> {
    if let Some(list) = &a.list {
        crate::show::print_messages("note", &mithras::report::assign(&a.outs, list)?);
    }
    let run = mithras::report::gather(&a.outs, a.into.as_deref())?;
    print_result(a.into.as_ref().unwrap_or(&a.outs[0]), &run, a.json)?;
    let open = run.failed + run.without_result.len();
    Ok(super::exit(open, run.done + open))
}
