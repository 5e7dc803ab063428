//! Why a slide was not copied.

use crate::SlideError;
use base::file::WriteError;
use base::remedy::{Remedied, Remedy};
use base::text::Shown;
use std::io;
use std::path::{Path, PathBuf};

/// Why no copy was made. Nothing is left behind.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "fields whose names state what they are")]
pub enum DeidentifyError {
    /// The slide cannot be read.
    #[error(transparent)]
    Slide(#[from] SlideError),
    /// Something is there already.
    #[error("{}: exists already; name a new file or folder", Shown(path))]
    Exists {
        /// Where the copy was to go.
        path: PathBuf,
    },
    /// The copy cannot be written.
    #[error("{}: cannot be written: {source}", Shown(path))]
    Write {
        /// The file or folder.
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// No folder for the copy can be made.
    #[error(transparent)]
    Staging(#[from] WriteError),
    /// A format that that cannot be written without its personal data.
    #[error(
        "{}: slides read by `{reader}` cannot be copied without their personal data; convert it to DICOM or \
         OME-TIFF first if you have a converter",
        Shown(path)
    )]
    Format {
        /// Path of the slide.
        path: PathBuf,
        reader: &'static str,
    },
    /// The copy would differ from the slide, or still identify somebody: it was removed.
    #[error("{}: no copy was made: {reason}", Shown(path))]
    Check {
        /// Path of the slide.
        path: PathBuf,
        /// What is wrong with the copy.
        reason: String,
    },
}

/// An error of the disk.
pub(super) fn disk(path: &Path) -> impl Fn(io::Error) -> DeidentifyError + '_ {
    move |source| DeidentifyError::Write { path: path.to_path_buf(), source }
}

impl Remedied for DeidentifyError {
    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Slide(e) => e.remedy(),
            _ => None,
        }
    }
}
