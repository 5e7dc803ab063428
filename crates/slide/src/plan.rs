//! Which windows to read: a grid anchored at the level-0 origin, restricted to tissue.

use crate::{Rect, Slide, SlideError, TissueMask};
use mitosis::Mpp;
use serde::Serialize;

/// A window of the working frame, in working pixels; `x` and `y` are multiples of the stride.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct PlannedWindow {
    /// Left edge, working px.
    pub x: i64,
    /// Top edge, working px.
    pub y: i64,
}

/// Windows of `window` px at every multiple of `stride` at `mpp`, in raster order, that touch
/// tissue and together cover every working pixel of it, up to the right and bottom edge of the
/// slide. A window may reach over the edge, where [`Slide::read_at`] gives white.
///
/// Which windows exist depends on the slide, the mask and the three numbers alone.
#[derive(Clone, Debug)]
pub struct WindowPlan<'a> {
    mpp: Mpp,
    window: usize,
    stride: usize,
    /// Level-0 pixels per working pixel.
    scale: (f64, f64),
    columns: i64,
    rows: i64,
    tissue: Option<&'a TissueMask>,
}

impl<'a> WindowPlan<'a> {
    /// Plans windows over the tissue, or over the whole slide without a mask.
    ///
    /// # Errors
    /// When the slide has no resolution.
    ///
    /// # Panics
    /// When `stride` is 0 or larger than `window`: pixels would be missed.
    pub fn new(
        slide: &Slide,
        mpp: Mpp,
        window: usize,
        stride: usize,
        tissue: Option<&'a TissueMask>,
    ) -> Result<Self, SlideError> {
        assert!(
            0 < stride && stride <= window,
            "a stride of {stride} does not cover with windows of {window}"
        );
        let scale = slide.working_scale(mpp)?;
        let (w, h) = slide.working_dimensions(mpp)?;
        // The last window starts where its predecessor's stride no longer reaches the edge.
        let count = |n: u64| {
            let rest = n.saturating_sub(window as u64);
            1 + rest.div_ceil(stride as u64) as i64
        };
        Ok(Self { mpp, window, stride, scale, columns: count(w), rows: count(h), tissue })
    }

    /// Resolution of the windows.
    #[must_use]
    pub fn mpp(&self) -> Mpp {
        self.mpp
    }

    /// Side of a window in working pixels.
    #[must_use]
    pub fn window(&self) -> usize {
        self.window
    }

    /// Distance between windows in working pixels.
    #[must_use]
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// Columns and rows of the full grid, before the tissue is asked.
    #[must_use]
    pub fn grid(&self) -> (i64, i64) {
        (self.columns, self.rows)
    }

    /// Level-0 pixels that a window covers, rounded outwards.
    #[must_use]
    pub fn level0(&self, w: PlannedWindow) -> Rect {
        let side = self.window as i64;
        let span =
            |a: i64, s: f64| ((a as f64 * s).floor() as i64, ((a + side) as f64 * s).ceil() as i64);
        let ((x0, x1), (y0, y1)) = (span(w.x, self.scale.0), span(w.y, self.scale.1));
        Rect { x: x0, y: y0, width: (x1 - x0) as u64, height: (y1 - y0) as u64 }
    }

    /// The windows, lazily, row by row.
    pub fn iter(&self) -> impl Iterator<Item = PlannedWindow> + '_ {
        let stride = self.stride as i64;
        (0..self.rows)
            .flat_map(move |r| {
                (0..self.columns).map(move |c| PlannedWindow { x: c * stride, y: r * stride })
            })
            .filter(|w| self.tissue.is_none_or(|t| t.covers(self.level0(*w))))
    }

    /// How many windows [`WindowPlan::iter`] gives.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.iter().count() as u64
    }
}
