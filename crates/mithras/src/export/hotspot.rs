//! A hotspot as files have it.

use mitosis::Resolution;
use mitosis::count::HALF_SIDE_UM;
use serde::{Deserialize, Serialize};

/// The densest square.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct HotspotEntry {
    /// Level-0 px.
    pub centre_px: [f64; 2],
    /// um from the level-0 origin.
    pub centre_um: [f64; 2],
    /// Upper left corner, level-0 px; may be outside the slide.
    pub min_px: [f64; 2],
    /// Lower right corner, level-0 px.
    pub max_px: [f64; 2],
    /// Side of the square, um.
    pub side_um: f64,
}

impl HotspotEntry {
    pub(crate) fn new(h: &mitosis::Hotspot, resolution: &Resolution) -> Self {
        let round = |v: f64, steps: f64| (v * steps).round() / steps;
        let px = |p: mitosis::Point<mitosis::Level0>| [round(p.x, 100.0), round(p.y, 100.0)];
        let um = resolution.to_physical(h.centre);
        Self {
            centre_px: px(h.centre),
            centre_um: [round(um.x, 1000.0), round(um.y, 1000.0)],
            min_px: px(h.min),
            max_px: px(h.max),
            side_um: round(2.0 * HALF_SIDE_UM, 1000.0),
        }
    }
}
