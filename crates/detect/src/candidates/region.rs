//! A region of foreground, as sums.

use super::rows;
use mitosis::{Point, Score, Window};
use serde::{Deserialize, Serialize};

/// A candidate in the working frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RawCandidate {
    /// Position; pixel (i, j) has its centre at (i + 0.5, j + 0.5).
    pub at: Point<Window>,
    /// Mean probability of the region, or the probability of the peak.
    pub s_seg: Score,
    /// Pixels of the region after the opening; 1 for a peak.
    pub area_px: u64,
}

/// Sums over a region. Integers: adding them in any order gives the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Region {
    /// First pixel in reading order, (y, x): unique, and the order of the output.
    pub(crate) first: (u32, u32),
    pub(crate) area: u64,
    pub(crate) sum_x: u64,
    pub(crate) sum_y: u64,
    /// In units of 1 / [`rows::ONE`].
    pub(crate) sum_p: u64,
}

impl Region {
    pub(crate) fn merge(&mut self, o: &Region) {
        self.first = self.first.min(o.first);
        self.area += o.area;
        self.sum_x += o.sum_x;
        self.sum_y += o.sum_y;
        self.sum_p = self.sum_p.saturating_add(o.sum_p);
    }

    pub(crate) fn candidate(&self) -> RawCandidate {
        let n = self.area as f64;
        let mean = self.sum_p as f64 / (n * f64::from(rows::ONE));
        RawCandidate {
            at: Point::new(self.sum_x as f64 / n + 0.5, self.sum_y as f64 / n + 0.5),
            s_seg: Score::new(mean.clamp(0.0, 1.0) as f32).expect("a mean of probabilities"),
            area_px: self.area,
        }
    }
}
