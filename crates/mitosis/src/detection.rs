//! Candidates, detections, and the operating point that accepts them.

use crate::{Level0, Point, Score};
use serde::{Deserialize, Serialize};

/// A first-stage candidate: a region of the probability map.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// Centroid in level-0 pixels.
    pub centroid: Point<Level0>,
    /// Mean probability over the region, `s_seg`.
    pub s_seg: Score,
}

/// A candidate with its second-stage score. Both scores are kept.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Detection {
    /// The first-stage candidate.
    pub candidate: Candidate,
    /// Classifier probability of "mitotic figure", `s_cls`; `None` for a segmentation-only run.
    pub s_cls: Option<Score>,
}

/// The threshold pair, with where it came from.
///
/// Made by calibration over validation folds, or loaded with its provenance; evaluation borrows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OperatingPoint {
    /// A detection needs `s_seg >= seg`.
    pub seg: Score,
    /// A detection needs `s_cls >= cls` when a second stage ran.
    pub cls: Score,
    /// How it was chosen: preset, folds, matching rule, F1 there.
    pub provenance: String,
}

impl OperatingPoint {
    /// Whether the pair accepts a detection.
    #[must_use]
    pub fn accepts(&self, d: &Detection) -> bool {
        d.candidate.s_seg >= self.seg && d.s_cls.is_none_or(|s| s >= self.cls)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_thresholds_hold() {
        let s = |p| Score::new(p).unwrap();
        let op = OperatingPoint { seg: s(0.2), cls: s(0.6), provenance: "test".into() };
        let d = |seg, cls: Option<f32>| Detection {
            candidate: Candidate { centroid: Point::new(0.0, 0.0), s_seg: s(seg) },
            s_cls: cls.map(s),
        };
        assert!(op.accepts(&d(0.2, Some(0.6))));
        assert!(!op.accepts(&d(0.19, Some(0.9))));
        assert!(!op.accepts(&d(0.9, Some(0.59))));
        assert!(op.accepts(&d(0.9, None)));
    }
}
