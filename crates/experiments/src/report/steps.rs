//! What came of the steps of an experiment.

use serde::Serialize;
use std::path::{Path, PathBuf};

/// A step in the report.
#[derive(Clone, Debug, Serialize)]
pub struct StepLine {
    /// Its name in the graph; its folder is `steps/NAME`.
    pub name: String,
    /// done, out of date (done, and its command or what it reads changed since), failed, or missing.
    pub state: &'static str,
    /// Why it is not done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Seconds that it took.
    pub seconds: f64,
    /// Seconds that it worked on processors, where the system reports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processor_seconds: Option<f64>,
    /// Most memory, MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_mib: Option<u64>,
    /// Digest of its result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

/// Steps and where their results are.
pub(crate) struct StepOutputs<'a> {
    pub(crate) out: &'a Path,
    pub(crate) steps: Vec<StepLine>,
}

impl StepOutputs<'_> {
    /// The folder of a step that is done, or the reason that it is not.
    pub(crate) fn folder(&self, step: &str) -> Result<PathBuf, String> {
        match self.steps.iter().find(|s| s.name == step) {
            Some(line) if line.state == "done" => Ok(self.out.join("steps").join(step)),
            Some(StepLine { reason: Some(reason), .. }) => Err(reason.clone()),
            _ => Err(format!("step {step} has not run")),
        }
    }
}
