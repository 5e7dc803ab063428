//! What was measured: candidates per image and change.

use mitosis::matching::{Case, Rule, Scored, Tally};
use mitosis::{OperatingPoint, Point, Score};
use serde::{Deserialize, Serialize};

/// Schema of `robustness.json`.
pub const SCHEMA: &str = "mithras.robustness/1";

/// A candidate of a changed image.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScoredCandidate {
    /// Place, um from the image's corner.
    pub x_um: f64,
    /// Place, um.
    pub y_um: f64,
    /// First stage.
    pub s_seg: f32,
    /// Second stage.
    pub s_cls: Option<f32>,
}

/// One image under one change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Looked {
    /// Name of the image.
    pub image: String,
    /// True figures, um.
    pub truth: Vec<(f64, f64)>,
    /// Every candidate.
    pub found: Vec<ScoredCandidate>,
}

/// One change over all images.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Its name; `clean` for none.
    pub perturbation: String,
    /// Counts at the operating point.
    #[serde(flatten)]
    pub tally: Tally,
    /// 2 TP / (2 TP + FP + FN).
    pub f1: Option<f64>,
    /// TP / (TP + FP).
    pub precision: Option<f64>,
    /// TP / (TP + FN).
    pub recall: Option<f64>,
    /// Of the last stage's score over the candidates: figures against the others.
    pub auc: Option<f64>,
    /// False positives per mm2.
    pub false_per_mm2: f64,
    /// Truth and candidates of every image under this change.
    pub images: Vec<Looked>,
}

/// The change that costs most; as JSON a list of the two.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "(String, f64)", into = "(String, f64)")]
pub struct WorstChange {
    /// Its name.
    pub change: String,
    /// F1 under it.
    pub f1: f64,
}

impl From<(String, f64)> for WorstChange {
    fn from((change, f1): (String, f64)) -> Self {
        Self { change, f1 }
    }
}

impl From<WorstChange> for (String, f64) {
    fn from(worst: WorstChange) -> Self {
        (worst.change, worst.f1)
    }
}

/// Everything measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Robustness {
    /// [`SCHEMA`].
    pub schema: String,
    /// Name of the package.
    pub model: String,
    /// Its operating point.
    pub operating_point: OperatingPoint,
    /// Matching radius, um.
    pub radius_um: f64,
    /// Matching rule.
    pub rule: Rule,
    /// Area of the images, mm2.
    pub mm2: f64,
    /// True figures.
    pub figures: usize,
    /// Clean first.
    pub rows: Vec<Row>,
    /// Mean F1 over all rows.
    pub mean_f1: Option<f64>,
    /// The change with the lowest F1.
    pub worst: Option<WorstChange>,
}

impl Looked {
    /// As the matching code takes it, each candidate with the scores that `scored` gives it.
    #[must_use]
    pub fn case(&self, scored: impl Fn(&ScoredCandidate) -> Scored) -> Case {
        Case {
            name: self.image.clone(),
            truth: self.truth.iter().map(|&(x, y)| Point::new(x, y)).collect(),
            candidates: self.found.iter().map(scored).collect(),
        }
    }

    /// Whether each candidate is within `radius` of a true figure.
    #[must_use]
    pub fn near_figures(&self, radius: f64) -> Vec<bool> {
        let near = |f: &ScoredCandidate| {
            self.truth.iter().any(|(x, y)| (x - f.x_um).hypot(y - f.y_um) <= radius)
        };
        self.found.iter().map(near).collect()
    }
}

/// A score that was stored as f32.
pub(super) fn score(v: f32) -> Score {
    Score::new(v.clamp(0.0, 1.0)).unwrap_or(Score::ZERO)
}

pub(super) fn scored(f: &ScoredCandidate, s_cls: Option<Score>) -> Scored {
    Scored { at: Point::new(f.x_um, f.y_um), s_seg: score(f.s_seg), s_cls }
}
