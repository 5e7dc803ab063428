//! `mithras survival cindex`.

use super::frame::{Frame, Roles};
use super::output::{concordance, print_json, say, show};
use super::{Input, Ties};
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use stats::bootstrap::{Bootstrap, Plan};
use stats::distribution::normal_critical;
use stats::survival::concordance::Pairs;
use stats::survival::cox::{Options, fit};

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
    super::km::check_level(args.level)?;
    let table = args.input.table()?;
    let roles = Roles { covariates: args.covariates.clone(), ..args.input.roles() };
    let frame = Frame::new(&table, &roles)?;
    let model = args.fit || args.covariates.len() > 1;
    if !model && (frame.names.len() != 1 || frame.names[0] != args.covariates[0]) {
        bail!(
            "column '{}' is categorical and has no order as a risk; add --fit to use a Cox model",
            args.covariates[0]
        );
    }
    if model && args.protective {
        bail!("--protective goes with a single column as the risk");
    }
    let mut notes = frame.notes.clone();
    let mut warnings = Vec::new();
    let risk: Vec<f64> = if model {
        let columns: Vec<usize> = (0..frame.names.len()).collect();
        let mut buffer = Vec::new();
        let data = frame.cox(&columns, &mut buffer)?;
        let fitted = fit(&data, &Options { ties: args.ties.into(), ..Options::default() })
            .with_context(|| format!("{}", args.input.table.display()))?;
        warnings.extend(super::output::diagnoses(&fitted, &frame.names));
        notes.push("the risk is a Cox model's fit to these same rows: C is apparent".into());
        fitted.linear_predictor
    } else {
        let sign = if args.protective { -1.0 } else { 1.0 };
        frame.x.iter().map(|v| sign * v).collect()
    };
    let pairs =
        Pairs::new(&frame.survival, &risk, frame.weights.as_deref(), frame.strata.as_deref())?;
    let c = pairs
        .concordance(frame.cluster.as_deref())
        .with_context(|| format!("{}", args.input.table.display()))?;
    let plan = Plan { replicates: args.bootstrap, seed: args.seed, level: args.level };
    let mut boots = Vec::new();
    if args.bootstrap > 0 {
        boots.push(("rows", pairs.bootstrap(plan)?));
        if let Some(cluster) = &frame.cluster {
            boots.push(("clusters", pairs.bootstrap_clusters(cluster, plan)?));
        }
    }
    for (unit, b) in &boots {
        if b.defined < b.replicates {
            warnings.push(format!(
                "{} of {} resamples of {unit} have no comparable pair and were left out",
                b.replicates - b.defined,
                b.replicates
            ));
        }
    }
    say("note", &notes);
    say("warning", &warnings);
    let se = c.std_error.unwrap_or(f64::NAN);
    let half = normal_critical(args.level) * se;
    let (lower, upper) = ((c.c_index - half).max(0.0), (c.c_index + half).min(1.0));
    if args.input.json {
        let mut map = frame.summary("cindex");
        map.insert("c_index".into(), json!(c.c_index));
        map.insert("se".into(), json!(c.std_error));
        map.insert("lower".into(), json!(lower));
        map.insert("upper".into(), json!(upper));
        map.insert("level".into(), json!(args.level));
        let source = if model { "cox" } else { "column" };
        map.insert(
            "risk".into(),
            json!({ "source": source, "columns": args.covariates,
            "protective": args.protective }),
        );
        if let Value::Object(counts) = concordance(&c) {
            for (key, value) in counts {
                map.entry(key).or_insert(value);
            }
        }
        let boots: serde_json::Map<String, Value> =
            boots.iter().map(|(unit, b)| ((*unit).to_owned(), bootstrap(b, args.seed))).collect();
        map.insert("bootstrap".into(), Value::Object(boots));
        map.insert("notes".into(), json!(notes));
        map.insert("warnings".into(), json!(warnings));
        return print_json(map);
    }
    println!("C-index {} ({} to {}, se {})", show(c.c_index), show(lower), show(upper), show(se));
    for (unit, b) in &boots {
        println!(
            "bootstrap of {unit}, {} replicates, risks fixed: {} to {}",
            b.defined,
            show(b.interval.lower),
            show(b.interval.upper)
        );
    }
    println!(
        "{} concordant, {} discordant, {} tied risk (count half); left out: {} pairs of events \
         tied in time, {} tied in both",
        c.concordant, c.discordant, c.tied_risk, c.tied_time, c.tied_both
    );
    Ok(())
}

/// A bootstrap as JSON.
pub fn bootstrap(b: &Bootstrap, seed: u64) -> Value {
    json!({ "lower": b.interval.lower, "upper": b.interval.upper, "replicates": b.replicates,
        "defined": b.defined, "seed": seed, "method": "percentile, risks held fixed" })
}
