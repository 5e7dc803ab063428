//! `mithras survival logrank`.

use super::input::{Columns, Input, all};
use crate::show::{print_messages, result};
use anyhow::Result;
use outcome::{Cut, LogRankPlan, log_rank};

/// Log-rank test
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    input: Input,
    /// Columns whose combinations are the groups compared (also --group)
    #[arg(long, visible_alias = "group", value_name = "COLUMNS", required = true)]
    covariates: Vec<Columns>,
    /// Make two groups of one numeric covariate: a number (<= against >), or "median"
    #[arg(long, value_name = "NUMBER|median", value_parser = cut)]
    cut: Option<Cut>,
    /// Weight event times by S(t)^rho: 0 is the log-rank test, 1 is Peto-Peto's
    #[arg(long, default_value_t = 0.0)]
    rho: f64,
}

fn cut(text: &str) -> Result<Cut, String> {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(Cut::At(value)),
        _ if text == "median" => Ok(Cut::Median),
        _ => Err("neither a number nor \"median\"".into()),
    }
}

pub fn run(args: &Args) -> Result<()> {
    let roles = args.input.roles(&all(&args.covariates));
    let plan = LogRankPlan { roles, cut: args.cut, rho: args.rho };
    let test = log_rank(&args.input.table()?, &plan)?;
    print_messages("note", &test.notes);
    print_messages("warning", &test.warnings);
    result(args.input.json, &test)
}
