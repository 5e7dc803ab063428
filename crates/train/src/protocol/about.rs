//! `protocol.json`: what a run over folds is about.

use corpus::task::Task;
use serde::{Deserialize, Serialize};
use std::path::Path;

use crate::error::{Result, TrainError};

/// File name in a run.
pub(super) const FILE: &str = "protocol.json";
pub(super) const SCHEMA: &str = "mithras.protocol/1";

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
    /// Number of folds.
    pub folds: usize,
    /// SHA-256 of the resolved preset.
    pub preset_sha256: String,
    /// Digest of the training set.
    pub set_sha256: String,
    /// Digest of the fold manifest.
    pub folds_sha256: String,
}

impl About {
    /// The positive class; of runs that were begun before it was recorded, the task's own.
    #[must_use]
    pub fn positive(&self) -> Option<String> {
        self.positive.clone().or_else(|| self.task.positive().map(str::to_owned))
    }

    /// Reads a run's `protocol.json`.
    ///
    /// # Errors
    /// When `run` holds no such run.
    pub fn read(run: &Path) -> Result<Self> {
        let path = run.join(FILE);
        let text = std::fs::read_to_string(&path).map_err(|e| {
            TrainError::run(&path, format!("{e}; give the folder of a run over folds"))
        })?;
        let about: Self = serde_json::from_str(&text).map_err(|e| TrainError::run(&path, e))?;
        if about.schema != SCHEMA {
            return Err(TrainError::run(&path, format!("schema `{}`", about.schema)));
        }
        Ok(about)
    }
}
