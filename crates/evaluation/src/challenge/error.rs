//! Why a job of a challenge gives nothing.

use base::file::WriteError;
use base::text::Shown;
use infer::{EngineError, PackageError};
use mithras::detector::{DetectorError, RunError};
use mithras::export::ExportError;
use mitosis::PortError;
use slide::SlideError;
use std::path::PathBuf;

/// Why a job of a challenge gives nothing.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "fields whose names state what they are")]
pub enum ChallengeError {
    /// The platform's list of inputs cannot be used.
    #[error("{}: {reason}", Shown(path))]
    Inputs { path: PathBuf, reason: String },
    /// Not one image where one should be.
    #[error("{}: {found} images (.tif, .tiff), but the platform gives one", Shown(path))]
    Images {
        /// Folder of the images.
        path: PathBuf,
        found: usize,
    },
    /// A folder cannot be read.
    #[error("{}: {source}", Shown(path))]
    Folder {
        /// Folder that cannot be read.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The output folder cannot be made.
    #[error("{}: cannot be made: {source}", Shown(path))]
    Output {
        /// Folder for the output.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The folder of the model holds something else.
    #[error(
        "{}: files, and no card.toml among them; a model package is a folder with one",
        Shown(path)
    )]
    NoPackage {
        /// Folder without a package.
        path: PathBuf,
    },
    /// The package is for something else.
    #[error("model `{name}` has {reason}; Track 2 needs two classes, the positive one `atypical`")]
    Model {
        /// Name of the package.
        name: String,
        reason: String,
    },
    /// A page of the stack is not a crop.
    #[error("{}: page {page}: {reason}", Shown(path))]
    Page { path: PathBuf, page: usize, reason: String },
    /// The package cannot be opened.
    #[error("{0}")]
    Package(#[from] PackageError),
    /// The detector cannot be opened.
    #[error("{0}")]
    Detector(#[from] DetectorError),
    /// The image cannot be read.
    #[error("{0}")]
    Slide(#[from] SlideError),
    /// Detection gave no result.
    #[error("{0}")]
    Run(#[from] RunError),
    /// No engine runs the package.
    #[error("{0}")]
    Engine(#[from] EngineError),
    /// The network stopped.
    #[error("{0}")]
    Port(#[from] PortError),
    /// The answer cannot be encoded.
    #[error("{0}")]
    Export(#[from] ExportError),
    /// The answer cannot be written.
    #[error("{0}")]
    Write(#[from] WriteError),
}
