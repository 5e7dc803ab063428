//! `mithras survival logrank`.

use super::Input;
use super::frame::Frame;
use super::output::{chi2, print_columns, print_json, say, show, show_test};
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use stats::survival::logrank::logrank;

/// Log-rank test
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    input: Input,
    /// Columns whose combinations are the groups compared (also --group)
    #[arg(
        long,
        visible_alias = "group",
        value_name = "COLUMNS",
        value_delimiter = ',',
        required = true
    )]
    covariates: Vec<String>,
    /// Make two groups of one numeric covariate: a number (<= against >), or "median"
    #[arg(long, value_name = "NUMBER|median")]
    cut: Option<String>,
    /// Weight event times by S(t)^rho: 0 is the log-rank test, 1 is Peto-Peto's
    #[arg(long, default_value_t = 0.0)]
    rho: f64,
}

pub fn run(args: &Args) -> Result<()> {
    if args.input.weights.is_some() {
        bail!("--weights: the log-rank test takes no case weights; use `cox` and its score test");
    }
    if args.input.cluster.is_some() {
        bail!("--cluster: the log-rank test knows no clusters; use `cox --cluster`");
    }
    if !args.rho.is_finite() {
        bail!("--rho {} is not a number", args.rho);
    }
    let table = args.input.table()?;
    let mut roles = args.input.roles();
    if args.cut.is_some() {
        if args.covariates.len() != 1 {
            bail!("--cut needs exactly one covariate");
        }
        roles.covariates.clone_from(&args.covariates);
    } else {
        roles.groups.clone_from(&args.covariates);
    }
    let mut frame = Frame::new(&table, &roles)?;
    let mut cut_point = None;
    if let Some(cut) = &args.cut {
        let name = &args.covariates[0];
        if frame.names.len() != 1 || frame.names[0] != *name {
            bail!("--cut: column '{name}' is not numeric");
        }
        let cut: f64 = if cut == "median" {
            stats::interval::median(&frame.x)?
        } else {
            cut.parse()
                .ok()
                .filter(|c: &f64| c.is_finite())
                .with_context(|| format!("--cut {cut} is neither a number nor \"median\""))?
        };
        cut_point = Some(cut);
        frame.group = frame.x.iter().map(|&v| usize::from(v > cut)).collect();
        frame.group_names = vec![format!("{name} <= {cut}"), format!("{name} > {cut}")];
        if args.cut.as_deref() == Some("median") {
            frame.notes.push(format!(
                "cut-point {cut} is the median of these rows; a cut chosen on the data it is \
                 tested on is optimistic, fix it on a training subset"
            ));
        }
    } else if frame.group_names.len() > 10.max(frame.rows.len() / 5) {
        bail!(
            "{} groups in {} rows: is '{}' a number? Use --cut, or test it with `cox`",
            frame.group_names.len(),
            frame.rows.len(),
            args.covariates.join(",")
        );
    }
    let groups = frame.group_names.len();
    let test = logrank(&frame.survival, &frame.group, groups, frame.strata.as_deref(), args.rho)
        .with_context(|| format!("{}", args.input.table.display()))?;
    let mut warnings = Vec::new();
    let events = frame.survival.events();
    if events < 10 * (groups - 1) {
        warnings.push(format!(
            "few events: {events} in {groups} groups; the chi-squared approximation is rough"
        ));
    }
    say("note", &frame.notes);
    say("warning", &warnings);
    if args.input.json {
        let rows: Vec<Value> = frame
            .group_names
            .iter()
            .zip(&test.groups)
            .map(|(name, g)| {
                json!({ "name": name, "n": g.n, "observed": g.observed, "expected": g.expected })
            })
            .collect();
        let mut map = frame.summary("logrank");
        map.insert("groups".into(), Value::Array(rows));
        map.insert("chi2".into(), json!(test.test.chi2));
        map.insert("df".into(), json!(test.test.df));
        map.insert("p".into(), json!(test.test.p));
        map.insert("logrank".into(), chi2(&test.test));
        map.insert(
            "variance".into(),
            json!(test.variance.chunks_exact(groups).map(<[f64]>::to_vec).collect::<Vec<_>>()),
        );
        map.insert("rho".into(), json!(args.rho));
        map.insert("cut".into(), json!(cut_point));
        map.insert("strata".into(), json!(frame.strata_names));
        map.insert("notes".into(), json!(frame.notes));
        map.insert("warnings".into(), json!(warnings));
        return print_json(map);
    }
    println!("Log-rank test, {} rows, {events} events", frame.survival.len());
    println!();
    let mut rows = vec![["group", "rows", "observed", "expected"].map(String::from).to_vec()];
    for (name, g) in frame.group_names.iter().zip(&test.groups) {
        rows.push(vec![name.clone(), g.n.to_string(), show(g.observed), show(g.expected)]);
    }
    print_columns(&rows);
    println!();
    print_columns(&[show_test("log-rank", &test.test)]);
    Ok(())
}
