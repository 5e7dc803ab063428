//! What can go wrong with a regions dataset, always with the file or image.

use crate::units::Conflict;
use base::file::FileError;
use base::remedy::{Remedied, Remedy};
use slide::SlideError;
use std::path::{Path, PathBuf};

/// Errors of making, opening and reading a regions dataset.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "fields whose names state what they are")]
pub enum RegionsError {
    /// A file or folder, a manifest or a table.
    #[error(transparent)]
    File(#[from] FileError),
    /// An entry of the manifest that cannot be used.
    #[error("image `{image}`: {reason}")]
    Image {
        /// Its name in the dataset.
        image: String,
        /// What is wrong with it.
        reason: String,
    },
    /// An image file that is not the recorded one.
    #[error(
        "{}: {what} is {found}, the dataset recorded {expected}; the file changed after it was imported",
        path.display()
    )]
    Changed {
        /// Path of the image.
        path: PathBuf,
        /// Size, digest or resolution.
        what: &'static str,
        found: String,
        expected: String,
    },
    /// No um/px in the file, and none given.
    #[error("{}{} no micrometres per pixel, and none were given", path.display(), also(*others))]
    MissingMpp {
        /// Path of the image.
        path: PathBuf,
        /// How many other files lack it, too.
        others: usize,
    },
    /// The file states another um/px than was given for it.
    #[error("{}: states {stated}, but {given} um/px was given for it", path.display())]
    ContradictingMpp {
        /// Path of the image.
        path: PathBuf,
        /// As stated, with the field.
        stated: String,
        given: f64,
    },
    /// The image cannot be read.
    #[error(transparent)]
    Slide(#[from] SlideError),
    /// The request itself cannot be met.
    #[error("{0}")]
    Invalid(String),
    /// A table of annotations contradicts the um/px of their image, or itself.
    #[error("image `{image}`: {source}")]
    Units {
        /// Its name in the dataset.
        image: String,
        /// The row, and both values.
        source: Conflict,
    },
    /// Annotations cannot be imported.
    #[error(transparent)]
    Import(#[from] crate::annotations::ImportError),
}

fn also(others: usize) -> String {
    match others {
        0 => ": the file states".into(),
        n => format!(" and {n} other files state"),
    }
}

impl RegionsError {
    pub(crate) fn io(path: impl AsRef<Path>) -> impl FnOnce(std::io::Error) -> Self {
        FileError::io(path)
    }

    pub(crate) fn file(path: &Path, reason: impl ToString) -> Self {
        FileError::content(path, reason)
    }

    pub(crate) fn image(image: &str, reason: impl ToString) -> Self {
        Self::Image { image: image.into(), reason: reason.to_string() }
    }
}

impl From<base::file::WriteError> for RegionsError {
    fn from(e: base::file::WriteError) -> Self {
        Self::File(e.into())
    }
}

impl Remedied for RegionsError {
    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::MissingMpp { .. } | Self::ContradictingMpp { .. } => {
                Some(Remedy::GiveResolutions)
            }
            Self::Import(e) => e.remedy(),
            Self::Slide(e) => e.remedy(),
            _ => None,
        }
    }
}

/// Shorthand.
pub type Result<T, E = RegionsError> = std::result::Result<T, E>;
