//! `mithras evaluate`: predictions against ground truth.

use crate::show;
use anyhow::Result;
use clap::{Args as ClapArgs, Subcommand};
use evaluation::evaluate::{self, TruthOptions};
use mitosis::Microns;
use mitosis::matching::Rule;
use std::path::PathBuf;

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
/// pair is used unchanged. Rules: midog is greedy in ground-truth order, nearest unclaimed
/// prediction; optimal is one to one with the most pairs.
#[derive(ClapArgs, Debug)]
struct Detections {
    /// Folder that `mithras detect` wrote
    #[arg(long, value_name = "DIR")]
    predictions: PathBuf,
    /// True figures
    #[arg(long, value_name = "CSV")]
    truth: PathBuf,
    /// Column with the kind of a row [default: label, else kind, else one such as class with known words]
    #[arg(long, value_name = "COLUMN")]
    label_column: Option<String>,
    /// Words of that column that mean a mitotic figure [default: mf, mitotic, mitotic figure, mitosis, figure]
    #[arg(long, value_name = "WORDS", value_delimiter = ',')]
    figures: Vec<String>,
    /// Evaluate these slides alone
    #[arg(long, value_name = "SLIDES", value_delimiter = ',')]
    only: Vec<String>,
    /// Write the curve over all thresholds: STEM.csv and STEM.svg (with two rules STEM-midog.csv and so on)
    #[arg(long, value_name = "STEM")]
    curve: Option<PathBuf>,
    /// Package whose card is asked whether it was trained on these slides [default: the bundled one of
    /// the predictions' name]
    #[arg(long, value_name = "DIR")]
    model: Option<PathBuf>,
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

pub fn run(args: Args) -> Result<()> {
    let args = match args.what {
        What::Detections(args) => args,
        What::Robustness(args) => return super::robustness::run(&args),
        What::OperatingPoint(args) => return super::robustness::choose(&args),
        What::Classification(args) => return super::evaluate_classification::run(args),
    };
    let rules = match args.rule.as_str() {
        "both" => Rule::ALL.to_vec(),
        one => vec![one.parse::<Rule>()?],
    };
    let options = TruthOptions {
        column: args.label_column.clone(),
        figures: args.figures.clone(),
        only: args.only.clone(),
    };
    let truth = evaluate::read_truth(&args.truth, &options)?;
    let result = evaluate::evaluate(&args.predictions, &truth, Microns(args.radius_um), &rules)?;
    let seen = evaluate::seen_in_training(&result, args.model.as_deref())?;
    seen.inspect(|warning| crate::progress::print_message("warning", warning));
    if let Some(stem) = &args.curve {
        result.write_curves(stem)?;
    }
    show::result(args.json, &result)
}
