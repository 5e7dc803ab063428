//! Why robustness was not measured.

use base::file;
use base::remedy::{Remedied, Remedy};
use std::path::PathBuf;

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "fields whose names state what they are")]
pub enum RobustnessError {
    /// An image cannot be read.
    #[error("{}: {reason}", path.display())]
    Image {
        /// Path of the image.
        path: PathBuf,
        reason: String,
    },
    /// The pipeline failed on a changed image.
    #[error("{image}, {perturbation}: {source}")]
    Detect {
        /// Name of the image.
        image: String,
        perturbation: String,
        source: detect::DetectError,
    },
    /// Matching.
    #[error(transparent)]
    Match(#[from] mitosis::matching::MatchError),
    /// A file cannot be written.
    #[error(transparent)]
    Write(#[from] file::WriteError),
    /// A table of areas that cannot be read.
    #[error(transparent)]
    Areas(#[from] base::table::TableError),
    /// Measurements that cannot be read.
    #[error(transparent)]
    Json(#[from] base::json::JsonError),
    /// No package.
    #[error(transparent)]
    Package(#[from] infer::PackageError),
    /// No engine runs it.
    #[error(transparent)]
    Engine(#[from] infer::EngineError),
    /// An image that is damaged.
    #[error(transparent)]
    Pixels(#[from] regions::scene::CropError),
    /// Labelled crops.
    #[error(transparent)]
    Crops(#[from] regions::task::TaskError),
    /// Its network stopped.
    #[error(transparent)]
    Port(#[from] mitosis::PortError),
    /// A row of the truth has two places, in px and in um.
    #[error(transparent)]
    Conflict(#[from] crate::evaluate::Conflict),
    /// Too few candidates to fit a scale to.
    #[error(transparent)]
    TooFew(#[from] crate::too_few::TooFew),
    /// Nothing to do.
    #[error("{0}")]
    Nothing(String),
}

impl Remedied for RobustnessError {
    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Engine(e) => e.remedy(),
            Self::Detect { source, .. } => source.remedy(),
            _ => None,
        }
    }
}
