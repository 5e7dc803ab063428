//! `mithras.Slide`.

use crate::error::{SlideError, with_path};
use crate::image;
use mitosis::Mpp;
use numpy::PyArray3;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use slide::{MppRule, OpenOptions, Rect};
use std::path::PathBuf;

/// um/px as Python gives it.
pub fn mpp(value: Option<f64>) -> PyResult<Option<Mpp>> {
    let mpp = |v| Mpp::new(v).map_err(|e| PyValueError::new_err(e.to_string()));
    value.map(mpp).transpose()
}

/// A level: size, level-0 pixels per pixel, size of tiles.
type Level = ((u64, u64), (f64, f64), (u32, u32));

/// An opened slide; threads may share it.
#[pyclass(frozen, subclass, module = "mithras._mithras")]
pub struct Slide(slide::Slide);

impl Slide {
    fn read<'py>(
        &self,
        py: Python<'py>,
        read: impl FnOnce(&slide::Slide) -> Result<mitosis::RgbTile, slide::SlideError> + Send,
    ) -> PyResult<Bound<'py, PyArray3<u8>>> {
        let tile =
            py.detach(|| read(&self.0)).map_err(with_path::<SlideError, _>(self.0.path()))?;
        image::array(py, tile)
    }
}

#[pymethods]
impl Slide {
    #[new]
    #[pyo3(signature = (path, *, mpp=None, force_mpp=false, openslide=None))]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        mpp: Option<f64>,
        force_mpp: bool,
        openslide: Option<PathBuf>,
    ) -> PyResult<Self> {
        let mpp_rule = if force_mpp { MppRule::Force } else { MppRule::Fill };
        let options =
            OpenOptions { mpp: self::mpp(mpp)?, mpp_rule, openslide, ..OpenOptions::default() };
        let opened = py.detach(|| slide::Slide::open_with(&path, &options));
        opened.map(Self).map_err(with_path::<SlideError, _>(&path))
    }

    /// The file.
    #[getter]
    fn path(&self) -> PathBuf {
        self.0.path().to_owned()
    }

    /// Name of the reader that opened it.
    #[getter]
    fn format(&self) -> &'static str {
        self.0.format()
    }

    /// `aperio`, `generic-tiff`, `ome-tiff`, `flat`, or OpenSlide's word.
    #[getter]
    fn vendor(&self) -> &str {
        self.0.vendor()
    }

    /// Level-0 width and height, px.
    #[getter]
    fn dimensions(&self) -> (u64, u64) {
        self.0.dimensions()
    }

    /// Level-0 um/px, horizontally and vertically; `SlideError` where the file states none.
    #[getter]
    fn mpp(&self) -> PyResult<(f64, f64)> {
        let r = self.0.resolution().map_err(with_path::<SlideError, _>(self.0.path()))?;
        Ok((r.x.get(), r.y.get()))
    }

    /// The pyramid, finest level first.
    fn _levels(&self) -> Vec<Level> {
        let level = |l: &slide::Level| {
            ((l.width, l.height), (l.downsample_x, l.downsample_y), (l.tile_width, l.tile_height))
        };
        self.0.levels().iter().map(level).collect()
    }

    /// Reads `width` x `height` pixels of a level as `uint8 [height, width, 3]`.
    ///
    /// `x`, `y`: the top left corner in level-0 pixels, whatever the level. Pixels outside the slide
    /// are white. The array takes over the memory that was read into.
    #[pyo3(signature = (x, y, width, height, level=0))]
    #[expect(clippy::too_many_arguments, reason = "Python's callers name them")]
    fn read_region<'py>(
        &self,
        py: Python<'py>,
        x: i64,
        y: i64,
        width: usize,
        height: usize,
        level: usize,
    ) -> PyResult<Bound<'py, PyArray3<u8>>> {
        self.read(py, |slide| slide.read_region(level, Rect::new(x, y, width, height)))
    }

    /// Reads `width` x `height` pixels at `mpp` um/px as `uint8 [height, width, 3]`, resampled.
    ///
    /// `x`, `y`: the top left corner in pixels of that resolution, from the level-0 origin. Two adjacent regions
    /// equal their union.
    #[expect(clippy::too_many_arguments, reason = "Python's callers name them")]
    fn read_at<'py>(
        &self,
        py: Python<'py>,
        mpp: f64,
        x: i64,
        y: i64,
        width: usize,
        height: usize,
    ) -> PyResult<Bound<'py, PyArray3<u8>>> {
        let mpp = Mpp::new(mpp).map_err(|e| PyValueError::new_err(e.to_string()))?;
        self.read(py, |slide| slide.read_at(mpp, Rect::new(x, y, width, height)))
    }

    /// The whole slide, its longer side at most `max_side` px, as `uint8 [height, width, 3]`.
    #[pyo3(signature = (max_side=1024))]
    fn thumbnail<'py>(
        &self,
        py: Python<'py>,
        max_side: usize,
    ) -> PyResult<Bound<'py, PyArray3<u8>>> {
        self.read(py, |slide| slide.thumbnail(max_side))
    }
}
