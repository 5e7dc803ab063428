//! `mithras survival lrt`.

use super::input::{Columns, Input, all, choice};
use crate::show::{print_messages, result};
use anyhow::Result;
use outcome::{LrtPlan, Ties, likelihood_ratio};

/// Likelihood-ratio test
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    input: Input,
    /// Covariates: of the reduced model with --add, else those tested beyond --base
    #[arg(long, value_name = "COLUMNS", required = true)]
    covariates: Vec<Columns>,
    /// Covariates of the reduced model (default: none), e.g. age,sex
    #[arg(
        long,
        visible_aliases = ["reduced", "null"],
        value_name = "COLUMNS",
        conflicts_with = "add"
    )]
    base: Vec<Columns>,
    /// Covariates added to --covariates, e.g. the count
    #[arg(long, visible_alias = "added", value_name = "COLUMNS")]
    add: Vec<Columns>,
    /// Tied events
    #[arg(long, default_value = "efron", value_parser = choice::<Ties>(Ties::WORDS))]
    ties: Ties,
}

pub fn run(args: &Args) -> Result<()> {
    let (reduced, added) = if args.add.is_empty() {
        (&args.base, &args.covariates)
    } else {
        (&args.covariates, &args.add)
    };
    let roles = args.input.roles(&all(reduced));
    let plan = LrtPlan { roles, added: all(added), ties: args.ties };
    let test = likelihood_ratio(&args.input.table()?, &plan)?;
    print_messages("note", &test.notes);
    print_messages("warning", &test.warnings);
    result(args.input.json, &test)
}
