//! `mithras survival km`.

use super::input::{Columns, Input, all};
use crate::show::{print_messages, result};
use anyhow::Result;
use outcome::{CurvesPlan, kaplan_meier};

/// Kaplan-Meier curves
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    input: Input,
    /// Columns whose combinations are groups, one curve each (also --group)
    #[arg(long, visible_alias = "group", value_name = "COLUMNS")]
    covariates: Vec<Columns>,
    /// Scale of the intervals
    #[arg(long, visible_alias = "conf-type", default_value = "log", value_parser = ["plain", "log", "log-log", "loglog"])]
    interval: String,
    /// Confidence of the intervals
    #[arg(long, default_value_t = 0.95)]
    level: f64,
    /// Times at which to report the curves
    #[arg(long, value_name = "TIMES", value_delimiter = ',')]
    at: Vec<f64>,
}

pub fn run(args: &Args) -> Result<()> {
    let mut roles = args.input.roles(&[]);
    roles.groups = all(&args.covariates);
    roles.groups.append(&mut roles.strata);
    let plan = CurvesPlan {
        roles,
        interval: args.interval.parse().map_err(anyhow::Error::msg)?,
        level: args.level,
        at: args.at.clone(),
    };
    let curves = kaplan_meier(&args.input.table()?, &plan)?;
    print_messages("note", &curves.notes);
    result(args.input.json, &curves)
}
