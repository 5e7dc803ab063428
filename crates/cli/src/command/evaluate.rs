//! `mithras evaluate`: predictions against ground truth.

use anyhow::Result;
use clap::{Args as ClapArgs, Subcommand};
use mithras::evaluate::{self, Evaluation, Figures};
use mitosis::Microns;
use mitosis::matching::Rule;
use std::path::PathBuf;
use std::process::ExitCode;

/// Compare predictions with ground truth
#[derive(ClapArgs, Debug)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Debug)]
enum What {
    Detections(Detections),
    Classification(super::evaluate_classification::Args),
    Robustness(super::robustness::Args),
    OperatingPoint(super::robustness::PointArgs),
}

/// Detection F1 within a radius: per slide, pooled, per tumour type
///
/// Reads the folders that `mithras detect` wrote and a CSV of true figures. The recorded threshold
/// pair is used as it stands. Rules: midog is greedy in ground-truth order, nearest unclaimed
/// prediction; optimal is one to one with the most pairs.
#[derive(ClapArgs, Debug)]
#[command(after_long_help = "\
Examples:
  mithras evaluate detections --predictions results --truth truth.csv
  mithras evaluate detections --predictions results --truth mitoses.csv --rule midog --json

The truth is CSV. A column names the slide (slide, file, filename, case or image; matched by file
name without suffix); positions are level-0 pixels (x_px, y_px; x, y; cx, cy) or micrometres (x_um,
y_um). Optional columns: kind (only `mitotic` rows count), tumour. A row with empty positions says
that the slide was looked at and may hold no figure. Slides that the truth does not name are left
out, and named.")]
struct Detections {
    /// Folder that `mithras detect` wrote
    #[arg(long, value_name = "DIR")]
    predictions: PathBuf,
    /// True figures
    #[arg(long, value_name = "CSV")]
    truth: PathBuf,
    /// A prediction within this distance is a hit, um
    #[arg(long, value_name = "UM", default_value_t = mitosis::matching::PAPER_RADIUS.0)]
    radius_um: f64,
    /// How predictions and truth are paired
    #[arg(long, value_name = "RULE", default_value = "both", value_parser = ["midog", "optimal", "both"])]
    rule: String,
    /// Print everything as JSON, with the sweep over the last threshold
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args) -> Result<ExitCode> {
    let args = match args.what {
        What::Detections(args) => args,
        What::Robustness(args) => return super::robustness::run(&args),
        What::OperatingPoint(args) => return super::robustness::choose(&args),
        What::Classification(args) => {
            super::evaluate_classification::run(&args)?;
            return Ok(ExitCode::SUCCESS);
        }
    };
    let rules = match args.rule.as_str() {
        "both" => Rule::ALL.to_vec(),
        one => vec![one.parse::<Rule>()?],
    };
    let truth = evaluate::read_truth(&args.truth)?;
    let result = evaluate::evaluate(&args.predictions, &truth, Microns(args.radius_um), &rules)?;
    if args.json {
        println!("{}", serde_json::to_string_pretty(&result)?);
    } else {
        say(&result);
    }
    Ok(ExitCode::SUCCESS)
}

/// The result in words, on standard output.
pub fn say(result: &Evaluation) {
    println!(
        "{} figures on {} slides, radius {} um",
        result.truth, result.slides, result.radius_um
    );
    for rule in &result.rules {
        let names = rule.cases.keys().chain(rule.tumours.keys());
        let width = names.map(|n| n.chars().count()).max().unwrap_or(0).clamp(10, 48);
        println!();
        println!(
            "{:<width$}  {:>5}  {:>5}  {:>5}  {:>9}  {:>6}  {:>6}",
            format!("rule {}", rule.rule),
            "TP",
            "FP",
            "FN",
            "precision",
            "recall",
            "F1"
        );
        let line = |name: &str, f: &Figures| {
            let share = |v: Option<f64>| v.map_or("-".into(), |v| format!("{v:.3}"));
            println!(
                "{name:<width$}  {:>5}  {:>5}  {:>5}  {:>9}  {:>6}  {:>6}",
                f.tally.tp,
                f.tally.fp,
                f.tally.fn_,
                share(f.precision),
                share(f.recall),
                share(f.f1)
            );
        };
        if rule.cases.len() > 1 {
            rule.cases.iter().for_each(|(n, f)| line(n, f));
        }
        rule.tumours.iter().for_each(|(n, f)| line(n, f));
        line("pooled", &rule.pooled);
        let best = rule
            .sweep
            .iter()
            .filter(|p| p.figures.f1.is_some())
            .max_by(|a, b| a.figures.f1.partial_cmp(&b.figures.f1).expect("shares are no NaN"));
        if let Some(best) = best {
            println!(
                "for information: the best F1 on this very truth would be {:.3}, at threshold {:.2}",
                best.figures.f1.unwrap_or(0.0),
                best.threshold
            );
        }
    }
    if !result.without_truth.is_empty() {
        println!();
        println!(
            "not evaluated, the truth does not name them: {}",
            result.without_truth.join(", ")
        );
    }
}
