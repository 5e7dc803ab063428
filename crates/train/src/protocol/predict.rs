//! Predictions per item, always written, so that any metric can be recomputed.

use std::fmt::Write as _;
use std::path::Path;

use mitosis::{Classifier, RgbTile, Symmetric};
use pixels::geometry::centred;
use regions::task::{Coarser, Crops, Task};

use super::about::Part;
use crate::error::{Result, TrainError};
use crate::port::TorchClassifier;
use crate::text::write_text;

/// One item's probabilities.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// File relative to the data folder.
    pub file: String,
    /// Slide.
    pub source: String,
    /// Scanner or collection.
    pub domain: String,
    /// The fold whose model this is, `none` left out, or `ensemble`.
    pub fold: String,
    /// True class.
    pub truth: usize,
    /// True class in the coarser task, if the task has one.
    pub coarse_truth: Option<usize>,
    /// One per class, summing to one.
    pub probabilities: Vec<f64>,
}

impl Prediction {
    /// The likeliest class; the first of equals.
    #[must_use]
    pub fn class(&self) -> usize {
        mitosis::likeliest(&self.probabilities)
    }

    /// The same item in the coarser task: its classes are as likely as their members together.
    fn coarse(&self, coarser: &Coarser) -> Option<Self> {
        let mut probabilities = vec![0.0; coarser.classes.len()];
        for (&class, p) in coarser.of.iter().zip(&self.probabilities) {
            probabilities[class] += p;
        }
        let truth = self.coarse_truth?;
        Some(Self { truth, coarse_truth: None, probabilities, ..self.clone() })
    }

    /// Mean probabilities of several models on one item.
    pub(super) fn mean(parts: &[&Self]) -> Self {
        let n = parts.len() as f64;
        let sum = |c: usize| parts.iter().map(|p| p.probabilities[c]).sum::<f64>() / n;
        let probabilities = (0..parts[0].probabilities.len()).map(sum).collect();
        Self { fold: "ensemble".into(), probabilities, ..parts[0].clone() }
    }
}

/// Probabilities of `items` through the port that `detect` uses, averaged over the symmetric
/// copies: crops are enlarged to the network's input before they are turned.
pub(super) fn all(
    model: TorchClassifier,
    set: &Crops,
    items: &[usize],
    part: Part,
    crop: usize,
    symmetries: u8,
) -> Result<Vec<Prediction>> {
    let side = model.spec.input as usize;
    let mut model = Symmetric::new(model, symmetries);
    let mut out = Vec::with_capacity(items.len());
    for some in items.chunks(32) {
        let tiles: Vec<RgbTile> =
            some.iter().map(|&i| centred(&set.images()[i], crop, side)).collect();
        for (&i, p) in some.iter().zip(model.classes(&tiles)?) {
            out.push(prediction(set, i, part, p.0.into_iter().map(f64::from).collect())?);
        }
    }
    Ok(out)
}

/// An item with its probabilities.
pub(super) fn prediction(set: &Crops, i: usize, part: Part, p: Vec<f64>) -> Result<Prediction> {
    let item = &set.items()[i];
    if p.iter().any(|v| !v.is_finite()) {
        return Err(TrainError::run(Path::new(&item.file), "the model gives no number for it"));
    }
    Ok(Prediction {
        file: item.file.clone(),
        source: item.source.clone(),
        domain: item.domain.clone(),
        fold: part.to_string(),
        truth: item.class,
        coarse_truth: item.coarse.as_ref().map(|c| c.class),
        probabilities: p,
    })
}

/// Names of the tables of a task that [`write()`] makes of `stem`, without `.csv`: the task's own,
/// then the coarser task's if there is one.
#[must_use]
pub fn tables(task: Task, stem: &str) -> Vec<String> {
    let coarser = task.coarser().map(|c| format!("{stem}-{}", c.name));
    std::iter::once(stem.to_owned()).chain(coarser).collect()
}

/// Writes `DIR/STEM.csv`, with columns `file,source,domain,fold,truth,class,p_<class>...`, and the
/// same for the coarser task, if there is one ([`tables`]).
///
/// # Errors
/// The file system's.
pub fn write(dir: &Path, stem: &str, set: &Crops, rows: &[Prediction]) -> Result<()> {
    let mut names = tables(set.task(), stem).into_iter().map(|n| dir.join(n + ".csv"));
    // The task's own table last: once it exists, both are complete.
    let own = names.next().expect("every task has a table");
    if let (Some(coarser), Some(path)) = (set.task().coarser(), names.next()) {
        let classes: Vec<String> = coarser.classes.iter().map(|c| (*c).to_string()).collect();
        let rows: Vec<Prediction> = rows.iter().filter_map(|r| r.coarse(&coarser)).collect();
        table(&path, &classes, &rows)?;
    }
    table(&own, set.classes(), rows)
}

fn table(path: &Path, classes: &[String], rows: &[Prediction]) -> Result<()> {
    let mut text = String::from("file,source,domain,fold,truth,class");
    classes.iter().for_each(|c| text.push_str(&format!(",p_{}", quoted(c))));
    text.push('\n');
    for r in rows {
        let [file, source, domain] = [&r.file, &r.source, &r.domain].map(|s| quoted(s));
        let (truth, class) = (quoted(&classes[r.truth]), quoted(&classes[r.class()]));
        let _ = write!(text, "{file},{source},{domain},{},{truth},{class}", r.fold);
        r.probabilities.iter().for_each(|p| {
            let _ = write!(text, ",{p:.6}");
        });
        text.push('\n');
    }
    write_text(path, &text)
}

fn quoted(s: &str) -> String {
    if s.contains([',', '"', '\n']) { format!("\"{}\"", s.replace('"', "\"\"")) } else { s.into() }
}
