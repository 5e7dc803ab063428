//! `mithras survival km`.

use super::Input;
use super::output::{print_columns, print_json, say, show, show_option};
use anyhow::Result;
use clap::ValueEnum;
use outcome::{CurvesPlan, IntervalType, kaplan_meier};

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

pub fn run(args: &Args) -> Result<()> {
    let mut roles = args.input.roles(&[]);
    roles.groups.clone_from(&args.covariates);
    roles.groups.append(&mut roles.strata);
    let plan = CurvesPlan {
        roles,
        interval: args.interval.into(),
        level: args.level,
        at: args.at.clone(),
    };
    let curves = kaplan_meier(&args.input.table()?, &plan)?;
    say("note", &curves.notes);
    if args.input.json {
        return print_json(&curves);
    }
    println!("Kaplan-Meier, {} rows, {} events", curves.summary.n, curves.summary.events);
    println!();
    let mut rows =
        vec![["group", "rows", "events", "median", "lower", "upper"].map(String::from).to_vec()];
    for c in &curves.groups {
        let (n, events) = (c.n.to_string(), c.events.to_string());
        let mut row = vec![label(&c.name), n, events];
        row.extend([c.median, c.median_lower, c.median_upper].map(show_option));
        rows.push(row);
    }
    print_columns(&rows);
    for c in &curves.groups {
        println!("\n{}", label(&c.name));
        let head = ["time", "at risk", "events", "S", "se", "lower", "upper"];
        let mut rows = vec![head.map(String::from).to_vec()];
        if args.at.is_empty() {
            for p in c.points.iter().filter(|p| p.events > 0.0) {
                let limits = [p.se, p.lower, p.upper].map(show_option);
                let mut row = [p.time, p.at_risk, p.events, p.survival].map(show).to_vec();
                row.extend(limits);
                rows.push(row);
            }
        }
        for p in &c.at {
            let limits = [p.se, p.lower, p.upper].map(show_option);
            let mut row = [p.time, p.at_risk, p.events, p.survival].map(show).to_vec();
            row.extend(limits);
            rows.push(row);
        }
        print_columns(&rows);
    }
    Ok(())
}

fn label(name: &str) -> String {
    if name.is_empty() { "all".into() } else { name.to_owned() }
}
