//! `mithras survival cindex`.

use super::output::{print_json, say, show};
use super::{Input, Ties};
use anyhow::Result;
use outcome::{CIndexPlan, c_index};

/// Harrell's C-index
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    input: Input,
    /// The risk (one numeric column, higher = earlier event); several columns: a Cox model's risk
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',', required = true)]
    covariates: Vec<String>,
    /// Fit a Cox model and judge its risk, even with one column
    #[arg(long)]
    fit: bool,
    /// Higher values mean a later event (a single column only)
    #[arg(long)]
    protective: bool,
    /// Tied events of the Cox model
    #[arg(long, value_enum, default_value = "efron")]
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
        roles: args.input.roles(&args.covariates),
        fit: args.fit,
        protective: args.protective,
        ties: args.ties.into(),
        replicates: args.bootstrap,
        seed: args.seed,
        level: args.level,
    };
    let c = c_index(&args.input.table()?, &plan)?;
    say("note", &c.notes);
    say("warning", &c.warnings);
    if args.input.json {
        return print_json(&c);
    }
    let se = c.se.unwrap_or(f64::NAN);
    println!(
        "C-index {} ({} to {}, se {})",
        show(c.c_index),
        show(c.lower),
        show(c.upper),
        show(se)
    );
    for (unit, b) in [("rows", &c.bootstrap.rows), ("clusters", &c.bootstrap.clusters)] {
        let Some(b) = b else { continue };
        println!(
            "bootstrap of {unit}, {} replicates, risks fixed: {} to {}",
            b.defined,
            show(b.lower),
            show(b.upper)
        );
    }
    let p = &c.pairs;
    println!(
        "{} concordant, {} discordant, {} tied risk (count half); left out: {} pairs of events \
         tied in time, {} tied in both",
        p.concordant, p.discordant, p.tied_risk, p.tied_time, p.tied_both
    );
    Ok(())
}
