//! `mithras survival`: outcome statistics of a table, and the whole study from counts to report.

mod cindex;
mod cox;
mod grade;
mod input;
mod km;
mod logrank;
mod lrt;
mod study;

use anyhow::Result;
use clap::{Args as ClapArgs, Subcommand};

/// Survival statistics equal to R's package survival
#[derive(ClapArgs)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Cox's proportional-hazards model
    Cox(cox::Args),
    /// Kaplan-Meier curves, one per group
    Km(km::Args),
    /// Log-rank test between groups
    Logrank(logrank::Args),
    /// Harrell's C-index of a risk, with its pair counts
    Cindex(cindex::Args),
    /// Likelihood-ratio test between nested Cox models
    Lrt(lrt::Args),
    /// Counts of a detection run + clinical table -> the whole analysis as a report
    Study(study::Args),
    /// Mitotic scores of a grading scheme for the counts of a detection run
    Grade(grade::Args),
}

pub fn run(args: Args) -> Result<()> {
    match args.command {
        Command::Cox(a) => cox::run(&a),
        Command::Km(a) => km::run(&a),
        Command::Logrank(a) => logrank::run(&a),
        Command::Cindex(a) => cindex::run(&a),
        Command::Lrt(a) => lrt::run(&a),
        Command::Study(a) => study::run(&a),
        Command::Grade(a) => grade::run(&a),
    }
}
