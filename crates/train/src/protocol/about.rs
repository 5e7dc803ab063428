//! `protocol.json`: what a run over folds is about.

use regions::task::Task;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

use crate::error::{Result, TrainError};
use crate::preset::Init;
use crate::run::{FOLD, MODEL, RunOptions};
use crate::start::digest;
use crate::text::write_text;

/// File name in a run.
pub(super) const FILE: &str = "protocol.json";
pub(super) const SCHEMA: &str = "mithras.protocol/1";
/// The word of a probe by nearest neighbours.
pub(super) const KNN: &str = "knn";

/// The folder of the model that was trained on all items.
pub const FINAL: &str = "final";

/// A model of a run over folds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// That of a fold, by its number.
    Fold(usize),
    /// That of all items.
    Final,
}

impl Part {
    /// Its folder in a run.
    #[must_use]
    pub fn dir(self, run: &Path) -> PathBuf {
        match self {
            Self::Fold(k) => fold_dir(run, k),
            Self::Final => run.join(FINAL),
        }
    }
}

impl From<usize> for Part {
    fn from(k: usize) -> Self {
        Self::Fold(k)
    }
}

/// As tables and cards name it.
impl std::fmt::Display for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Fold(k) => write!(f, "{k}"),
            Self::Final => f.write_str("none"),
        }
    }
}

impl std::str::FromStr for Part {
    type Err = String;

    fn from_str(word: &str) -> std::result::Result<Self, String> {
        match (word, word.parse()) {
            ("none", _) => Ok(Self::Final),
            (_, Ok(k)) => Ok(Self::Fold(k)),
            _ => Err("is neither the number of a fold nor `none`".into()),
        }
    }
}

/// The folder of fold `k`.
#[must_use]
pub fn fold_dir(run: &Path, k: usize) -> PathBuf {
    run.join(format!("fold-{k}"))
}

/// Notes for the reader of a fold's metrics, in its folder.
const NOTES: &str = "notes.json";
/// Version of that file.
const NOTES_SCHEMA: &str = "mithras.notes/1";

/// `notes.json`.
#[derive(Serialize, Deserialize)]
struct Notes {
    schema: String,
    notes: Vec<String>,
}

/// Writes the notes on a fold into its folder, if there are any.
pub(super) fn put_notes(fold: &Path, notes: &[String]) -> Result<()> {
    if notes.is_empty() {
        return Ok(());
    }
    let file = Notes { schema: NOTES_SCHEMA.into(), notes: notes.to_vec() };
    write_text(&fold.join(NOTES), &serde_json::to_string_pretty(&file).expect("plain data"))
}

/// Notes on the held-out results of a fold, by its folder: what its starting weights had seen of it.
///
/// # Errors
/// A file that was changed.
pub fn read_fold_notes(fold: &Path) -> Result<Vec<String>> {
    let path = fold.join(NOTES);
    if !path.is_file() {
        return Ok(vec![]);
    }
    let text = base::file::read_string(&path).map_err(|e| TrainError::run(&path, e))?;
    let file: Notes = base::json::parse(text.as_bytes()).map_err(|e| TrainError::run(&path, e))?;
    if file.schema != NOTES_SCHEMA {
        return Err(TrainError::run(&path, format!("schema `{}`", file.schema)));
    }
    Ok(file.notes)
}

/// What a run over folds is about, as later verbs need it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct About {
    /// `mithras.protocol/1`.
    pub schema: String,
    /// `finetune` or `probe`.
    pub verb: String,
    /// The task.
    pub task: Task,
    /// Class names in output order.
    pub classes: Vec<String>,
    /// The positive class, where there is one: the kept epoch, the figures and the threshold are
    /// by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub positive: Option<String>,
    /// Side of the centred square that is shown, pixels at 0.25 um/px.
    pub crop: usize,
    /// Symmetric copies averaged when predicting: 1, 4 or 8.
    pub symmetries: u8,
    /// Of a probe: `linear`, `knn` or `logistic`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe: Option<String>,
    /// Of a probe: SHA-256 of all that changes a feature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub features_sha256: Option<String>,
    /// Number of folds.
    pub folds: usize,
    /// SHA-256 of the resolved preset.
    pub preset_sha256: String,
    /// Digest of the training set.
    pub set_sha256: String,
    /// Digest of the fold manifest.
    pub folds_sha256: String,
    /// Of fine-tuning: SHA-256 of the file of starting weights, or [`FOLD`] where every fold has its own. Older
    /// versions did not record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub init_sha256: Option<String>,
}

/// What [`About::init_sha256`] is of a run with these options.
pub(super) fn init_sha256(init: Init, options: &RunOptions) -> Result<Option<String>> {
    match &options.init {
        Some(_) if options.by_fold() => Ok(Some(FOLD.into())),
        Some(file) if init != Init::Scratch => digest(file).map(Some),
        _ => Ok(None),
    }
}

impl About {
    /// The positive class; of runs that were begun before it was recorded, the task's own.
    #[must_use]
    pub fn positive(&self) -> Option<String> {
        self.positive.clone().or_else(|| self.task.positive().map(str::to_owned))
    }

    /// The weights of a model of the run in `run`.
    ///
    /// # Errors
    /// [`TrainError::Run`] when it is not trained yet, and for nearest neighbours, which have no
    /// network.
    pub fn model(&self, run: &Path, part: Part) -> Result<PathBuf> {
        let path = part.dir(run).join(MODEL);
        if path.is_file() {
            return Ok(path);
        }
        if self.probe.as_deref() == Some(KNN) {
            let why = "nearest neighbours hand on no classifier; their figures are those of the \
                       held-out items, a linear or logistic probe has weights";
            return Err(TrainError::run(run, why));
        }
        Err(TrainError::run(&path, "this fold is not trained yet"))
    }

    /// Reads a run's `protocol.json`.
    ///
    /// # Errors
    /// When `run` holds no such run.
    pub fn read(run: &Path) -> Result<Self> {
        let path = run.join(FILE);
        let text = base::file::read_string(&path)
            .map_err(|e| TrainError::run(&path, format!("{e}; a run over folds has this file")))?;
        let about: Self =
            base::json::parse(text.as_bytes()).map_err(|e| TrainError::run(&path, e))?;
        if about.schema != SCHEMA {
            return Err(TrainError::run(&path, format!("schema `{}`", about.schema)));
        }
        Ok(about)
    }
}
