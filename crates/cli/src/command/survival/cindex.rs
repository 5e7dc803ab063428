//! `mithras survival cindex`.

use super::input::{Columns, Input, all, choice};
use crate::show::{print_messages, result};
use anyhow::Result;
use outcome::{CIndexPlan, Ties, c_index};

/// Harrell's C-index
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    input: Input,
    /// The risk (one numeric column, higher = earlier event); several columns: a Cox model's risk
    #[arg(long, value_name = "COLUMNS", required = true)]
    covariates: Vec<Columns>,
    /// Fit a Cox model and judge its risk, even with one column
    #[arg(long)]
    fit: bool,
    /// Higher values mean a later event (a single column only)
    #[arg(long)]
    protective: bool,
    /// Tied events of the Cox model
    #[arg(long, default_value = "efron", value_parser = choice::<Ties>(Ties::WORDS))]
    ties: Ties,
    /// Bootstrap replicates with risks held fixed (the paper's protocol: 1000); 0 for none
    #[arg(long, default_value_t = 0)]
    bootstrap: usize,
    /// Seed of the bootstrap
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Confidence of the intervals
    #[arg(long, default_value_t = 0.95)]
    level: f64,
}

pub fn run(args: &Args) -> Result<()> {
    let plan = CIndexPlan {
        roles: args.input.roles(&all(&args.covariates)),
        fit: args.fit,
        protective: args.protective,
        ties: args.ties,
        replicates: args.bootstrap,
        seed: args.seed,
        level: args.level,
    };
    let c = c_index(&args.input.table()?, &plan)?;
    print_messages("note", &c.notes);
    print_messages("warning", &c.warnings);
    result(args.input.json, &c)
}
