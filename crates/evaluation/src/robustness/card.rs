//! The entry of a model card with a package's robustness.

use super::{Robustness, RobustnessError};
use base::file;
use infer::ModelPackage;
use serde::Serialize;
use std::path::Path;

/// `[results.robustness]` of a card.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measured {
    /// Of the images as they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub f1_clean: Option<f64>,
    /// Over the clean images and every change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub f1_mean: Option<f64>,
    /// Of the worst change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub f1_worst: Option<f64>,
    /// That change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worst: Option<String>,
    /// Ranking on the images as they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auc_clean: Option<f64>,
    /// Calibration error on the images as they are, of a classifier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ece_clean: Option<f64>,
    /// Figures of a detector's images, crops of a classifier.
    pub items: usize,
    /// Number of changes, without the clean images.
    pub changes: usize,
    /// The command that measured it.
    pub command: String,
}

impl Robustness {
    /// The entry for a model card.
    #[must_use]
    pub fn measured(&self, command: &[String]) -> Measured {
        let clean = self.rows.first();
        let worst = self.worst.clone();
        Measured {
            f1_clean: clean.and_then(|r| r.f1),
            f1_mean: self.mean_f1,
            f1_worst: worst.as_ref().map(|w| w.f1),
            worst: worst.map(|w| w.change),
            auc_clean: clean.and_then(|r| r.auc),
            ece_clean: None,
            items: self.figures,
            changes: self.rows.len().saturating_sub(1),
            command: command.join(" "),
        }
    }
}

impl Measured {
    /// Writes it into the card of the package in `folder`, in place of an older entry.
    ///
    /// # Errors
    /// [`RobustnessError`]: no package, or a card that cannot be written.
    pub fn put(&self, folder: &Path) -> Result<(), RobustnessError> {
        let mut card = ModelPackage::open(folder)?.card;
        let bad = |reason: String| RobustnessError::Nothing(reason);
        let own = toml::Table::try_from(self).map_err(|e| bad(e.to_string()))?;
        card.results.get_or_insert_default().insert("robustness".into(), own.into());
        let text = card.to_toml().map_err(|e| bad(e.to_string()))?;
        Ok(file::write(&folder.join("card.toml"), text.as_bytes())?)
    }
}
