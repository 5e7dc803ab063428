//! What the pipeline needs of a slide.

use crate::error::ReadError;
use crate::grid::Frame;
use mitosis::{Level0, Mpp, Point, Rect, Resolution, RgbTile, Window};
use slide::SuspectTile;

/// A slide that several threads read at once, in the working frame of `docs/ARCHITECTURE.md`.
pub trait TileSource: Sync {
    /// Level-0 width and height in pixels.
    fn dimensions(&self) -> (u64, u64);

    /// Level-0 resolution.
    ///
    /// # Errors
    /// When the slide has none.
    fn resolution(&self) -> Result<Resolution, ReadError>;

    /// A rectangle of the working frame at `mpp` um/px. What is outside the slide is white.
    ///
    /// # Errors
    /// [`ReadError::Damaged`] when a part of the rectangle cannot be decoded, [`ReadError::File`] when
    /// the file cannot be read.
    fn read_at(&self, mpp: Mpp, rect: Rect) -> Result<RgbTile, ReadError>;

    /// Nothing left of and above the lower right corner of a rectangle of [`TileSource::read_at`] will be read again
    /// soon.
    fn passed(&self, mpp: Mpp, rect: Rect) {
        let _ = (mpp, rect);
    }

    /// Tiles read so far whose data are in doubt.
    fn suspect(&self) -> Vec<SuspectTile> {
        Vec::new()
    }

    /// Adds tiles that an interrupted run found in doubt.
    fn mark_suspect(&self, tiles: &[SuspectTile]) {
        let _ = tiles;
    }

    /// Level-0 pixels per working pixel at `mpp`, per axis.
    ///
    /// # Errors
    /// When the slide has no resolution.
    fn working_scale(&self, mpp: Mpp) -> Result<(f64, f64), ReadError> {
        let r = self.resolution()?;
        Ok((r.x.ratio(mpp), r.y.ratio(mpp)))
    }

    /// Working pixels at `mpp` that touch the slide, across and down.
    ///
    /// # Errors
    /// When the slide has no resolution.
    fn working_dimensions(&self, mpp: Mpp) -> Result<(u64, u64), ReadError> {
        let ((w, h), (sx, sy)) = (self.dimensions(), self.working_scale(mpp)?);
        Ok(((w as f64 / sx).ceil() as u64, (h as f64 / sy).ceil() as u64))
    }
}

impl TileSource for slide::Slide {
    fn dimensions(&self) -> (u64, u64) {
        slide::Slide::dimensions(self)
    }

    fn resolution(&self) -> Result<Resolution, ReadError> {
        slide::Slide::resolution(self).cloned().map_err(read_error)
    }

    fn read_at(&self, mpp: Mpp, rect: Rect) -> Result<RgbTile, ReadError> {
        slide::Slide::read_at(self, mpp, rect).map_err(read_error)
    }

    fn passed(&self, mpp: Mpp, rect: Rect) {
        slide::Slide::passed(self, mpp, rect);
    }

    fn suspect(&self) -> Vec<SuspectTile> {
        self.suspect_tiles()
    }

    fn mark_suspect(&self, tiles: &[SuspectTile]) {
        slide::Slide::mark_suspect(self, tiles);
    }

    fn working_scale(&self, mpp: Mpp) -> Result<(f64, f64), ReadError> {
        slide::Slide::working_scale(self, mpp).map_err(read_error)
    }

    fn working_dimensions(&self, mpp: Mpp) -> Result<(u64, u64), ReadError> {
        slide::Slide::working_dimensions(self, mpp).map_err(read_error)
    }
}

fn read_error(e: slide::SlideError) -> ReadError {
    let reason = e.to_string();
    if e.is_file() { ReadError::File(reason) } else { ReadError::Damaged(reason) }
}

/// The working frame of one slide at one resolution.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WorkingFrame {
    pub(crate) frame: Frame,
    /// Level-0 pixels per working pixel.
    pub(crate) scale: (f64, f64),
    /// Width and height of the slide itself in working pixels, which need not be whole.
    pub(crate) extent: (f64, f64),
    /// Area of a working pixel, mm2.
    pub(crate) pixel_mm2: f64,
}

impl WorkingFrame {
    pub(crate) fn at_resolution(source: &dyn TileSource, mpp: Mpp) -> Result<Self, ReadError> {
        let (w, h) = source.working_dimensions(mpp)?;
        let side = |n: u64| {
            u32::try_from(n).ok().filter(|&n| n < u32::MAX / 2).ok_or_else(|| {
                ReadError::File(format!(
                    "the slide has {w} x {h} px at {mpp}, more than can be addressed"
                ))
            })
        };
        let frame = Frame { width: side(w)?, height: side(h)? };
        let scale = source.working_scale(mpp)?;
        let (r, (w, h)) = (source.resolution()?, source.dimensions());
        Ok(Self {
            frame,
            scale,
            extent: (w as f64 / scale.0, h as f64 / scale.1),
            pixel_mm2: scale.0 * r.x.get() * scale.1 * r.y.get() / 1e6,
        })
    }

    pub(crate) fn to_level0(self, p: Point<Window>) -> Point<Level0> {
        p.scaled(self.scale.0, self.scale.1)
    }
}
