//! Files of regions.

mod drawn;
mod geojson;
mod mask;
pub mod qupath;
mod xml;

pub(crate) use drawn::stem;
pub use drawn::{Drawn, DrawnFile, Frame};

use crate::error::RegionError;
use base::digest::sha256;
use drawn::{LARGEST, broken};
use std::collections::BTreeMap;
use std::path::Path;

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
        // Of a mask a pixel is many of the slide's.
        let is_outlined = ["geojson", "json", "xml"].contains(&kind.as_str());
        if is_outlined && file.regions.iter().all(|r| r.area.px2() <= 1.0) {
            let reason = "no area is larger than a pixel: corners in parts of the image, not in px";
            return Err(broken(path, reason));
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

#[cfg(test)]
mod tests;
