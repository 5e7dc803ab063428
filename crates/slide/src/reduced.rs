//! The slide at a multiple of level-0 pixels, for screens: works without a resolution.

use crate::SlideError;
use crate::resample::{Axis, SAME};
use crate::slide::Slide;
use crate::source::{Level, TileAt};
use mitosis::{Rect, RgbTile};

impl Slide {
    /// Reads a rectangle of the frame whose pixel (i, j) covers `factor` level-0 pixels each way, from
    /// the level-0 origin; `factor` is at least 1. The source is the coarsest level that is as fine, so
    /// that a step of `s` between levels reads fewer than `s * s` pixels for one; area mean. Tiles that
    /// cannot be decoded, nor taken from a finer level, are white and named; white outside.
    ///
    /// # Errors
    /// As [`Slide::read_region`], unless only tiles are at fault.
    pub fn read_reduced(
        &self,
        factor: f64,
        rect: Rect,
    ) -> Result<(RgbTile, Vec<TileAt>), SlideError> {
        let factor = factor.max(1.0);
        let limit = factor * (1.0 + SAME);
        let fine = |l: &Level| l.downsample_x.max(l.downsample_y) <= limit;
        let index = self.trusted(self.levels().iter().rposition(fine).unwrap_or(0))?;
        let l = &self.levels()[index];
        let ax = Axis::new(l.downsample_x, factor, l.width);
        let ay = Axis::new(l.downsample_y, factor, l.height);
        let mut unread = Vec::new();
        let tile = self.read_axes(index, &ax, &ay, rect, &mut |e, at| {
            if !e.is_tile() {
                return Err(e);
            }
            unread.push(at);
            Ok(())
        })?;
        Ok((tile, unread))
    }
}
