//! What is compared, and why it cannot be.

use base::remedy::{Remedied, Remedy, Setting};
use serde::Serialize;
use stats::StatsError;
use std::path::PathBuf;

/// Why a classification cannot be evaluated.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "fields whose names state what they are")]
#[non_exhaustive]
pub enum ClassificationError {
    /// A table.
    #[error(transparent)]
    Table(#[from] outcome::Error),
    /// The package that made the predictions.
    #[error(transparent)]
    Package(#[from] infer::PackageError),
    /// A figure does not exist.
    #[error(transparent)]
    Stats(#[from] StatsError),
    /// A table lacks what is needed.
    #[error("{}: {reason}", path.display())]
    Content {
        /// Path of the table.
        path: PathBuf,
        reason: String,
        /// The setting that would supply it.
        setting: Option<Setting>,
    },
    /// A cell.
    #[error("{place}: {reason}")]
    Cell {
        /// File, column, row and line.
        place: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The plan does not fit the classes.
    #[error("{reason}")]
    Plan {
        /// What it is about.
        setting: Setting,
        reason: String,
    },
}

pub(super) type Result<T, E = ClassificationError> = std::result::Result<T, E>;

/// What is compared.
#[derive(Clone, Debug, Default)]
pub struct ClassificationPlan {
    /// One row per item: the true class, the predicted class, `p_<class>` columns.
    pub predictions: PathBuf,
    /// Further tables of the same items: the mean of all probabilities is judged.
    pub mean_with: Vec<PathBuf>,
    /// Table with the true classes, if they are not in the predictions.
    pub labels: Option<PathBuf>,
    /// Column that joins them: by the whole text or, where paths differ, by the file name alone.
    pub key: Option<String>,
    /// Column of true classes, if not a usual one.
    pub truth: Option<String>,
    /// Column of predicted classes, if not a usual one.
    pub predicted: Option<String>,
    /// The positive class.
    pub positive: Option<String>,
    /// Calls the positive class from this probability on.
    pub threshold: Option<f64>,
    /// Column of folds.
    pub fold: Option<String>,
    /// Column of domains.
    pub domain: Option<String>,
}

/// Where F1 is largest.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct LargestF1 {
    /// From which probability on.
    pub threshold: f64,
    /// F1 there.
    pub f1: f64,
}

impl Remedied for ClassificationError {
    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Content { setting, .. } => setting.map(Remedy::Change),
            Self::Plan { setting, .. } => Some(Remedy::Change(*setting)),
            Self::Table(e) => e.remedy(),
            _ => None,
        }
    }
}
