//! A hotspot as files have it.

use crate::record::SlideEntry;
use mitosis::count::HALF_SIDE_UM;
use mitosis::hotspots::HotspotRule;
use mitosis::{Level0, Point, Resolution};
use serde::{Deserialize, Serialize};

/// Area of a hotspot, mm2: with less tissue its count is a lower bound.
pub const HOTSPOT_MM2: f64 = 2.0;

/// The square of 2 mm2 with most accepted figures.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct HotspotEntry {
    /// Centre, x and y, level-0 px.
    pub centre_px: [f64; 2],
    /// um from the level-0 origin.
    pub centre_um: [f64; 2],
    /// Upper left corner, level-0 px; may be outside the slide.
    pub min_px: [f64; 2],
    /// Lower right corner, level-0 px.
    pub max_px: [f64; 2],
    /// Side of the square, um.
    pub side_um: f64,
    /// The part of it on the slide, mm2; none in files of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_slide_mm2: Option<f64>,
}

/// The part on a slide of the square of 2 mm2 around a place, mm2 to 1e-6.
#[must_use]
pub fn square_on_slide_mm2(
    centre: Point<Level0>,
    slide: &SlideEntry,
    resolution: &Resolution,
) -> f64 {
    let size = [slide.width as f64, slide.height as f64];
    let mm2 = HotspotRule::PAPER.on_slide_mm2(&[centre], size, resolution);
    (mm2 * 1e6).round() / 1e6
}

impl HotspotEntry {
    pub(crate) fn new(h: &mitosis::Hotspot, slide: &SlideEntry, resolution: &Resolution) -> Self {
        let round = |v: f64, steps: f64| (v * steps).round() / steps;
        let px = |p: Point<Level0>| [round(p.x, 100.0), round(p.y, 100.0)];
        let um = resolution.to_physical(h.centre);
        Self {
            centre_px: px(h.centre),
            centre_um: [round(um.x, 1000.0), round(um.y, 1000.0)],
            min_px: px(h.min),
            max_px: px(h.max),
            side_um: round(2.0 * HALF_SIDE_UM, 1000.0),
            on_slide_mm2: Some(square_on_slide_mm2(h.centre, slide, resolution)),
        }
    }
}
