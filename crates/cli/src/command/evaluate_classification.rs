//! `mithras evaluate classification`: predicted classes against true ones.

use super::survival::output::{print_columns, print_json, say};
use anyhow::Result;
use mithras::evaluate::classification::{
    ClassFigures, Classification, ClassificationPlan, classification,
};
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
    /// Column of predicted classes (default: class, predicted, prediction, pred or y_pred; else the
    /// largest p_<class>)
    #[arg(long, value_name = "COLUMN")]
    predicted: Option<String>,
    /// The positive class of precision, recall and F1
    #[arg(long, value_name = "CLASS")]
    positive: Option<String>,
    /// Call the positive class from this probability on, instead of the predicted class (two classes)
    #[arg(long, value_name = "P", value_parser = probability)]
    threshold: Option<f64>,
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
    let figures = classification(&args.into())?;
    say("note", &figures.notes);
    if json {
        return print_json(&figures);
    }
    print(&figures);
    Ok(())
}

fn number(v: Option<f64>) -> String {
    v.map_or_else(|| "-".to_owned(), |v| format!("{v:.4}"))
}

fn print(out: &Classification) {
    let all = &out.all;
    println!("{} items, {} classes", all.n, all.classes.len());
    let keys = [
        "accuracy",
        "balanced_accuracy",
        "macro_f1",
        "precision",
        "recall",
        "f1",
        "specificity",
        "roc_auc",
        "macro_roc_auc",
        "kappa",
    ];
    let mut rows = Vec::new();
    for key in keys {
        let Some((_, value)) = all.numbers().into_iter().find(|(k, _)| *k == key) else { continue };
        let mut row = vec![key.to_owned(), number(value)];
        if let Some(s) = out.over_folds.as_ref().and_then(|f| f.get(key)) {
            row.push(format!("folds: {} +- {}", number(Some(s.mean)), number(s.sd)));
        }
        rows.push(row);
    }
    print_columns(&rows);
    if let Some(l) = &out.largest_f1 {
        let (f1, threshold) = (number(Some(l.f1)), number(Some(l.threshold)));
        println!("F1 of these items is largest, {f1}, from {threshold} on");
    }
    println!("\nconfusion matrix (rows: truth)");
    let mut rows = vec![std::iter::once(String::new()).chain(all.classes.clone()).collect()];
    for (class, counts) in all.classes.iter().zip(&all.confusion) {
        let cells = counts.iter().map(ToString::to_string);
        rows.push(std::iter::once(class.clone()).chain(cells).collect::<Vec<_>>());
    }
    print_columns(&rows);
    for (name, figures) in out.domains.iter().flatten() {
        let of = |key: &str, f: &ClassFigures| number(f.number(key));
        println!(
            "\n{name}: {} items, macro F1 {}, balanced accuracy {}, F1 {}",
            figures.n,
            of("macro_f1", figures),
            of("balanced_accuracy", figures),
            of("f1", figures)
        );
    }
}
