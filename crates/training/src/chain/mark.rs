//! Done-marks of steps.

use base::digest;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// A done-mark.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Mark {
    pub(super) schema: String,
    pub(super) step: String,
    /// Digest of preset, dataset, folds and starting weights.
    pub(super) made_from: String,
    /// SHA-256 of what it left, by path in the run.
    pub(super) left: BTreeMap<String, String>,
}

pub(super) const MARK: &str = "mithras.step/1";

impl Mark {
    /// Whether the files that the step left in the run are as it left them.
    pub(super) fn is_unchanged(&self, run: &Path) -> bool {
        let same = |(name, sha256): (&String, &String)| {
            digest::sha256_file(&run.join(name)).is_ok_and(|(_, s)| s == *sha256)
        };
        self.left.iter().all(same)
    }
}
