//! Why a detector does not open, or gives no result.

use crate::export::ExportError;
use crate::subtypes::SubtypeError;
use base::remedy::{Remedied, Remedy};
use base::text::Shown;
use detect::DetectError;
use infer::{CardError, EngineError, PackageError};
use slide::SlideError;
use std::path::PathBuf;

/// Why a detector does not open.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "fields whose names state what they are")]
pub enum DetectorError {
    /// The package is not there or damaged.
    #[error(transparent)]
    Package(#[from] PackageError),
    /// The package is not a detector, or has no such threshold pair.
    #[error(transparent)]
    Card(#[from] CardError),
    /// No engine runs it.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The card's numbers cannot be carried out.
    #[error("model `{name}`: {source}")]
    Recipe {
        /// Name of the package.
        name: String,
        source: DetectError,
    },
    /// Two stages were asked for, the package has one.
    #[error("model `{0}` has no classifier; it can run the first stage alone")]
    OneStage(String),
    /// The first stage alone was asked for, and only the pair of both stages was ever chosen.
    #[error(
        "model `{0}` has no threshold for its first stage alone, and that of both stages is too low without the \
         second; name one"
    )]
    NoFirstStagePoint(String),
    /// A named pair of thresholds was asked for, and the first stage alone.
    #[error(
        "`{point}` of model `{name}` was chosen for both stages; the first stage alone needs a threshold of its own"
    )]
    PairForOneStage {
        /// Name of the package.
        name: String,
        point: String,
    },
    /// A threshold of the second stage was given, and the first stage alone asked for.
    #[error("the first stage alone has no second score; its second threshold is 0, not {0}")]
    SecondThreshold(f32),
    /// The share of unreadable windows is not between 0 and 1.
    #[error("the largest share of unreadable windows is {0}, which is not between 0 and 1")]
    Share(f64),
    /// Subtypes cannot be classified.
    #[error(transparent)]
    Subtypes(#[from] SubtypeError),
}

/// Why a slide has no result.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "fields whose names state what they are")]
pub enum RunError {
    /// It cannot be opened or read.
    #[error(transparent)]
    Slide(#[from] SlideError),
    /// The model is not made for its resolution.
    #[error(
        "{}: {found} um/px is outside the model's range, {min} to {max} um/px; its results would mean nothing",
        Shown(path)
    )]
    Resolution {
        /// Path of the slide.
        path: PathBuf,
        found: f64,
        /// The finest of the model's card, um/px.
        min: f64,
        max: f64,
    },
    /// The thumbnail cannot be read or encoded.
    #[error(transparent)]
    Thumbnail(#[from] ExportError),
    /// The file cannot be read.
    #[error("{}: {source}", Shown(path))]
    Io {
        /// Path of the slide.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// Detection ended.
    #[error(transparent)]
    Detect(#[from] DetectError),
    /// The subtypes' network stopped.
    #[error(transparent)]
    Subtypes(#[from] SubtypeError),
}

impl Remedied for DetectorError {
    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Engine(e) => e.remedy(),
            Self::Card(e) => e.remedy(),
            Self::Subtypes(e) => e.remedy(),
            Self::OneStage(_) => Some(Remedy::FirstStage),
            Self::NoFirstStagePoint(_) | Self::PairForOneStage { .. } => {
                Some(Remedy::FirstStagePoint)
            }
            Self::Share(_) => Some(Remedy::UnreadShare),
            _ => None,
        }
    }
}

impl Remedied for RunError {
    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Slide(e) => e.remedy(),
            Self::Detect(e) => e.remedy(),
            Self::Subtypes(e) => e.remedy(),
            Self::Thumbnail(e) => e.remedy(),
            Self::Resolution { .. } => Some(Remedy::AnyResolution),
            _ => None,
        }
    }
}
