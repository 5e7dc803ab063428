//! `mithras survival cox`.

use super::output::{print_columns, print_json, say, show, show_p, show_test};
use super::{Input, Ties};
use anyhow::Result;
use clap::ValueEnum;
use outcome::{CoxModel, CoxPlan, TimeTransform, cox};

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
    if args.input.json {
        return print_json(&model);
    }
    print(&model);
    Ok(())
}

fn print(model: &CoxModel) {
    let (n, events) = (model.summary.n, model.summary.events);
    println!("Cox model, {n} rows, {events} events, {} ties", model.ties);
    println!();
    let se = if model.robust { "robust se" } else { "se" };
    let head = ["covariate", "beta", "HR", "lower", "upper", se, "z", "p"];
    let mut rows = vec![head.map(String::from).to_vec()];
    for c in &model.coefficients {
        let (Some(r), Some(beta), Some(se), Some(z), Some(p)) = (c.ratio(), c.beta, c.se, c.z, c.p)
        else {
            rows.push(vec![c.name.clone(), "left out".into()]);
            continue;
        };
        let mut row = vec![c.name.clone()];
        let ratio = [r.hazard_ratio, r.hazard_ratio_lower, r.hazard_ratio_upper];
        row.extend([beta, ratio[0], ratio[1], ratio[2], se, z].map(show));
        row.push(show_p(p));
        rows.push(row);
    }
    print_columns(&rows);
    println!();
    println!("log-likelihood {} -> {}", show(model.loglik_null), show(model.loglik));
    let mut tests =
        vec![show_test("likelihood ratio", &model.lrt), show_test("score", &model.score)];
    tests.extend(model.wald.as_ref().map(|t| show_test("Wald", t)));
    tests.extend(model.robust_score.as_ref().map(|t| show_test("robust score", t)));
    if let Some(z) = &model.proportional_hazards {
        let named = |name: &str| format!("proportional: {name}");
        tests.extend(z.terms.iter().map(|t| show_test(&named(&t.name), &t.test)));
        tests.push(show_test(&named("all"), &z.global));
    }
    print_columns(&tests);
    if let Some(c) = &model.concordance {
        println!(
            "C-index {} (se {}): {} concordant, {} discordant, {} tied risk (half), {} tied time",
            show(c.c_index),
            show(c.se.unwrap_or(f64::NAN)),
            c.pairs.concordant,
            c.pairs.discordant,
            c.pairs.tied_risk,
            c.pairs.tied_time + c.pairs.tied_both
        );
    }
    if let Some(why) = &model.no_concordance {
        println!("C-index: {why}");
    }
}
