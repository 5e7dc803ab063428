//! `mithras evaluate classification`: predicted classes against true ones.

use crate::show::{print_messages, result};
use anyhow::Result;
use evaluation::evaluate::classification::{ClassificationPlan, classification, seen_in_training};
use std::path::PathBuf;

/// Classification metrics of a table of predictions, equal to scikit-learn's
///
/// The table has one row per crop: the true class, the predicted class and, optionally, p_<class>
/// columns, as `mithras classify` and the training protocols write them. Undefined scores are zero;
/// ROC-AUC is absent where one class is missing.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// CSV, TSV or Parquet with one row per item
    #[arg(long, value_name = "FILE")]
    predictions: PathBuf,
    /// Further tables of the same items: the mean of all p_<class> is judged (an ensemble); joined by --key
    #[arg(long, value_name = "FILE", num_args = 1..)]
    mean_with: Vec<PathBuf>,
    /// Table with the true classes, if they are not in the predictions; joined by --key. AMi-Br's
    /// labels.csv can be given as it is
    #[arg(long, value_name = "FILE")]
    labels: Option<PathBuf>,
    /// Column that joins the tables, by the whole text or else by the file name alone (default: file,
    /// path, image, filename, name, id or dataset_uid)
    #[arg(long, value_name = "COLUMN")]
    key: Option<String>,
    /// Column of true classes (default: truth, label, target, true_class or y_true)
    #[arg(long, value_name = "COLUMN")]
    truth: Option<String>,
    /// Column of predicted classes (default: class, predicted, prediction, pred or y_pred; else the largest p_<class>)
    #[arg(long, value_name = "COLUMN")]
    predicted: Option<String>,
    /// The positive class of precision, recall and F1
    #[arg(long, value_name = "CLASS")]
    positive: Option<String>,
    /// Call the positive class from this probability on, instead of the predicted class (two classes)
    #[arg(long, value_name = "P", value_parser = probability)]
    threshold: Option<f64>,
    /// The package that predicted (name or folder), to warn of items that it was trained on [default: all bundled ones]
    #[arg(long, value_name = "NAME|DIR")]
    model: Option<PathBuf>,
    /// Column of folds: mean and sample SD over them as well
    #[arg(long, value_name = "COLUMN")]
    fold: Option<String>,
    /// Column of domains: one row of figures for each
    #[arg(long, value_name = "COLUMN")]
    domain: Option<String>,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

fn probability(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(p) if p > 0.0 && p < 1.0 => Ok(p),
        _ => Err("not a probability inside (0, 1)".into()),
    }
}

impl From<Args> for ClassificationPlan {
    fn from(a: Args) -> Self {
        Self {
            predictions: a.predictions,
            mean_with: a.mean_with,
            labels: a.labels,
            key: a.key,
            truth: a.truth,
            predicted: a.predicted,
            positive: a.positive,
            threshold: a.threshold,
            fold: a.fold,
            domain: a.domain,
        }
    }
}

pub fn run(args: Args) -> Result<()> {
    let json = args.json;
    let (model, plan) = (args.model.clone(), ClassificationPlan::from(args));
    let mut figures = classification(&plan)?;
    figures.notes.extend(seen_in_training(&plan, model.as_deref())?);
    print_messages("note", &figures.notes);
    result(json, &figures)
}
