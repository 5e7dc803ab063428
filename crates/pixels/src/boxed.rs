//! A box in a crop.

use serde::{Deserialize, Serialize};

/// An axis-aligned box in crop pixels, `x0 < x1`, `y0 < y1`; edges may be outside the crop.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CropBox {
    /// Left edge.
    pub x0: f32,
    /// Top edge.
    pub y0: f32,
    /// Right edge.
    pub x1: f32,
    /// Bottom edge.
    pub y1: f32,
}

impl CropBox {
    /// The fixed pseudo box: `side` pixels at the centre of a `crop`-pixel crop (50 in 128).
    #[must_use]
    pub fn centred(crop: u32, side: u32) -> Self {
        let (c, h) = (f64::from(crop) / 2.0, f64::from(side) / 2.0);
        #[expect(clippy::cast_possible_truncation, reason = "crop sizes are small")]
        let (lo, hi) = ((c - h) as f32, (c + h) as f32);
        Self { x0: lo, y0: lo, x1: hi, y1: hi }
    }
}
