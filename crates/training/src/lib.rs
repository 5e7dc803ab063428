//! Training a detector on a regions dataset: the steps that the single verbs take, and all of them
//! in a row ([`chain`]). Needs libtorch.

#![forbid(unsafe_code)]

pub mod calibrate;
pub mod chain;
pub mod encoders;
pub mod export;
pub mod folds;
pub mod frames;
pub mod parity;
pub mod protocol;
pub mod pseudo;
mod resolution;
mod seen;
pub mod torch;

pub use calibrate::Named;

use base::file::FileError;
use base::remedy::{Remedied, Remedy};
use std::path::{Path, PathBuf};

/// Why a detector could not be trained, calibrated or packaged.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "fields whose names state what they are")]
pub enum TrainingError {
    /// A file or folder.
    #[error(transparent)]
    File(#[from] FileError),
    /// What was asked for cannot be done.
    #[error("{0}")]
    Invalid(String),
    /// A step that another preset, dataset or file of weights has left behind.
    #[error(
        "{}: the step `{step}` was done with another preset, dataset or other starting weights; \
         choose another folder if that is meant",
        path.display()
    )]
    OtherRun {
        /// Folder of the run.
        path: PathBuf,
        step: String,
    },
    /// A chain whose first stage cannot be taken.
    #[error("{}: its first stage cannot be taken: {why}", path.display())]
    FirstStage {
        path: PathBuf,
        /// What does not fit.
        why: String,
    },
    /// A fold that the run does not have.
    #[error(
        "fold {fold} does not exist: the run has {folds}, counted from 0, and the final models"
    )]
    NoFold {
        /// The number asked for.
        fold: usize,
        /// How many there are.
        folds: usize,
    },
    /// The exported networks do not give the same scores as the trained ones.
    #[error(
        "the exported {network} differs from the trained one by {found:.4} (at most {allowed} is allowed)"
    )]
    Parity {
        network: &'static str,
        /// Largest difference of a probability.
        found: f32,
        allowed: f32,
    },
    /// A test part is for one scoring, at the end: a choice made on test scores leaves none.
    #[error("{}: this run was scored on this test set before ({note})", run.display())]
    ScoredBefore {
        /// Folder of the run.
        run: PathBuf,
        /// What was noted then.
        note: String,
    },
    /// A threshold would be chosen with a model that has seen the slides it is chosen on.
    #[error(
        "{}: trained on {count} of the slides and patients that fold `{fold}` holds out ({shown}); train it with \
         the segmenter's folds (`data.folds_file`)",
        path.display()
    )]
    Seen {
        path: PathBuf,
        /// Name of the fold.
        fold: String,
        /// How many of its slides and patients they have seen.
        count: usize,
        /// The first of them.
        shown: String,
    },
    /// The models of a run have seen the test set that they are scored on.
    #[error(
        "{}: its models were trained on {count} of the slides or images of this test set ({shown}); the results do not \
         show their quality on other slides",
        run.display()
    )]
    TestSeen {
        /// Folder of the run.
        run: PathBuf,
        /// How many slides, and images with the pixels of a training image.
        count: usize,
        /// The first of them.
        shown: String,
    },
    /// Nobody knows what the weights were trained on.
    #[error(
        "{}: does not list the slides it was trained on (made by an older version); train it again, or allow it",
        path.display()
    )]
    Unlisted { path: PathBuf },
    /// Figures of a table of predictions.
    #[error(transparent)]
    Figures(#[from] evaluation::evaluate::classification::ClassificationError),
    /// A training loop.
    #[error(transparent)]
    Train(#[from] train::TrainError),
    /// The dataset.
    #[error(transparent)]
    Regions(#[from] regions::RegionsError),
    /// The folds.
    #[error(transparent)]
    Folds(#[from] regions::folds::FoldsError),
    /// Another run in the same folder.
    #[error(transparent)]
    Lock(#[from] base::file::LockError),
    /// A result that cannot be written.
    #[error(transparent)]
    Write(#[from] base::file::WriteError),
    /// Detection.
    #[error(transparent)]
    Detect(#[from] detect::DetectError),
    /// No operating point.
    #[error(transparent)]
    Calibrate(#[from] mitosis::matching::CalibrateError),
    /// Detections that cannot be matched.
    #[error(transparent)]
    Match(#[from] mitosis::matching::MatchError),
    /// A network that cannot be exported.
    #[error(transparent)]
    Net(#[from] net::NetError),
    /// The card of the package.
    #[error(transparent)]
    Card(#[from] infer::CardError),
    /// The package.
    #[error(transparent)]
    Package(#[from] infer::PackageError),
    /// The engine that checks the package.
    #[error(transparent)]
    Engine(#[from] infer::EngineError),
    /// A package that does not open as a detector.
    #[error(transparent)]
    Opened(#[from] mithras::detector::DetectorError),
    /// Measurements under perturbations.
    #[error(transparent)]
    Robustness(#[from] evaluation::robustness::RobustnessError),
    /// A file that cannot be read or written as JSON.
    #[error(transparent)]
    Json(#[from] base::json::JsonError),
    /// A network that gave no answer.
    #[error(transparent)]
    Port(#[from] mitosis::PortError),
}

/// Shorthand.
pub type Result<T, E = TrainingError> = std::result::Result<T, E>;

impl TrainingError {
    pub(crate) fn file(path: &Path, reason: impl ToString) -> Self {
        FileError::content(path, reason)
    }

    pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        FileError::io(path)
    }
}

impl Remedied for TrainingError {
    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::ScoredBefore { .. } => Some(Remedy::ScoreAgain),
            Self::Seen { .. } | Self::TestSeen { .. } | Self::Unlisted { .. } => {
                Some(Remedy::AllowSeen)
            }
            Self::Figures(e) => e.remedy(),
            Self::Train(e) => e.remedy(),
            Self::Net(e) => e.remedy(),
            Self::Card(e) => e.remedy(),
            Self::Regions(e) => e.remedy(),
            Self::Detect(e) => e.remedy(),
            Self::Engine(e) => e.remedy(),
            Self::Opened(e) => e.remedy(),
            Self::Robustness(e) => e.remedy(),
            _ => None,
        }
    }
}
