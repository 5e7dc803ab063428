//! `mithras survival cox`.

use super::{Input, Ties};
use crate::show::{result, say};
use anyhow::Result;
use clap::ValueEnum;
use outcome::{CoxPlan, TimeTransform, cox};

/// Fit a Cox model
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    input: Input,
    /// Covariate columns
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',', required = true)]
    covariates: Vec<String>,
    /// Tied events
    #[arg(long, value_enum, default_value = "efron")]
    ties: Ties,
    /// Confidence of the intervals
    #[arg(long, default_value_t = 0.95)]
    level: f64,
    /// Time scale of the proportional-hazards test
    #[arg(long, value_enum, default_value = "km")]
    transform: Transform,
    /// Add the cumulative baseline hazard to the JSON
    #[arg(long)]
    baseline: bool,
    /// Newton steps at most
    #[arg(long, default_value_t = 20)]
    max_iterations: usize,
}

#[derive(ValueEnum, Clone, Copy)]
enum Transform {
    Km,
    Identity,
    Rank,
    Log,
}

impl From<Transform> for TimeTransform {
    fn from(t: Transform) -> Self {
        match t {
            Transform::Km => Self::Km,
            Transform::Identity => Self::Identity,
            Transform::Rank => Self::Rank,
            Transform::Log => Self::Log,
        }
    }
}

pub fn run(args: &Args) -> Result<()> {
    let plan = CoxPlan {
        roles: args.input.roles(&args.covariates),
        ties: args.ties.into(),
        level: args.level,
        transform: args.transform.into(),
        baseline: args.baseline,
        max_iterations: args.max_iterations,
    };
    let model = cox(&args.input.table()?, &plan)?;
    say("note", &model.notes);
    say("warning", &model.warnings);
    result(args.input.json, &model)
}
