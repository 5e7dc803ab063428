//! Runs over folds ([`train::protocol`]) judged: figures of the held-out items, the operating point
//! they give, the test part, and a fold's classifier as a package.
//!
//! The positive class is the run's: by it the epoch was kept, by it the figures are stated, by it
//! the threshold is chosen.

use super::export::{note_slides, note_weights};
use super::seen::Overlap;
use super::{Result, TrainingError};
use crate::Named;
use base::file::{self, Lock};
use evaluation::evaluate::classification::{Classification, ClassificationPlan, classification};
use infer::card::{ClassifierCard, ModelCard};
use mitosis::Mpp;
use net::onnx::{ExportOptions, WeightKind};
use regions::task::TestSet;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use train::port::TorchClassifier;
use train::protocol::{
    About, FINAL, PREDICTIONS, Part, fold_dir, read_fold_notes, tables, test as predict,
    test_final, write_predictions,
};

/// `metrics.json` and its kin.
#[derive(Serialize)]
struct Metrics<'a> {
    schema: &'static str,
    items: &'a str,
    run: &'a About,
    #[serde(flatten)]
    figures: &'a Classification,
    #[serde(skip_serializing_if = "Option::is_none")]
    at_operating_point: Option<&'a Classification>,
}

/// A table of predictions and its figures.
#[derive(Clone, Debug)]
pub struct Judged {
    /// Name of the table, without `.csv`.
    pub name: String,
    /// Folds that are trained.
    pub done: usize,
    /// The figures over all folds, once all are trained.
    pub figures: Option<Classification>,
}

/// The figures over folds, a line each.
#[must_use]
pub fn score_lines(name: &str, folds: usize, figures: &Classification) -> String {
    let keys = ["f1", "macro_f1", "balanced_accuracy", "accuracy", "roc_auc"];
    let line = |key: &&str| {
        let over = figures.over_folds.as_ref()?.get(key)?;
        let (mean, sd) = (over.mean, over.sd?);
        Some(format!("{name}: {key} {mean:.3} +- {sd:.3} over {folds} folds\n"))
    };
    keys.iter().filter_map(line).collect()
}

/// The positive class of a table of the run: the run's own, or of the coarser task its own.
fn positive(about: &About, name: &str) -> Option<String> {
    match about.task.coarser() {
        Some(c) if name.ends_with(&format!("-{}", c.name)) => c.task.positive().map(str::to_owned),
        _ => about.positive(),
    }
}

fn score_table(
    path: &Path,
    about: &About,
    name: &str,
    fold: Option<&str>,
    threshold: Option<f64>,
) -> Result<Classification> {
    Ok(classification(&ClassificationPlan {
        predictions: path.to_path_buf(),
        positive: positive(about, name),
        threshold,
        fold: fold.map(str::to_owned),
        domain: Some("domain".into()),
        ..ClassificationPlan::default()
    })?)
}

/// Writes the metrics of the table `name`: `metrics.json` for `predictions.csv`, and so on.
fn put(dir: &Path, name: &str, metrics: &Metrics<'_>) -> Result<()> {
    let path = dir.join(name.replace(PREDICTIONS, "metrics")).with_extension("json");
    let text = serde_json::to_string_pretty(metrics).map_err(|e| TrainingError::file(&path, e))?;
    Ok(file::write(&path, text.as_bytes())?)
}

/// Judges the folds of a run that are trained; over all of them once they are complete.
///
/// # Errors
/// A folder that is not a run over folds, tables that were changed, a full disk.
pub fn finish(run: &Path) -> Result<Vec<Judged>> {
    let about = About::read(run)?;
    let schema = "mithras.classification/1";
    let mut all = vec![];
    for name in tables(about.task, PREDICTIONS) {
        let mut rows = String::new();
        let (mut done, mut notes) = (0, vec![]);
        for k in 0..about.folds {
            let dir = fold_dir(run, k);
            let path = dir.join(&name).with_extension("csv");
            let Ok(text) = file::read_string(&path) else { continue };
            let mut figures = score_table(&path, &about, &name, None, None)?;
            let own = read_fold_notes(&dir)?;
            figures.notes.extend(own.iter().cloned());
            notes.extend(own);
            let figures = &figures;
            let (items, run) = ("held-out items of the fold", &about);
            put(&dir, &name, &Metrics { schema, items, run, figures, at_operating_point: None })?;
            let body = if rows.is_empty() { 0 } else { text.find('\n').map_or(0, |n| n + 1) };
            rows.push_str(&text[body..]);
            done += 1;
        }
        if done < about.folds {
            all.push(Judged { name, done, figures: None });
            continue;
        }
        let path = run.join(&name).with_extension("csv");
        file::write(&path, rows.as_bytes())?;
        let mut figures = score_table(&path, &about, &name, Some("fold"), None)?;
        figures.notes.extend(notes);
        let items = "held-out items of all folds";
        let metrics =
            Metrics { schema, items, run: &about, figures: &figures, at_operating_point: None };
        put(run, &name, &metrics)?;
        all.push(Judged { name, done, figures: Some(figures) });
    }
    Ok(all)
}

/// Of two classes: the probability of the positive one from which on it has the largest F1, pooled
/// over the held-out sides of all folds.
///
/// # Errors
/// A table that was changed.
pub fn operating_point(run: &Path, about: &About, table: &str) -> Result<Option<f64>> {
    let path = run.join(table).with_extension("csv");
    if !path.is_file() {
        return Ok(None);
    }
    Ok(score_table(&path, about, table, None, None)?.largest_f1.map(|l| l.threshold))
}

/// A run to be scored on its test part.
#[derive(Clone, Debug)]
pub struct Test {
    /// The run, all folds trained, or none and the model of all items.
    pub run: PathBuf,
    /// The data folder.
    pub data: PathBuf,
    /// Folder for the results; absent: `RUN/test`, and for further test sets `RUN/test-` with the first
    /// eight digits of the set's digest.
    pub out: Option<PathBuf>,
    /// Score a set that was scored before.
    pub again: bool,
    /// Score models that were trained on slides of the set; the results note it.
    pub allow_seen: bool,
    /// `auto`, `cpu`, `cuda`, `cuda:1`.
    pub device: String,
}

/// Version of `tested.json`.
const TESTED: &str = "mithras.tested/2";

/// `tested.json`: the test sets that a run was scored on.
#[derive(Serialize, Deserialize)]
struct Tested {
    schema: String,
    sets: Vec<Scored>,
}

/// Note of a scoring; in versions before the list, the whole file.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Scored {
    test_set_sha256: String,
    items: usize,
    /// Folder of the results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(serialize_with = "base::json::lossy")]
    out: Option<PathBuf>,
}

impl Tested {
    fn read(path: &Path) -> Result<Self> {
        let empty = || Self { schema: TESTED.into(), sets: vec![] };
        if !path.exists() {
            return Ok(empty());
        }
        let text = file::read_whole(path).map_err(TrainingError::io(path))?;
        if let Ok(one) = serde_json::from_slice::<Scored>(&text) {
            return Ok(Self { sets: vec![one], ..empty() });
        }
        let all: Self = base::json::parse(&text).map_err(|e| TrainingError::file(path, e))?;
        if all.schema != TESTED {
            return Err(TrainingError::file(path, format!("schema `{}` is not known", all.schema)));
        }
        Ok(all)
    }
}

/// What came of a scoring.
#[derive(Clone, Debug)]
pub struct TestResults {
    /// The folder of the results.
    pub out: PathBuf,
    /// What was judged.
    pub figures: Vec<Named<Classification>>,
    /// What the models have seen of the set.
    pub notes: Vec<String>,
}

/// Scores a run's fold models, their mean, and the model of all items, of these what was trained, on a
/// test part. Every test set is scored once, any number of sets by one run. For two classes there are also the
/// metrics at the operating point that was chosen on the held-out items.
///
/// # Errors
/// A set that this run was scored on before or, unless allowed, trained on; a fold that is not trained, a test part
/// that cannot be read.
pub fn test(t: &Test) -> Result<TestResults> {
    let about = About::read(&t.run)?;
    let _lock = Lock::take(&t.run)?;
    let marker = t.run.join("tested.json");
    let mut tested = Tested::read(&marker)?;
    let set = TestSet::of_classes(about.task, &t.data, &about.classes);
    let set = set.map_err(train::TrainError::from)?;
    let sha256 = set.digest();
    let before = tested.sets.iter().find(|s| s.test_set_sha256 == sha256);
    if let (Some(scored), false) = (before, t.again) {
        let note = format!("{} crops, set {}", scored.items, &sha256[..8.min(sha256.len())]);
        return Err(TrainingError::ScoredBefore { run: t.run.clone(), note });
    }
    let notes = Overlap::find(&t.run, &about, &set)?.notes(&t.run, t.allow_seen)?;
    let own = || match (before, tested.sets.is_empty()) {
        (Some(Scored { out: Some(out), .. }), _) => out.clone(),
        (Some(_), _) | (None, true) => t.run.join("test"),
        (None, false) => t.run.join(format!("test-{}", &sha256[..8.min(sha256.len())])),
    };
    let out = t.out.clone().unwrap_or_else(own);
    let mut lists = predict(&t.run, &set, &t.device)?;
    std::fs::create_dir_all(&out).map_err(TrainingError::io(&out))?;
    let ensemble = lists.pop();
    let rows = ensemble.is_some().then(|| lists.concat());
    let whole = test_final(&t.run, &set, &t.device)?;
    let mut results = vec![];
    let parts = [
        (PREDICTIONS, rows, Some("fold"), "test part, every fold's model"),
        ("ensemble", ensemble, None, "test part, mean probabilities of the folds"),
        (FINAL, whole, None, "test part, the model that was trained on all items"),
    ];
    for (stem, rows, fold, items) in parts {
        let Some(rows) = rows else { continue };
        write_predictions(&out, stem, &set, &rows)?;
        for name in tables(about.task, stem) {
            let path = out.join(&name).with_extension("csv");
            // A threshold that fits the test items best is nobody's business.
            let noted = |c: &Classification| [&c.notes[..], &notes].concat();
            let blind =
                |c: Classification| Classification { notes: noted(&c), largest_f1: None, ..c };
            let figures = blind(score_table(&path, &about, &name, fold, None)?);
            let held_out = name.replacen(stem, PREDICTIONS, 1);
            let threshold = operating_point(&t.run, &about, &held_out)?;
            let at = threshold
                .map(|t| score_table(&path, &about, &name, fold, Some(t)).map(blind))
                .transpose()?;
            let metrics = Metrics {
                schema: "mithras.classification/1",
                items,
                run: &about,
                figures: &figures,
                at_operating_point: at.as_ref(),
            };
            put(&out, &name, &metrics)?;
            let from = threshold.map(|t| format!("{name} from {t:.3} on"));
            results.push(Named { name, value: figures });
            results.extend(from.zip(at).map(|(name, value)| Named { name, value }));
        }
    }
    tested.sets.retain(|s| s.test_set_sha256 != sha256);
    let (items, noted) = (set.items().len(), Some(out.clone()));
    tested.sets.push(Scored { test_set_sha256: sha256, items, out: noted });
    tested.schema = TESTED.into();
    base::json::write(&marker, &tested)?;
    Ok(TestResults { out, figures: results, notes })
}

/// A classifier of a run to be packaged.
#[derive(Clone, Debug)]
pub struct PartPackage {
    /// Folder of the run.
    pub run: PathBuf,
    /// Whose weights.
    pub part: Part,
    /// Package the coarser task, as sums over the classes.
    pub coarse: bool,
    /// The positive class, if not the run's.
    pub positive: Option<String>,
    /// `[training]` and `[results]` of the card.
    pub about: toml::Table,
    /// Licence of the weights.
    pub license: String,
    /// Name of the package.
    pub name: String,
    /// How its weights are stored.
    pub weights: WeightKind,
}

/// Writes a classifier package into a folder: ONNX and its card, which is read back.
///
/// # Errors
/// A run, fold or coarser task that is not there, or a card that would be refused.
pub fn package(p: &PartPackage, out: &Path) -> Result<()> {
    let about = About::read(&p.run)?;
    let weights = about.model(&p.run, p.part)?;
    let model = TorchClassifier::open(&weights, "cpu")?;
    let spec = &model.spec;
    let options = ExportOptions { weights: p.weights, metadata: vec![] };
    let coarser = about.task.coarser().filter(|_| p.coarse);
    if coarser.is_some() != p.coarse {
        return Err(TrainingError::Invalid("the run's task has no coarser one".into()));
    }
    let words = |all: Vec<&str>| all.into_iter().map(str::to_owned).collect::<Vec<String>>();
    let (classes, outputs) = match coarser {
        Some(c) => (words(c.classes.to_vec()), words(c.of.iter().map(|i| c.classes[*i]).collect())),
        None => (spec.classes.clone(), vec![]),
    };
    let bytes = model.onnx(&options)?;
    std::fs::create_dir_all(out).map_err(TrainingError::io(out))?;
    file::write(&out.join("classifier.onnx"), &bytes)?;
    let mut about_run = p.about.clone();
    let mut take = |key: &str| match about_run.remove(key) {
        Some(toml::Value::Table(t)) => t,
        _ => toml::Table::new(),
    };
    let (mut training, results) = (take("training"), take("results"));
    for (key, value) in [
        ("preset_sha256", &about.preset_sha256),
        ("set_sha256", &about.set_sha256),
        ("folds_sha256", &about.folds_sha256),
        ("fold", &p.part.to_string()),
    ] {
        training.insert(key.into(), toml::Value::String(value.clone()));
    }
    note_weights(&mut training, "", spec);
    note_slides(&mut training, &[spec]);
    let table = tables(about.task, PREDICTIONS).remove(usize::from(p.coarse));
    let of_run = positive(&about, &table);
    // More than two classes have none of their own; the card names one all the same.
    let chosen = p.positive.clone().or(of_run.clone()).or_else(|| classes.first().cloned());
    let chosen = chosen.ok_or_else(|| TrainingError::file(&weights, "has no classes"))?;
    let threshold = match of_run {
        Some(name) if name == chosen => operating_point(&p.run, &about, &table)?,
        _ => None,
    };
    let card = ModelCard {
        classifier: Some(ClassifierCard {
            file: "classifier.onnx".into(),
            sha256: base::digest::sha256(&bytes),
            architecture: spec.architecture.clone(),
            mpp: Mpp::new(spec.mpp).map_err(|e| TrainingError::file(&weights, e))?,
            crop: about.crop,
            input: spec.input as usize,
            interpolation: Default::default(),
            mean: spec.mean,
            std: spec.std,
            classes,
            positive: chosen,
            outputs,
            scale: None,
            folds: vec![],
            symmetries: about.symmetries,
            symmetries_from: None,
            bf16: false,
            threshold: threshold.map(|t| t as f32),
        }),
        training: Some(training),
        results: (!results.is_empty()).then_some(results),
        ..ModelCard::new(&p.name, &p.license)
    };
    file::write(&out.join("card.toml"), card.to_toml()?.as_bytes())?;
    infer::ModelPackage::open(out)?;
    Ok(())
}
