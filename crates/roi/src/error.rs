//! Why regions cannot be used.

use base::remedy::{Remedied, Remedy};
use base::text::Shown;
use std::path::PathBuf;

/// Why regions cannot be used.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "fields whose names state what they are")]
pub enum RegionError {
    /// A file or folder cannot be read.
    #[error("{}: cannot be read: {source}", Shown(path))]
    Read {
        /// Path of the file of regions.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The content is not what the file's name promises.
    #[error("{}: {reason}", Shown(path))]
    Format {
        /// Path of the file of regions.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// No reader for such a file.
    #[error(
        "{}: not a file of regions; these are read: QuPath GeoJSON (.geojson, .json), ASAP and ImageScope XML \
         (.xml), masks (.png, .tif, .tiff)",
        Shown(path)
    )]
    Kind {
        /// Path of the file of regions.
        path: PathBuf,
    },
    /// No area in the file.
    #[error("{}: contains no area, only {found}", Shown(path))]
    NoArea {
        /// Path of the file of regions.
        path: PathBuf,
        /// What it contains instead.
        found: String,
    },
    /// A mask without a resolution.
    #[error("{}: a mask without um/px; state its resolution", Shown(path))]
    NoMpp {
        /// Path of the file of regions.
        path: PathBuf,
    },
    /// Slides of the run without regions, or files without a slide.
    #[error("{}: {reason}", Shown(path))]
    Match {
        /// The folder or file.
        path: PathBuf,
        /// Which do not match.
        reason: String,
    },
    /// A class that no file has.
    #[error("no region of class `{class}`; the classes are: {}", known.join(", "))]
    Class {
        class: String,
        /// Those that there are.
        known: Vec<String>,
    },
    /// Nothing is left to search on a slide.
    #[error("{}: no region is left on slide `{slide}`: {reason}", Shown(path))]
    Nothing {
        /// Path of the file of regions.
        path: PathBuf,
        /// Name of the slide.
        slide: String,
        reason: String,
    },
    /// The regions are of another slide.
    #[error("{}: the regions are not of slide `{slide}`: {reason}", Shown(path))]
    OtherSlide {
        /// Path of the file of regions.
        path: PathBuf,
        /// Name of the slide.
        slide: String,
        /// What does not agree.
        reason: String,
    },
}

impl Remedied for RegionError {
    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::NoMpp { .. } => Some(Remedy::RegionResolution),
            Self::Class { .. } => Some(Remedy::RegionClasses),
            _ => None,
        }
    }
}
