//! `mithras survival cox`.

use super::frame::{Frame, Roles};
use super::output::{
    chi2, coefficients, concordance, diagnoses, few_events, print_columns, print_json, say, show,
    show_p, show_test,
};
use super::{Input, Ties};
use anyhow::{Context, Result};
use clap::ValueEnum;
use serde_json::{Value, json};
use stats::survival::cox::{CoxData, CoxFit, Options, TimeTransform, ZphTest, fit};

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
    super::km::check_level(args.level)?;
    let table = args.input.table()?;
    let roles = Roles { covariates: args.covariates.clone(), ..args.input.roles() };
    let frame = Frame::new(&table, &roles)?;
    let mut buffer = Vec::new();
    let columns: Vec<usize> = (0..frame.names.len()).collect();
    let data = frame.cox(&columns, &mut buffer)?;
    let options = Options {
        ties: args.ties.into(),
        max_iterations: args.max_iterations,
        ..Options::default()
    };
    let fitted = fit(&data, &options).with_context(|| format!("{}", args.input.table.display()))?;
    let mut warnings = diagnoses(&fitted, &frame.names);
    warnings.extend(few_events(fitted.events, fitted.df()));
    let zph = match fitted.proportional_hazards(&data, args.transform.into(), &frame.terms) {
        Ok(test) => Some(test),
        Err(error) => {
            warnings.push(format!("no proportional-hazards test: {error}"));
            None
        }
    };
    if fitted.robust && fitted.wald.is_none() {
        warnings.push("no robust Wald test: too few clusters for the coefficients".into());
    }
    say("note", &frame.notes);
    say("warning", &warnings);
    if args.input.json {
        let mut map = frame.summary("cox");
        for (key, value) in result(&frame, &data, &fitted, zph.as_ref(), args)? {
            map.insert(key.into(), value);
        }
        map.insert("notes".into(), json!(frame.notes));
        map.insert("warnings".into(), json!(warnings));
        return print_json(map);
    }
    print(&frame, &data, &fitted, zph.as_ref(), args)
}

fn result(
    frame: &Frame,
    data: &CoxData,
    fitted: &CoxFit,
    zph: Option<&ZphTest>,
    args: &Args,
) -> Result<Vec<(&'static str, Value)>> {
    let p = frame.names.len();
    let c = fitted.concordance(data).ok();
    let square = |m: &[f64]| m.chunks_exact(p).map(<[f64]>::to_vec).collect::<Vec<_>>();
    let mut out = vec![
        ("ties", json!(args.ties.name())),
        ("coefficients", coefficients(fitted, &frame.names, args.level)),
        ("level", json!(args.level)),
        ("robust", json!(fitted.robust)),
        ("loglik_null", json!(fitted.loglik_null)),
        ("loglik", json!(fitted.loglik)),
        ("lrt", chi2(&fitted.likelihood_ratio())),
        ("score", chi2(&fitted.score)),
        ("wald", json!(fitted.wald.as_ref().map(chi2))),
        ("robust_score", json!(fitted.robust_score.as_ref().map(chi2))),
        ("c_index", json!(c.map(|c| c.c_index))),
        ("concordance", json!(c.as_ref().map(concordance))),
        ("variance", json!(square(&fitted.variance))),
        ("naive_variance", json!(square(&fitted.naive_variance))),
        ("means", json!(fitted.means)),
        ("iterations", json!(fitted.iterations)),
        ("converged", json!(fitted.converged())),
        ("strata", json!(frame.strata_names)),
    ];
    out.push((
        "proportional_hazards",
        json!(zph.map(|z| {
            let terms: Vec<Value> = frame
                .term_names
                .iter()
                .zip(&z.terms)
                .filter_map(|(name, t)| t.map(|t| (name, t)))
                .map(|(name, t)| json!({ "name": name, "chi2": t.chi2, "df": t.df, "p": t.p }))
                .collect();
            json!({ "terms": terms, "global": chi2(&z.global) })
        })),
    ));
    if args.baseline {
        let strata: Vec<Value> = fitted
            .baseline(data)?
            .iter()
            .map(|b| {
                let points: Vec<Value> = b
                    .points
                    .iter()
                    .map(|p| {
                        json!({ "time": p.time, "cumulative_hazard": p.centred,
                            "cumulative_hazard_at_zero": p.at_zero })
                    })
                    .collect();
                let name = frame.strata.as_ref().map(|_| &frame.strata_names[b.stratum]);
                json!({ "stratum": name, "points": points })
            })
            .collect();
        out.push(("baseline", Value::Array(strata)));
    }
    Ok(out)
}

fn print(
    frame: &Frame,
    data: &CoxData,
    fitted: &CoxFit,
    zph: Option<&ZphTest>,
    args: &Args,
) -> Result<()> {
    println!("Cox model, {} rows, {} events, {} ties", fitted.n, fitted.events, args.ties.name());
    println!();
    let se = if fitted.robust { "robust se" } else { "se" };
    let head = ["covariate", "beta", "HR", "lower", "upper", se, "z", "p"];
    let mut rows = vec![head.map(String::from).to_vec()];
    for (j, name) in frame.names.iter().enumerate() {
        rows.push(match fitted.coefficient(j) {
            None => vec![name.clone(), "left out".into()],
            Some(c) => {
                let (hr, lower, upper) = c.hazard_ratio(args.level);
                let mut row = vec![name.clone()];
                row.extend([c.beta, hr, lower, upper, c.se, c.z].map(show));
                row.push(show_p(c.p));
                row
            }
        });
    }
    print_columns(&rows);
    println!();
    println!("log-likelihood {} -> {}", show(fitted.loglik_null), show(fitted.loglik));
    let mut tests = vec![
        show_test("likelihood ratio", &fitted.likelihood_ratio()),
        show_test("score", &fitted.score),
    ];
    tests.extend(fitted.wald.as_ref().map(|t| show_test("Wald", t)));
    tests.extend(fitted.robust_score.as_ref().map(|t| show_test("robust score", t)));
    if let Some(z) = zph {
        for (name, t) in frame.term_names.iter().zip(&z.terms) {
            tests.extend(t.as_ref().map(|t| show_test(&format!("proportional: {name}"), t)));
        }
        tests.push(show_test("proportional: all", &z.global));
    }
    print_columns(&tests);
    match fitted.concordance(data) {
        Ok(c) => println!(
            "C-index {} (se {}): {} concordant, {} discordant, {} tied risk (half), {} tied time",
            show(c.c_index),
            show(c.std_error.unwrap_or(f64::NAN)),
            c.concordant,
            c.discordant,
            c.tied_risk,
            c.tied_time + c.tied_both
        ),
        Err(error) => println!("C-index: {error}"),
    }
    Ok(())
}
