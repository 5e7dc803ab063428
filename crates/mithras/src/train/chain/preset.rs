//! A detector's preset: everything that changes a number, in one TOML file.

use super::super::Result;
use super::super::frames::Candidates;
use artifact::digest;
use corpus::folds::Scheme;
use mitosis::matching::Rule;
use serde::{Deserialize, Serialize};
use std::path::Path;
use train::preset::{FinetunePreset, Preset, SegmentPreset, load_with};

/// How the data are split.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FoldsPreset {
    /// Number of folds; 0: one per slide.
    pub count: usize,
    /// Seed of ties.
    pub seed: u64,
}

impl FoldsPreset {
    /// The scheme.
    #[must_use]
    pub fn scheme(&self) -> Scheme {
        match self.count {
            0 => Scheme::LeaveOneOut,
            n => Scheme::Stratified(n),
        }
    }
}

/// How the operating point is chosen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CalibratePreset {
    /// Matching rule, `midog` or `optimal`.
    pub rule: String,
    /// Flips and quarter turns of a crop whose probabilities are averaged, 1 to 8.
    pub symmetries: u8,
}

/// What the package is called.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackagePreset {
    /// Its name.
    pub name: String,
    /// Licence of the weights.
    pub license: String,
    /// Keep f32 weights instead of f16.
    pub f32: bool,
}

/// All of a detector.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DetectorPreset {
    /// The split.
    pub folds: FoldsPreset,
    /// From probabilities to candidates.
    pub candidates: Candidates,
    /// The operating point.
    pub calibrate: CalibratePreset,
    /// The package.
    pub package: PackagePreset,
    /// The first stage. Its AMi-Br keys do not matter here: the dataset says what there is.
    pub segment: SegmentPreset,
    /// The second stage; `pools` name the domains `frames`, `patches` and `unlabelled`.
    pub finetune: FinetunePreset,
}

impl DetectorPreset {
    /// Reads a preset and applies `key=value` changes.
    ///
    /// # Errors
    /// The key that is unknown or out of range, with the nearest one.
    pub fn load(path: &Path, set: &[String]) -> Result<Self> {
        Ok(load_with(path, set, Self::check)?)
    }

    fn check(&self) -> std::result::Result<(), String> {
        let stage = |name: &str, checked: std::result::Result<(), (&'static str, String)>| {
            checked.map_err(|(key, reason)| format!("{name}.{key} {reason}"))
        };
        stage("segment", self.segment.check())?;
        stage("finetune", self.finetune.check())?;
        self.rule().map_err(|e| format!("calibrate.rule: {e}"))?;
        if !(1..=8).contains(&self.calibrate.symmetries) {
            return Err("calibrate.symmetries must be from 1 to 8".into());
        }
        if !(0.0..=1.0).contains(&self.candidates.threshold) {
            return Err("candidates.threshold must be from 0 to 1".into());
        }
        if self.folds.count == 1 {
            return Err("folds.count must be 0 (one per slide) or at least 2".into());
        }
        Ok(())
    }

    /// The matching rule.
    ///
    /// # Errors
    /// A word that is none.
    pub fn rule(&self) -> std::result::Result<Rule, mitosis::matching::MatchError> {
        self.calibrate.rule.parse()
    }

    /// The resolved preset as TOML.
    #[must_use]
    pub fn to_toml(&self) -> String {
        toml::to_string(self).unwrap_or_default()
    }

    /// SHA-256 of the resolved preset.
    #[must_use]
    pub fn hash(&self) -> String {
        digest::sha256(self.to_toml())
    }
}
