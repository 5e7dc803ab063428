//! Errors of features and encoder packages.

use base::preset::PresetError;
use base::remedy::{Remedied, Remedy};
use base::text::Shown;
use crops::CorpusError;
use encoders::EncoderError;
use infer::convert::ConvertError;
use infer::{CardError, EngineError, PackageError};
use mitosis::PortError;
use regions::RegionsError;
use regions::task::TaskError;
use slide::SlideError;
use std::path::{Path, PathBuf};

/// Why features or a package were not made.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "fields whose names state what they are")]
pub enum FeatureError {
    /// The file is to be of no known form.
    #[error("{}: write to FILE.parquet, or slide tiles to FILE.h5", Shown(.0))]
    Form(PathBuf),
    /// HDF5 holds a grid, which crops have not.
    #[error("{}: HDF5 is for slide tiles; crops go to FILE.parquet", Shown(.0))]
    Crops(PathBuf),
    /// The resolution of tiles is unknown.
    #[error("encoder `{0}` states no resolution; give the um/px of tiles")]
    Resolution(String),
    /// A package is there already.
    #[error("{}: there is a package already; choose another folder", Shown(.0))]
    Exists(PathBuf),
    /// Features of other settings are in the folder: one folder holds those of one encoder and scale.
    #[error(
        "{} holds the features of slide `{slide}`, made with other settings: {differs}; one folder holds \
         the features of one encoder and grid",
        Shown(path)
    )]
    Mixed {
        path: PathBuf,
        /// Name of the slide.
        slide: String,
        /// Which settings differ, with both values.
        differs: String,
        /// Whether the slide is among those to do, so that it could be done again.
        own: bool,
    },
    /// Features of other settings are in the file.
    #[error("{}: holds features that were made with other settings: {differs}", Shown(path))]
    Stored {
        path: PathBuf,
        /// The first setting that differs, with both values.
        differs: String,
    },
    /// A file of features that is not of an earlier run.
    #[error("{}: is there already, and no earlier run wrote it; choose another folder", Shown(.0))]
    Others(PathBuf),
    /// A file or folder cannot be read.
    #[error("{}: {source}", Shown(path))]
    Io {
        /// Path of the file or folder.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The encoder's file becomes no package.
    #[error("{}: {source}", Shown(path))]
    Convert {
        /// Path of the file or folder.
        path: PathBuf,
        /// Why it cannot be converted.
        source: Box<ConvertError>,
    },
    /// The weights are not the encoder's.
    #[error(transparent)]
    Weights(Box<EncoderError>),
    /// A file of weights does not name its encoder, and nobody else does.
    #[error("{}: does not name its encoder; give the encoder's name", Shown(.0))]
    Unnamed(PathBuf),
    /// A file gives no head to an encoder, or describes none.
    #[error("{}: {reason}", Shown(path))]
    Head {
        /// Path of the file.
        path: PathBuf,
        reason: String,
    },
    /// A file that describes classes.
    #[error(transparent)]
    Preset(#[from] PresetError),
    /// The package does not open.
    #[error(transparent)]
    Package(#[from] PackageError),
    /// The package is not an encoder.
    #[error(transparent)]
    Card(#[from] CardError),
    /// No engine runs it.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The network stopped, or gave NaN.
    #[error(transparent)]
    Port(#[from] PortError),
    /// The crops cannot be read.
    #[error(transparent)]
    Corpus(#[from] CorpusError),
    /// The regions cannot be read.
    #[error(transparent)]
    Regions(#[from] RegionsError),
    /// The labelled crops cannot be read.
    #[error(transparent)]
    Task(#[from] TaskError),
    /// The slide cannot be read.
    #[error(transparent)]
    Slide(#[from] SlideError),
    /// The table cannot be encoded.
    #[error("encoding the table: {0}")]
    Parquet(#[from] parquet::errors::ParquetError),
    /// The table cannot be encoded.
    #[error("encoding HDF5: {0}")]
    Hdf5(String),
    /// The file cannot be written.
    #[error(transparent)]
    Write(#[from] base::file::WriteError),
    /// The folder holds no image.
    #[error(transparent)]
    Files(#[from] crate::files::FilesError),
}

impl FeatureError {
    pub(crate) fn head(path: &Path, reason: impl Into<String>) -> Self {
        Self::Head { path: path.to_owned(), reason: reason.into() }
    }
}

impl Remedied for FeatureError {
    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Slide(e) => e.remedy(),
            Self::Engine(e) => e.remedy(),
            Self::Corpus(e) => e.remedy(),
            Self::Regions(e) => e.remedy(),
            Self::Convert { source, .. } => source.remedy(),
            Self::Weights(e) => e.remedy(),
            Self::Card(e) => e.remedy(),
            Self::Resolution(_) => Some(Remedy::TileResolution),
            Self::Exists(_) => Some(Remedy::Folder),
            Self::Unnamed(_) => Some(Remedy::EncoderName),
            Self::Mixed { own: true, .. } | Self::Stored { .. } => {
                Some(Remedy::OtherFolderOrReplace)
            }
            Self::Mixed { own: false, .. } => Some(Remedy::OtherFolder),
            _ => None,
        }
    }
}
