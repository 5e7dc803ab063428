//! How a classifier's calls hold under changes that must not matter: labelled crops, as they are and
//! under a grid of named perturbations.

use super::{Measured, RobustnessError, WorstChange};
use base::file;
use base::progress::Listener;
use base::table::Writer;
use features::classify::fit;
use infer::card::ClassifierCard;
use infer::{EngineOptions, ModelPackage};
use mitosis::{ClassProbs, Mpp};
use pages::charts::{self, Bar};
use pixels::perturb::Perturbation;
use regions::task::{Crops, Task, TestSet, TrainingSet};
use serde::{Deserialize, Serialize};
use stats::metrics::{ConfusionMatrix, macro_roc_auc, roc_auc};
use std::fmt;
use std::path::Path;

/// Schema of `robustness.json` of a classifier.
pub const SCHEMA: &str = "mithras.robustness-crops/1";
/// Bins of the calibration error.
const BINS: usize = 10;
/// Crops at once.
const BATCH: usize = 64;

/// One change over all crops.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CropRow {
    /// Its name; `clean` for none.
    pub perturbation: String,
    /// Of the positive class of two; of more the mean over the classes.
    pub f1: f64,
    /// Mean recall.
    pub balanced_accuracy: f64,
    /// Of the positive class of two; of more the mean of one against the rest. `None` without both.
    pub auc: Option<f64>,
    /// Expected calibration error over ten bins: of the positive class of two, of more of the called one.
    pub ece: f64,
    /// Precision of the positive class of two.
    pub precision: Option<f64>,
    /// Recall of the positive class of two.
    pub recall: Option<f64>,
}

/// Everything measured of a classifier.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CropRobustness {
    /// [`SCHEMA`].
    pub schema: String,
    /// Name of the package.
    pub model: String,
    /// In output order.
    pub classes: Vec<String>,
    /// The positive one, of two.
    pub positive: Option<String>,
    /// The probability from which on it is called; none: the likelier.
    pub threshold: Option<f32>,
    /// um/px of the crops.
    pub mpp: f64,
    /// Crops by class.
    pub crops: Vec<usize>,
    /// Clean first.
    pub rows: Vec<CropRow>,
    /// Mean F1 over all rows.
    pub mean_f1: f64,
    /// The change with the lowest F1.
    pub worst: WorstChange,
}

/// A package and how its networks run.
#[derive(Clone, Copy, Debug)]
pub struct Model<'a> {
    /// The package.
    pub package: &'a ModelPackage,
    /// Engine, threads, batches.
    pub engine: &'a EngineOptions,
}

/// One part of a task's data.
#[derive(Clone, Copy, Debug)]
pub struct TaskPart<'a> {
    /// Its folder.
    pub folder: &'a Path,
    /// What the crops are.
    pub task: Task,
    /// The part that nothing trains on.
    pub test: bool,
}

/// Which crops are measured, and at what resolution.
#[derive(Clone, Copy, Debug)]
pub struct Sampling {
    /// um/px of the crops; the model's own without one.
    pub mpp: Option<Mpp>,
    /// Every n-th crop is measured.
    pub every: usize,
}

/// Measures a classifier on one part of a task's data in a folder, at `mpp` or the model's own. A class of the model
/// may be missing in a test part: figures are as of [`crate::evaluate::classification`] then.
///
/// # Errors
/// [`RobustnessError`]: as [`run`], and crops that cannot be read.
pub fn of_task(
    with: Model<'_>,
    data: TaskPart<'_>,
    sampling: Sampling,
    changes: &[Perturbation],
    listener: &mut dyn Listener,
) -> Result<CropRobustness, RobustnessError> {
    if data.test {
        // A test part may lack classes of the model; folders of other names are those of `open`.
        let classes = with.package.card.classifier.as_ref().map_or(&[][..], |c| &c.classes);
        let set = TestSet::of_classes(data.task, data.folder, classes)
            .or_else(|_| TestSet::open(data.task, data.folder))?;
        run(with, &set, sampling, changes, listener)
    } else {
        let set = TrainingSet::open(data.task, data.folder)?;
        run(with, &set, sampling, changes, listener)
    }
}

/// Measures a classifier on every `every`-th of some labelled crops at `mpp`, clean and under every
/// change.
///
/// # Errors
/// [`RobustnessError`]: a package of other classes than the crops, or whose network stops.
pub fn run(
    Model { package, engine }: Model<'_>,
    crops: &Crops,
    Sampling { mpp, every }: Sampling,
    changes: &[Perturbation],
    listener: &mut dyn Listener,
) -> Result<CropRobustness, RobustnessError> {
    let no = |reason: String| RobustnessError::Nothing(reason);
    let name = &package.card.name;
    let card = package
        .card
        .classifier
        .as_ref()
        .ok_or_else(|| no(format!("{name} is not a classifier")))?;
    let mpp = mpp.unwrap_or(card.mpp);
    // What is not the positive class of two has many names.
    let rest = |set: &[String]| set.len() == 2 && set.contains(&card.positive);
    let both = rest(&card.classes) && rest(crops.classes());
    let place = |class: &String| match card.classes.iter().position(|c| c == class) {
        None if both => Some(1 - card.positive_index()),
        found => found,
    };
    let Some(classes) = crops.classes().iter().map(place).collect::<Option<Vec<usize>>>() else {
        let (theirs, ours) = (crops.classes().join(", "), card.classes.join(", "));
        return Err(no(format!("{name} has the classes {ours}; the crops have {theirs}")));
    };
    let mut network = infer::open(package, engine)?
        .classifier
        .ok_or_else(|| no(format!("{name} is not a classifier")))?;
    let wanted: Vec<usize> = (0..crops.items().len()).step_by(every.max(1)).collect();
    let truth: Vec<usize> = wanted.iter().map(|&i| classes[crops.items()[i].class]).collect();
    let mut all = vec![Perturbation::Clean];
    all.extend(changes.iter().filter(|c| **c != Perturbation::Clean));
    let mut rows = vec![];
    for (n, change) in all.iter().enumerate() {
        let stated = Mpp::new(mpp.get() * change.stated()).map_err(|e| no(e.to_string()))?;
        let mut found: Vec<Vec<f32>> = vec![];
        for part in wanted.chunks(BATCH) {
            let tiles = part.iter().map(|&i| {
                let changed = change.apply(&crops.images()[i], i as u64);
                fit(&changed, stated, card)
                    .map_err(|e| no(format!("{}: {e}", crops.items()[i].file)))
            });
            let tiles = tiles.collect::<Result<Vec<_>, _>>()?;
            found.extend(network.classes(&tiles)?.into_iter().map(|ClassProbs(p)| p));
        }
        rows.push(crop_row(change.to_string(), card, &truth, &found)?);
        listener.report(&format!("{} of {}: {change}", n + 1, all.len()));
    }
    let two = card.classes.len() == 2;
    let lowest = rows.iter().min_by(|a, b| a.f1.total_cmp(&b.f1));
    let lowest = lowest.map(|r| WorstChange { change: r.perturbation.clone(), f1: r.f1 });
    Ok(CropRobustness {
        schema: SCHEMA.into(),
        model: name.clone(),
        positive: two.then(|| card.positive.clone()),
        threshold: card.threshold,
        mpp: mpp.get(),
        crops: (0..card.classes.len()).map(|c| truth.iter().filter(|t| **t == c).count()).collect(),
        classes: card.classes.clone(),
        mean_f1: rows.iter().map(|r| r.f1).sum::<f64>() / rows.len() as f64,
        worst: lowest.ok_or_else(|| no("no change was measured".into()))?,
        rows,
    })
}

fn crop_row(
    perturbation: String,
    card: &ClassifierCard,
    truth: &[usize],
    found: &[Vec<f32>],
) -> Result<CropRow, RobustnessError> {
    let wrong = |e: stats::StatsError| RobustnessError::Nothing(e.to_string());
    let k = card.classes.len();
    let called: Vec<usize> = found.iter().map(|p| card.called(p)).collect();
    let matrix = ConfusionMatrix::from_labels(truth, &called, k).map_err(wrong)?;
    let positive = card.positive_index();
    let (scores, hit): (Vec<f64>, Vec<bool>) = if k == 2 {
        let score = |p: &Vec<f32>| f64::from(p[positive]);
        (found.iter().map(score).collect(), truth.iter().map(|t| *t == positive).collect())
    } else {
        let score = |(p, c): (&Vec<f32>, &usize)| f64::from(p[*c]);
        let right = truth.iter().zip(&called).map(|(t, c)| t == c);
        (found.iter().zip(&called).map(score).collect(), right.collect())
    };
    let auc = if k == 2 {
        roc_auc(&scores, &hit).map_err(wrong)?
    } else {
        let flat: Vec<f64> = found.iter().flatten().map(|p| f64::from(*p)).collect();
        macro_roc_auc(&flat, truth, k).map_err(wrong)?
    };
    let of_two = |value: f64| (k == 2).then_some(value);
    Ok(CropRow {
        perturbation,
        f1: if k == 2 { matrix.f1(positive) } else { matrix.macro_f1() },
        balanced_accuracy: matrix.balanced_accuracy(),
        auc,
        ece: stats::platt::ece(&scores, &hit, &vec![1.0; hit.len()], BINS),
        precision: of_two(matrix.precision(positive)),
        recall: of_two(matrix.recall(positive)),
    })
}

impl CropRobustness {
    /// Writes `robustness.csv`, `robustness.json` and `robustness.svg`.
    ///
    /// # Errors
    /// The file system's.
    pub fn write(&self, dir: &Path) -> Result<(), RobustnessError> {
        let text = |v: Option<f64>| v.map(|v| format!("{v:.4}")).unwrap_or_default();
        let head = ["perturbation", "f1", "precision", "recall", "balanced_accuracy", "auc", "ece"];
        let mut table = Writer::new(head);
        for r in &self.rows {
            table.push([
                r.perturbation.clone(),
                text(Some(r.f1)),
                text(r.precision),
                text(r.recall),
                text(Some(r.balanced_accuracy)),
                text(r.auc),
                text(Some(r.ece)),
            ]);
        }
        table.write(&dir.join("robustness.csv"))?;
        file::write(&dir.join("robustness.svg"), self.picture().as_bytes())?;
        base::json::write(&dir.join("robustness.json"), self)?;
        Ok(())
    }

    /// A bar per perturbation.
    fn picture(&self) -> String {
        let bar = |row: &CropRow| Bar {
            name: row.perturbation.clone(),
            value: Some(row.f1),
            marks: [row.auc, Some(row.ece)],
        };
        let rows: Vec<Bar> = self.rows.iter().map(bar).collect();
        let axis = "F1 (bar), AUC (ring), calibration error (cross)";
        charts::bars("As the package calls", axis, &rows).svg()
    }

    /// The entry for a model card.
    #[must_use]
    pub fn measured(&self, command: &[String]) -> Measured {
        let clean = self.rows.first();
        Measured {
            f1_clean: clean.map(|r| r.f1),
            f1_mean: Some(self.mean_f1),
            f1_worst: Some(self.worst.f1),
            worst: Some(self.worst.change.clone()),
            auc_clean: clean.and_then(|r| r.auc),
            ece_clean: clean.map(|r| r.ece),
            items: self.crops.iter().sum(),
            changes: self.rows.len() - 1,
            command: command.join(" "),
        }
    }
}

impl fmt::Display for CropRobustness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = ["F1", "bal.acc", "AUC", "ECE"];
        write!(f, "{:<18}", "change")?;
        head.iter().try_for_each(|h| write!(f, " {h:>7}"))?;
        writeln!(f)?;
        for r in &self.rows {
            let share = |v: Option<f64>| v.map_or("-".into(), |v| format!("{v:.3}"));
            write!(f, "{:<18}", r.perturbation)?;
            for v in [Some(r.f1), Some(r.balanced_accuracy), r.auc, Some(r.ece)] {
                write!(f, " {:>7}", share(v))?;
            }
            writeln!(f)?;
        }
        let WorstChange { change, f1 } = &self.worst;
        let n: usize = self.crops.iter().sum();
        writeln!(f, "mean F1 {:.3}, worst {f1:.3} ({change}), {n} crops", self.mean_f1)
    }
}
