//! `mithras survival km`.

use super::Input;
use super::frame::{Frame, Roles};
use super::output::{print_columns, print_json, say, show, show_option};
use anyhow::{Result, bail};
use clap::ValueEnum;
use serde_json::{Value, json};
use stats::survival::km::{IntervalType, KaplanMeier, Options, kaplan_meier};

/// Kaplan-Meier curves
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    input: Input,
    /// Columns whose combinations are groups, one curve each (also --group)
    #[arg(long, visible_alias = "group", value_name = "COLUMNS", value_delimiter = ',')]
    covariates: Vec<String>,
    /// Scale of the intervals
    #[arg(long, visible_alias = "conf-type", value_enum, default_value = "log")]
    interval: Interval,
    /// Confidence of the intervals
    #[arg(long, default_value_t = 0.95)]
    level: f64,
    /// Times at which to report the curves
    #[arg(long, value_name = "TIMES", value_delimiter = ',')]
    at: Vec<f64>,
}

#[derive(ValueEnum, Clone, Copy, Debug)]
enum Interval {
    Plain,
    Log,
    #[value(alias = "loglog")]
    LogLog,
}

impl From<Interval> for IntervalType {
    fn from(i: Interval) -> Self {
        match i {
            Interval::Plain => Self::Plain,
            Interval::Log => Self::Log,
            Interval::LogLog => Self::LogLog,
        }
    }
}

/// A level in (0, 1).
pub fn check_level(level: f64) -> Result<()> {
    if !(level > 0.0 && level < 1.0) {
        bail!("--level {level} is outside (0, 1); 0.95 means 95 %");
    }
    Ok(())
}

pub fn run(args: &Args) -> Result<()> {
    check_level(args.level)?;
    if let Some(t) = args.at.iter().find(|t| !(t.is_finite() && **t >= 0.0)) {
        bail!("--at {t} is not a time");
    }
    let table = args.input.table()?;
    let mut groups = args.covariates.clone();
    groups.extend(args.input.strata.clone());
    let roles = Roles { groups, strata: Vec::new(), ..args.input.roles() };
    let frame = Frame::new(&table, &roles)?;
    let mut notes = frame.notes.clone();
    if frame.survival.events() == 0 {
        notes.push("no events: all rows are censored and every curve stays at 1".into());
    }
    say("note", &notes);
    let curves = frame
        .group_names
        .iter()
        .enumerate()
        .map(|(g, name)| Ok((name, curve(&frame, g, args)?)))
        .collect::<Result<Vec<_>>>()?;
    if args.input.json {
        let groups: Vec<Value> = curves
            .iter()
            .map(|(name, curve)| {
                let m = curve.median();
                let points: Vec<Value> = curve
                    .points
                    .iter()
                    .map(|p| {
                        json!({ "time": p.time, "at_risk": p.at_risk, "events": p.events,
                            "censored": p.censored, "survival": p.survival, "se": p.std_error,
                            "lower": p.lower, "upper": p.upper,
                            "cumulative_hazard": p.cumulative_hazard })
                    })
                    .collect();
                json!({ "name": name, "n": curve.n, "events": curve.events,
                    "median": m.time, "median_lower": m.lower, "median_upper": m.upper,
                    "robust": curve.robust, "at": at(curve, &args.at), "points": points })
            })
            .collect();
        let mut map = frame.summary("km");
        map.insert("interval".into(), json!(format!("{:?}", args.interval).to_lowercase()));
        map.insert("level".into(), json!(args.level));
        map.insert("groups".into(), Value::Array(groups));
        map.insert("notes".into(), json!(notes));
        return print_json(map);
    }
    println!("Kaplan-Meier, {} rows, {} events", frame.survival.len(), frame.survival.events());
    println!();
    let mut rows =
        vec![["group", "rows", "events", "median", "lower", "upper"].map(String::from).to_vec()];
    for (name, c) in &curves {
        let m = c.median();
        rows.push(vec![
            label(name),
            c.n.to_string(),
            c.events.to_string(),
            show_option(m.time),
            show_option(m.lower),
            show_option(m.upper),
        ]);
    }
    print_columns(&rows);
    for (name, c) in &curves {
        println!("\n{}", label(name));
        let head = ["time", "at risk", "events", "S", "se", "lower", "upper"];
        let mut rows = vec![head.map(String::from).to_vec()];
        let shown: Vec<_> = if args.at.is_empty() {
            c.points.iter().filter(|p| p.events > 0.0).map(|p| (p.time, Some(p))).collect()
        } else {
            args.at.iter().map(|&t| (t, c.at(t))).collect()
        };
        for (time, p) in shown {
            let mut row = vec![show(time), show(c.at_risk(time))];
            match p {
                Some(p) => {
                    row.extend([show(p.events), show(p.survival), show_option(p.std_error)]);
                    row.extend([show_option(p.lower), show_option(p.upper)]);
                }
                None => row.extend(["0", "1", "0", "1", "1"].map(String::from)),
            }
            rows.push(row);
        }
        print_columns(&rows);
    }
    Ok(())
}

fn label(name: &str) -> String {
    if name.is_empty() { "all".into() } else { name.to_owned() }
}

fn at(curve: &KaplanMeier, times: &[f64]) -> Value {
    let one = |&t: &f64| match curve.at(t) {
        Some(p) => json!({ "time": t, "at_risk": curve.at_risk(t), "survival": p.survival,
            "se": p.std_error, "lower": p.lower, "upper": p.upper }),
        None => json!({ "time": t, "at_risk": curve.at_risk(t), "survival": 1.0, "se": 0.0,
            "lower": 1.0, "upper": 1.0 }),
    };
    Value::Array(times.iter().map(one).collect())
}

fn curve(frame: &Frame, group: usize, args: &Args) -> Result<KaplanMeier> {
    let rows: Vec<usize> = (0..frame.group.len()).filter(|&i| frame.group[i] == group).collect();
    let pick = |v: &Vec<f64>| rows.iter().map(|&i| v[i]).collect::<Vec<_>>();
    let weights = frame.weights.as_ref().map(pick);
    let cluster = frame.cluster.as_ref().map(|c| rows.iter().map(|&i| c[i]).collect::<Vec<_>>());
    let options = Options {
        weights: weights.as_deref(),
        cluster: cluster.as_deref(),
        interval: args.interval.into(),
        level: args.level,
    };
    Ok(kaplan_meier(&frame.survival.select(&rows)?, &options)?)
}
