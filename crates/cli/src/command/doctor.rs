//! `mithras doctor`: what this machine has, how fast it is, what to install.

use crate::show;
use anyhow::Result;
use infer::EngineOptions;
use mithras::doctor::examine;
use std::path::PathBuf;

/// Print the engines on this machine, their speed on one window, and what to install.
#[derive(clap::Args)]
pub struct Args {
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Model package to time: a folder, or the name of a bundled one.
    #[arg(long)]
    model: Option<PathBuf>,
    /// Runs per network; the median is printed. 0 leaves the timing out.
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// Threads of an engine; 0 means every core.
    #[arg(long, default_value_t = 0)]
    threads: usize,
}

pub fn run(args: Args) -> Result<()> {
    let options = EngineOptions { threads: args.threads, ..super::engine::options() };
    let report = examine(args.model.as_deref(), args.runs, &options, cfg!(feature = "train"));
    show::result(args.json, &report)
}
