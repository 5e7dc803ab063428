//! Files of regions.

mod geojson;
mod mask;
pub mod qupath;
mod xml;

use crate::area::Area;
use crate::error::RegionError;
use base::digest::sha256;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Largest file read, bytes: polygons of a whole slide take a few MiB.
const LARGEST: u64 = 1 << 28;

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
    /// SHA-256 of it.
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

impl DrawnFile {
    /// Reads a file: QuPath GeoJSON, ASAP or ImageScope XML, or a mask, of which `mpp` is the um/px if it states none.
    ///
    /// # Errors
    /// [`RegionError`]: the file cannot be read, is not what it seems, or contains no area.
    pub fn read(path: &Path, mpp: Option<f64>) -> Result<Self, RegionError> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        let kind = name.rsplit('.').next().unwrap_or_default().to_owned();
        if !SUFFIXES.contains(&kind.as_str()) {
            return Err(RegionError::Kind { path: path.to_owned() });
        }
        let io = |source| RegionError::Read { path: path.to_owned(), source };
        let size = std::fs::metadata(path).map_err(io)?;
        if !size.is_file() {
            return Err(RegionError::Kind { path: path.to_owned() });
        }
        if size.len() > LARGEST {
            let mib = LARGEST >> 20;
            return Err(broken(
                path,
                format!("is larger than {mib} MiB, which no file of regions is"),
            ));
        }
        let bytes = base::file::read_whole(path).map_err(io)?;
        let mut file = Self {
            path: path.to_owned(),
            format: "",
            sha256: sha256(&bytes),
            frame: Frame::default(),
            mpp: None,
            slide_digest: None,
            regions: Vec::new(),
            passed_over: BTreeMap::new(),
        };
        match kind.as_str() {
            "geojson" | "json" => geojson::read(&mut file, &bytes)?,
            "xml" => xml::read(&mut file, &bytes)?,
            _ => mask::read(&mut file, &bytes, mpp)?,
        }
        if file.regions.is_empty() {
            let found: Vec<String> =
                file.passed_over.iter().map(|(k, n)| format!("{n} {k}")).collect();
            let found = if found.is_empty() { "nothing".to_owned() } else { found.join(", ") };
            return Err(RegionError::NoArea { path: path.to_owned(), found });
        }
        Ok(file)
    }

    /// Its name, without its folder.
    #[must_use]
    pub fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    fn pass_over(&mut self, kind: &str) {
        *self.passed_over.entry(kind.to_owned()).or_insert(0) += 1;
    }

    /// Takes an area; one without extent is passed over.
    fn take(&mut self, drawn: Drawn) {
        if drawn.area.px2() > 0.0 {
            self.regions.push(drawn);
        } else {
            self.pass_over("outlines without extent");
        }
    }
}

/// Suffixes of files that are read.
pub const SUFFIXES: [&str; 6] = ["geojson", "json", "xml", "png", "tif", "tiff"];

/// A name without its last suffix.
pub(crate) fn stem(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

/// Farther from the origin than any corner of a region, px: areas are computed with whole numbers.
const FARTHEST: f64 = 1e10;

/// Whether a number can be a coordinate of a region.
fn is_coordinate(v: f64) -> bool {
    v.abs() <= FARTHEST
}

fn broken(path: &Path, reason: impl Into<String>) -> RegionError {
    RegionError::Format { path: path.to_owned(), reason: reason.into() }
}

#[cfg(test)]
mod tests;
