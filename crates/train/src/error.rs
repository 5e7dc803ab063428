//! What can go wrong in a training run.

use base::remedy::{Remedied, Remedy};
use std::path::{Path, PathBuf};

/// Errors of presets, run directories and loops.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "fields whose names state what they are")]
pub enum TrainError {
    /// A preset is malformed.
    #[error("{path}: {reason}")]
    Preset {
        /// The preset, or `--set`.
        path: PathBuf,
        reason: String,
    },
    /// A file of the run directory.
    #[error("{path}: {reason}")]
    Run {
        /// Path in the run's folder.
        path: PathBuf,
        /// Why, and what to do.
        reason: String,
    },
    /// A run that is there from before.
    #[error("{path}: a run is already here; resume it, or choose another folder")]
    There {
        /// Its state or folder.
        path: PathBuf,
    },
    /// The loss is not a number any more.
    #[error(
        "the loss is {value} at step {step}; lower train.lr or raise train.warmup, which may \
         help, then resume from the last state"
    )]
    NotFinite {
        step: usize,
        /// The loss or gradient norm.
        value: f64,
    },
    /// Another process of the training went away.
    #[error(
        "{reason}; {done} steps are whole{}: start all processes again, and resume",
        if *.kept { ", and their state is kept" } else { "; the state is what the first process last wrote" }
    )]
    Ranks {
        /// Who, as far as it is known.
        reason: String,
        /// Steps that all of them took.
        done: usize,
        /// Whether this process has written the state of these.
        kept: bool,
    },
    /// A regions dataset.
    #[error(transparent)]
    Regions(#[from] regions::RegionsError),
    /// Folds.
    #[error(transparent)]
    Folds(#[from] regions::folds::FoldsError),
    /// A corpus on disk.
    #[error(transparent)]
    Corpus(#[from] crops::CorpusError),
    /// Labelled crops of a classification task, and their folds.
    #[error(transparent)]
    Task(#[from] regions::task::TaskError),
    /// A table.
    #[error(transparent)]
    Table(#[from] base::table::TableError),
    /// Two runs in one directory.
    #[error(transparent)]
    Lock(#[from] base::file::LockError),
    /// Networks and libtorch.
    #[error(transparent)]
    Net(#[from] net::NetError),
    /// A network that gave no answer.
    #[error(transparent)]
    Port(#[from] mitosis::PortError),
    /// libtorch itself.
    #[error("libtorch: {0}")]
    Torch(#[from] tch::TchError),
}

impl From<base::preset::PresetError> for TrainError {
    fn from(e: base::preset::PresetError) -> Self {
        Self::Preset { path: e.path, reason: e.reason }
    }
}

impl TrainError {
    pub(crate) fn run(path: &Path, reason: impl ToString) -> Self {
        Self::Run { path: path.to_path_buf(), reason: reason.to_string() }
    }
}

/// Result of this crate.
pub type Result<T> = std::result::Result<T, TrainError>;

impl Remedied for TrainError {
    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Net(e) => e.remedy(),
            Self::Preset { path, .. } if path.as_os_str() == "init" => {
                Some(Remedy::StartingWeights)
            }
            Self::Preset { path, .. } if path.as_os_str() == "positive" => {
                Some(Remedy::PositiveClass)
            }
            Self::There { .. } => Some(Remedy::ContinueTraining),
            Self::Regions(e) => e.remedy(),
            Self::Corpus(e) => e.remedy(),
            _ => None,
        }
    }
}
