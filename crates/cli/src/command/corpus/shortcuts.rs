//! `mithras corpus shortcuts`.

use crops::Corpus;
use regions::Dataset;
use regions::shortcuts::{check, of_corpus, of_regions};
use std::path::PathBuf;
use std::process::ExitCode;

/// Check whether anything but morphology separates figures from the others
#[derive(clap::Args)]
pub struct Args {
    /// Dataset of crops or regions
    dataset: PathBuf,
    /// End with exit code 1 where anything warns
    #[arg(long)]
    strict: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let items = if Dataset::is_dataset(&args.dataset) {
        of_regions(&Dataset::open(&args.dataset)?)?
    } else {
        of_corpus(&Corpus::open(&args.dataset)?)?
    };
    let report = check(&items);
    let warnings = report.warnings();
    crate::show::result(args.json, &report)?;
    crate::show::print_messages("warning", &warnings);
    Ok(if args.strict && !warnings.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
