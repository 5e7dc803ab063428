//! Operating points with what may be expected of them, and the scale that they are on.

use std::collections::BTreeMap;

use mitosis::{OperatingPoint, Score};
use serde::{Deserialize, Serialize};
use stats::platt::Platt;

use super::weighted_counts::Counts;
use super::{Robustness, RobustnessError};

/// A named threshold pair with what may be expected of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NamedPoint {
    /// Threshold on `s_seg`.
    pub seg: f32,
    /// Threshold on `s_cls`.
    pub cls: f32,
    /// What it reaches.
    #[serde(flatten)]
    pub reached: Reached,
}

/// What one pair for all folds, or one for each, reaches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reached {
    /// Precision on left-out images, mean over the clean image and every change.
    pub precision: f64,
    /// Recall, likewise.
    pub recall: f64,
    /// Pooled F1 on the left-out images as they are.
    pub f1_clean: f64,
    /// Mean over the clean image and every change.
    pub f1_mean: f64,
    /// The lowest.
    pub f1_worst: f64,
    /// And under which change.
    pub worst: String,
    /// Accepted per mm2 of tissue without labelled figures that the fold never saw.
    pub foreign_per_mm2: Option<f64>,
}

/// Each fold at the balanced point of the other folds, pooled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LeftOut {
    /// The pair of each fold, by name; empty in files of earlier versions, which have that of the first fold alone.
    #[serde(default)]
    pub folds: BTreeMap<String, Thresholds>,
    /// What they reach.
    #[serde(flatten)]
    pub reached: Reached,
}

/// A threshold pair.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Thresholds {
    /// On `s_seg`.
    pub seg: f32,
    /// On `s_cls`.
    pub cls: f32,
}

impl From<&OperatingPoint> for Thresholds {
    fn from(point: &OperatingPoint) -> Self {
        Self { seg: point.seg.get(), cls: point.cls.get() }
    }
}

/// What the balanced point reaches under one change, over all folds together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UnderChange {
    /// Name of the change.
    pub perturbation: String,
    /// None where nothing is accepted.
    pub precision: Option<f64>,
    /// None where there is nothing to find.
    pub recall: Option<f64>,
    /// 2 TP / (2 TP + FP + FN).
    pub f1: f64,
}

impl UnderChange {
    pub(super) fn new(counts: &Counts, perturbation: &str) -> Self {
        Self {
            perturbation: perturbation.to_owned(),
            precision: counts.precision(),
            recall: counts.recall(),
            f1: counts.f_beta(1.0),
        }
    }
}

/// Tissue without figures that no model trained on, by which models come to one scale: what so many of its candidates
/// per mm2 reach is zero to each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tissue {
    /// Candidates per mm2.
    pub per_mm2: f64,
    /// Area.
    pub mm2: f64,
    /// Names of its images.
    pub images: Vec<String>,
    /// The logit of each fold's model that so many reach.
    pub logits: BTreeMap<String, f64>,
}

/// What was chosen, and on what.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Chosen {
    /// Slope of the second stage's Platt scaling.
    pub slope: f64,
    /// Its offset.
    pub offset: f64,
    /// The tissue that brought the models of folds to one scale, which is the scale of slope and offset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tissue: Option<Tissue>,
    /// Both were given, not fitted to these folds.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub scale_given: bool,
    /// Calibration error before it, over all candidates of all changes.
    pub ece_before: f64,
    /// After it, each fold scaled by the other folds' fit, or all by what was given.
    pub ece_after: f64,
    /// ROC-AUC of the second stage over the candidates of the clean images.
    pub auc_clean: f64,
    /// Names of the folds.
    pub folds: Vec<String>,
    /// Perturbations, `clean` first.
    pub perturbations: Vec<String>,
    /// Figures per mm2 at which the folds were counted; none where each counts as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub density: Option<f64>,
    /// By name.
    pub points: BTreeMap<String, NamedPoint>,
    /// The balanced point under every change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<UnderChange>,
    /// Each fold at the balanced point of the other folds, pooled.
    pub left_out: LeftOut,
}

impl Chosen {
    /// What the second stage's logits are scaled by, on the scale that the folds share.
    #[must_use]
    pub fn scale(&self) -> Platt {
        Platt { slope: self.slope, offset: self.offset }
    }

    /// What the logits of one model are scaled by: `on_tissue` are its scores on the folds' tissue.
    ///
    /// # Errors
    /// Tissue where the folds had none, none where they had, or other images.
    pub fn calibrated_scale(
        &self,
        on_tissue: Option<&Robustness>,
    ) -> Result<Platt, RobustnessError> {
        let nothing = |what: &str| Err(RobustnessError::Nothing(what.into()));
        match (&self.tissue, on_tissue) {
            (None, None) => Ok(self.scale()),
            (None, Some(_)) => nothing("the points were chosen without tissue to set the scale by"),
            (Some(_), None) => nothing(
                "the points are on a scale that tissue sets: give the scores of these networks on it if you have them",
            ),
            (Some(t), Some(r)) if t.images != r.images() => {
                nothing("the tissue is not that of the folds: its images have other names")
            }
            (Some(_), Some(r)) => {
                let Platt { slope, offset } = self.scale();
                Ok(Platt { slope, offset: offset - slope * r.tissue_logit()? })
            }
        }
    }

    /// The points of a package's card by name, and what was measured on left-out slides; `scale` is that of its
    /// network.
    ///
    /// # Errors
    /// Thresholds outside 0 to 1.
    pub fn for_card(
        &self,
        scale: &Platt,
    ) -> Result<(BTreeMap<String, infer::card::NamedPoint>, toml::Table), RobustnessError> {
        let invalid = |e: &dyn std::fmt::Display| RobustnessError::Nothing(e.to_string());
        let mut points = BTreeMap::new();
        for (name, p) in &self.points {
            let point = infer::card::NamedPoint {
                seg: Score::new(p.seg).map_err(|e| invalid(&e))?,
                cls: Score::new(p.cls).map_err(|e| invalid(&e))?,
                precision: p.reached.precision,
                recall: p.reached.recall,
                provenance: self.provenance(&p.reached),
            };
            points.insert(name.clone(), point);
        }
        let left_out = toml::Table::try_from(&self.left_out).map_err(|e| invalid(&e))?;
        let scale = [
            ("slope", scale.slope),
            ("offset", scale.offset),
            ("ece_before", self.ece_before),
            ("ece", self.ece_after),
            ("auc_clean", self.auc_clean),
        ];
        let tissue =
            self.tissue.as_ref().map(|t| [("tissue_per_mm2", t.per_mm2), ("tissue_mm2", t.mm2)]);
        let scale = scale.into_iter().chain(tissue.into_iter().flatten());
        let scale = scale.map(|(key, value)| (key.to_owned(), toml::Value::Float(value)));
        let results = toml::Table::from_iter([
            ("left_out_slides".to_owned(), toml::Value::Table(left_out)),
            ("calibration".to_owned(), toml::Value::Table(toml::Table::from_iter(scale))),
        ]);
        Ok((points, results))
    }

    /// On what a point's figures rest.
    fn provenance(&self, p: &Reached) -> String {
        let density =
            self.density.map(|d| format!(", each at {d} figures per mm2")).unwrap_or_default();
        format!(
            "chosen over the left-out slides {}{density} and {} perturbations together: \
             F1 {:.3} clean, {:.3} mean, {:.3} worst ({}); rule midog, radius 7.5 um",
            self.folds.join(", "),
            self.perturbations.len().saturating_sub(1),
            p.f1_clean,
            p.f1_mean,
            p.f1_worst,
            p.worst
        )
    }
}
