//! Regions as a file has them, and what all readers of such files check.

use crate::area::Area;
use crate::error::RegionError;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Largest file read, bytes: polygons of a whole slide take a few MiB.
pub(super) const LARGEST: u64 = 1 << 28;

/// What coordinates of a file count from.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Frame {
    /// Level-0 px from the slide's bounds, as QuPath shows them.
    Bounds,
    /// Level-0 px from the slide's upper left corner.
    #[default]
    Level0,
    /// Pixels of a mask over the whole slide.
    Mask {
        /// Its width, px.
        width: u32,
        /// Its height, px.
        height: u32,
        /// um per pixel of it.
        mpp: f64,
    },
}

/// One area of a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Drawn {
    /// As drawn; empty without one.
    pub name: String,
    /// Its class or group; empty without one.
    pub class: String,
    /// The file marks it as excluded.
    pub negative: bool,
    /// The slide that it names, if it names one.
    pub image: Option<String>,
    /// Where, in the file's frame.
    pub area: Area,
}

impl Drawn {
    /// Whether it is of a slide of this name, or names none.
    #[must_use]
    pub fn fits_slide(&self, slide: &str) -> bool {
        let Some(image) = &self.image else { return true };
        let last = image.rsplit(['/', '\\']).next().unwrap_or(image);
        last == slide || stem(last) == slide
    }
}

/// A file of regions, as it is.
#[derive(Clone, Debug, PartialEq)]
pub struct DrawnFile {
    /// Where it was read from.
    pub path: PathBuf,
    /// `geojson`, `asap`, `imagescope` or `mask`.
    pub format: &'static str,
    /// Of the file's bytes, hexadecimal.
    pub sha256: String,
    /// What its coordinates count from.
    pub frame: Frame,
    /// um/px that it states.
    pub mpp: Option<f64>,
    /// Digest of the slide that it states.
    pub slide_digest: Option<String>,
    /// Every area.
    pub regions: Vec<Drawn>,
    /// What else it contains, by kind: points, lines, cells.
    pub passed_over: BTreeMap<String, usize>,
}

/// Farther from the origin than any corner of a region, px: areas are computed with whole numbers.
const FARTHEST: f64 = 1e10;

/// Whether a number can be a coordinate of a region.
pub(super) fn is_coordinate(v: f64) -> bool {
    v.abs() <= FARTHEST
}

pub(super) fn broken(path: &Path, reason: impl Into<String>) -> RegionError {
    RegionError::Format { path: path.to_owned(), reason: reason.into() }
}

/// A name without its last suffix.
pub(crate) fn stem(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}
