//! What is known of a step on disk: `state/NAME.json`.

use crate::error::{ExperimentError, Result};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Name and version of the form.
pub const SCHEMA: &str = "mithras.step/1";

/// The state of a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "lowercase")]
pub enum StepState {
    /// It began and has not ended, or its process was killed.
    Running,
    /// It is done.
    Done {
        /// Digest of what it made.
        result: String,
    },
    /// It ended with an error.
    Failed {
        /// The error.
        reason: String,
    },
}

/// The record of a step.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Record {
    /// [`SCHEMA`].
    pub schema: String,
    /// Name of the step.
    pub step: String,
    /// Digest of its command and of all that it read.
    pub key: String,
    /// Its state.
    #[serde(flatten)]
    pub state: StepState,
    /// Seconds that it took, all its attempts at this key together.
    #[serde(default)]
    pub seconds: f64,
    /// Seconds that it worked on processors, where the system reports it: unlike `seconds` the same
    /// whatever else the machine does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processor_seconds: Option<f64>,
    /// Peak memory of its process, MiB, where the system reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_mib: Option<u64>,
    /// The command, with references.
    pub words: Vec<String>,
    /// Version of this program.
    pub program: String,
}

impl Record {
    /// A record of a step that begins.
    #[must_use]
    pub fn begun(step: &crate::graph::Step, key: &str) -> Self {
        Self {
            schema: SCHEMA.into(),
            step: step.name.clone(),
            key: key.into(),
            state: StepState::Running,
            seconds: 0.0,
            processor_seconds: None,
            peak_mib: None,
            words: step.words.clone(),
            program: concat!("mithras ", env!("CARGO_PKG_VERSION")).into(),
        }
    }

    /// Reads the record of a step; `None` where it never began, or the file is damaged.
    #[must_use]
    pub fn read(out: &Path, step: &str) -> Option<Self> {
        let record: Self = base::json::read(&path(out, step)).ok()?;
        (record.schema == SCHEMA && record.step == step).then_some(record)
    }

    /// Writes it.
    ///
    /// # Errors
    /// A folder that cannot be made, a full disk.
    pub fn write(&self, out: &Path) -> Result<()> {
        let path = path(out, &self.step);
        let folder = path.parent().unwrap_or(out);
        std::fs::create_dir_all(folder).map_err(|e| ExperimentError::path(folder, e))?;
        Ok(base::json::write(&path, self)?)
    }
}

fn path(out: &Path, step: &str) -> PathBuf {
    out.join("state").join(format!("{step}.json"))
}
