//! `mithras survival lrt`.

use super::frame::{Frame, Roles};
use super::output::{
    chi2, coefficients, diagnoses, few_events, print_columns, print_json, say, show, show_test,
};
use super::{Input, Ties};
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use stats::survival::ChiSquared;
use stats::survival::cox::{CoxFit, Options, fit, likelihood_ratio};

/// Likelihood-ratio test
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    input: Input,
    /// Covariates: of the reduced model with --add, else those tested beyond --base
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',', required = true)]
    covariates: Vec<String>,
    /// Covariates of the reduced model (default: none), e.g. age,sex
    #[arg(
        long,
        visible_aliases = ["reduced", "null"],
        value_name = "COLUMNS",
        value_delimiter = ',',
        conflicts_with = "add"
    )]
    base: Vec<String>,
    /// Covariates added to --covariates, e.g. the count
    #[arg(long, visible_alias = "added", value_name = "COLUMNS", value_delimiter = ',')]
    add: Vec<String>,
    /// Tied events
    #[arg(long, value_enum, default_value = "efron")]
    ties: Ties,
}

pub fn run(args: &Args) -> Result<()> {
    let reduced: Vec<String> =
        if args.add.is_empty() { args.base.clone() } else { args.covariates.clone() };
    let more = if args.add.is_empty() { &args.covariates } else { &args.add };
    let mut all = reduced.clone();
    all.extend(more.iter().filter(|c| !reduced.contains(c)).cloned());
    if all.len() == reduced.len() {
        bail!("the full model has no covariate beyond the reduced one ({})", reduced.join(", "));
    }
    let table = args.input.table()?;
    let frame = Frame::new(&table, &Roles { covariates: all, ..args.input.roles() })?;
    let options = Options { ties: args.ties.into(), ..Options::default() };
    let place = || format!("{}", args.input.table.display());
    let fitted = |keep: &dyn Fn(&str) -> bool| -> Result<(CoxFit, Vec<String>)> {
        let columns = frame.columns_where(keep);
        let mut buffer = Vec::new();
        let data = frame.cox(&columns, &mut buffer)?;
        let names = columns.iter().map(|&j| frame.names[j].clone()).collect();
        Ok((fit(&data, &options).with_context(place)?, names))
    };
    let (full, names) = fitted(&|_| true)?;
    let small =
        if reduced.is_empty() { None } else { Some(fitted(&|c| reduced.iter().any(|r| r == c))?) };
    let test: ChiSquared = match &small {
        None => full.likelihood_ratio(),
        Some((small, _)) => likelihood_ratio(small, &full).with_context(place)?,
    };
    let mut warnings = diagnoses(&full, &names);
    if let Some((small, names)) = &small {
        for line in diagnoses(small, names) {
            if !warnings.contains(&line) {
                warnings.push(line);
            }
        }
    }
    if full.robust {
        warnings.push(
            "a likelihood ratio ignores clusters and fractional weights; the robust Wald test \
             beside it does not"
                .into(),
        );
    }
    warnings.extend(few_events(full.events, full.df()));
    say("note", &frame.notes);
    say("warning", &warnings);
    let loglik_reduced = small.as_ref().map_or(full.loglik_null, |(s, _)| s.loglik);
    if args.input.json {
        let model = |fit: &CoxFit, names: &[String]| -> Value {
            json!({ "loglik": fit.loglik, "df": fit.df(),
                "coefficients": coefficients(fit, names, 0.95) })
        };
        let mut map = frame.summary("lrt");
        map.insert("ties".into(), json!(args.ties.name()));
        map.insert("chi2".into(), json!(test.chi2));
        map.insert("df".into(), json!(test.df));
        map.insert("p".into(), json!(test.p));
        map.insert("lrt".into(), chi2(&test));
        map.insert("loglik_null".into(), json!(full.loglik_null));
        map.insert("loglik_reduced".into(), json!(loglik_reduced));
        map.insert("loglik".into(), json!(full.loglik));
        let reduced_model = small.as_ref().map_or_else(
            || json!({ "loglik": full.loglik_null, "df": 0, "coefficients": [] }),
            |(s, names)| model(s, names),
        );
        map.insert("reduced".into(), reduced_model);
        map.insert("full".into(), model(&full, &names));
        map.insert("notes".into(), json!(frame.notes));
        map.insert("warnings".into(), json!(warnings));
        return print_json(map);
    }
    let list = |c: &[String]| if c.is_empty() { "nothing".into() } else { c.join(" + ") };
    println!("{} rows, {} events, {} ties", full.n, full.events, args.ties.name());
    println!("reduced: {}, log-likelihood {}", list(&reduced), show(loglik_reduced));
    println!("full:    {}, log-likelihood {}", list(&frame.term_names), show(full.loglik));
    print_columns(&[show_test("likelihood ratio", &test)]);
    Ok(())
}
