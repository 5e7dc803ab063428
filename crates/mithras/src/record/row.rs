//! One candidate of a slide, as it is reported.

use super::subtype::Subtypes;
use detect::Flaw;
use mitosis::{Detection, Resolution};
use serde::Serialize;

/// One row: a candidate, accepted or not.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DetectionRow {
    /// Level-0 px, to 0.01.
    pub x_px: f64,
    /// Level-0 px, to 0.01.
    pub y_px: f64,
    /// Micrometres from the level-0 origin, to 0.001.
    pub x_um: f64,
    /// Micrometres from the level-0 origin, to 0.001.
    pub y_um: f64,
    /// First-stage score in [0, 1].
    pub s_seg: f32,
    /// Second-stage score in [0, 1]; empty when segmentation ran alone.
    pub s_cls: Option<f32>,
    /// Whether the threshold pair accepts it.
    pub accepted: bool,
    /// Whether it is so far outside the tissue that it cannot be accepted.
    #[serde(default)]
    pub outside_tissue: bool,
    /// The flaw of the area around it; it counts nevertheless.
    pub flaw: Option<Flaw>,
    /// Subtypes of an accepted figure, after `--subtypes`.
    #[serde(skip)]
    pub subtypes: Option<Subtypes>,
}

impl DetectionRow {
    /// A detection, rounded for print.
    #[must_use]
    pub fn new(d: &Detection, resolution: &Resolution, accepted: bool) -> Self {
        let at = d.candidate.centroid;
        let um = resolution.to_physical(at);
        let round = |v: f64, steps: f64| (v * steps).round() / steps;
        Self {
            x_px: round(at.x, 100.0),
            y_px: round(at.y, 100.0),
            x_um: round(um.x, 1000.0),
            y_um: round(um.y, 1000.0),
            s_seg: d.candidate.s_seg.get(),
            s_cls: d.s_cls.map(mitosis::Score::get),
            accepted,
            outside_tissue: false,
            flaw: None,
            subtypes: None,
        }
    }

    /// Whether its px and um are one place on a slide of this resolution; the rounding of both aside.
    #[must_use]
    pub fn is_one_place(&self, resolution: &Resolution) -> bool {
        let near = |px: f64, um: f64, mpp: f64| (px * mpp - um).abs() <= 0.01 * mpp + 0.001;
        near(self.x_px, self.x_um, resolution.x.get())
            && near(self.y_px, self.y_um, resolution.y.get())
    }

    /// What ranks it: the second score where there is one.
    #[must_use]
    pub fn score(&self) -> f32 {
        self.s_cls.unwrap_or(self.s_seg)
    }
}
