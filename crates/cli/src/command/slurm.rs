//! `mithras slurm`: detection on a cluster.

use super::detect::print_result;
use crate::progress::LogArgs;
use detect::CancelToken;
use slurm::{Plan, run as submit, write};
use std::path::PathBuf;
use std::process::ExitCode;

/// Run detect on a list by a Slurm array job: submit, watch, resubmit what failed, gather
#[derive(clap::Args)]
pub struct Args {
    /// List of slides, as for detect
    #[arg(long, value_name = "CSV")]
    list: PathBuf,
    /// Folder for the results, which all nodes see; job file and logs go into its folder .slurm
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Shards, a task each; at most one per slide
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    shards: u32,
    /// A folder for each shard, OUT/part-K, with the tables in OUT: for many thousand slides
    #[arg(long)]
    split: bool,
    /// Tasks at once
    #[arg(long, value_name = "N")]
    at_once: Option<u32>,
    /// A GPU for each task
    #[arg(long)]
    gpu: bool,
    /// Further option of sbatch, such as --sbatch=--partition=long
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true)]
    sbatch: Vec<String>,
    /// Write the job file alone
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    log: LogArgs,
    /// Further flags of detect
    #[arg(last = true, value_name = "FLAGS")]
    detect: Vec<String>,
}

pub fn run(a: Args, program: clap::Command) -> anyhow::Result<ExitCode> {
    // A wrong flag is refused here, not by every task.
    let words = ["mithras", "detect", "--out=.", "--list=."].map(String::from);
    program.try_get_matches_from(words.iter().chain(&a.detect))?;
    let program = std::env::current_exe()?;
    let Args { list, out, shards, split, at_once, gpu, sbatch: options, detect, .. } = a;
    let plan = Plan { list, out, shards, split, at_once, gpu, options, program, detect };
    if a.dry_run {
        outln!("{}", write(&plan)?.display());
        return Ok(ExitCode::SUCCESS);
    }
    let cancel = CancelToken::new();
    crate::interrupt::cancels(&cancel)?;
    let ended = submit(&plan, &mut *a.log.listener(true), &cancel)?;
    print_result(&plan.out, &ended.run, false)?;
    Ok(super::exit(ended.left, ended.slides))
}
