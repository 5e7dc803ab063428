//! `mithras survival cox`.

use super::input::{Columns, Input, all, choice};
use crate::show::{print_messages, result};
use anyhow::Result;
use outcome::{CoxPlan, Limits, Ties, TimeTransform, cox};

/// Fit a Cox model
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    input: Input,
    /// Covariate columns
    #[arg(long, value_name = "COLUMNS", required = true)]
    covariates: Vec<Columns>,
    /// Tied events
    #[arg(long, default_value = "efron", value_parser = choice::<Ties>(Ties::WORDS))]
    ties: Ties,
    /// Confidence of the intervals
    #[arg(long, default_value_t = 0.95)]
    level: f64,
    /// Limits of hazard ratios: from standard errors, or by the profile likelihood (slower, better
    /// with few events). Those of an estimate that may be infinite are always by the profile
    #[arg(long, default_value = "wald", value_parser = choice::<Limits>(Limits::WORDS))]
    limits: Limits,
    /// Time scale of the proportional-hazards test
    #[arg(long, default_value = "km", value_parser = choice::<TimeTransform>(TimeTransform::WORDS))]
    transform: TimeTransform,
    /// Add the cumulative baseline hazard to the JSON
    #[arg(long)]
    baseline: bool,
    /// Newton steps at most
    #[arg(long, default_value_t = 20)]
    max_iterations: usize,
}

pub fn run(args: &Args) -> Result<()> {
    let plan = CoxPlan {
        roles: args.input.roles(&all(&args.covariates)),
        ties: args.ties,
        level: args.level,
        transform: args.transform,
        baseline: args.baseline,
        max_iterations: args.max_iterations,
        limits: args.limits,
    };
    let model = cox(&args.input.table()?, &plan)?;
    print_messages("note", &model.notes);
    print_messages("warning", &model.warnings);
    result(args.input.json, &model)
}
