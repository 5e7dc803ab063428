//! What can go wrong, as facts, each with the part of the plan that could be changed.

use base::file::{ReadError, WriteError};
use base::remedy::{Remedied, Remedy, Setting};
use base::table::TableError;
use stats::StatsError;
use stats::survival::SurvivalError;
use std::path::PathBuf;

/// Why an analysis failed.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "fields whose names state what they are")]
#[non_exhaustive]
pub enum Error {
    /// A table.
    #[error(transparent)]
    Table(#[from] TableError),
    /// A result cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A Parquet table.
    #[error("{}: {what}: {source}", path.display())]
    Parquet {
        /// Path of the table.
        path: PathBuf,
        /// What cannot be done.
        what: &'static str,
        /// Error of the reader.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A file that cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A Parquet column of lists, maps or structs.
    #[error("{}: column '{column}' holds lists, maps or structs, which no table of cells has", path.display())]
    ParquetColumn {
        /// Path of the table.
        path: PathBuf,
        column: String,
    },
    /// A Parquet table in a compression that is not built in.
    #[error(
        "{}: is compressed with {codec}, which cannot be read here; write it with Snappy or Zstandard, \
         or as CSV", path.display()
    )]
    ParquetCodec {
        /// Path of the table.
        path: PathBuf,
        codec: String,
    },
    /// A cell.
    #[error("{place}: {reason}")]
    Cell {
        /// File, column, row and line.
        place: String,
        /// What is wrong with it.
        reason: String,
        /// What could make it usable.
        setting: Option<Setting>,
    },
    /// A table as a whole.
    #[error("{}: {reason}", path.display())]
    Content {
        /// Path of the table.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
        /// What could make it usable.
        setting: Option<Setting>,
    },
    /// A plan that cannot be carried out.
    #[error("{reason}")]
    Plan {
        /// What it is about.
        setting: Setting,
        reason: String,
    },
    /// The data give no estimate.
    #[error("{}: {source}", path.display())]
    Estimate {
        /// Path of the table.
        path: PathBuf,
        source: SurvivalError,
    },
    /// A figure of the analysis does not exist.
    #[error(transparent)]
    Survival(#[from] SurvivalError),
    /// A summary of numbers does not exist.
    #[error(transparent)]
    Stats(#[from] StatsError),
    /// A grading scheme.
    #[error("{name}: not a grading scheme: {source}")]
    Scheme {
        /// Its name or file.
        name: String,
        source: toml::de::Error,
    },
    /// A picture.
    #[cfg(feature = "report")]
    #[error("a picture cannot be drawn: {0}")]
    Picture(#[from] pages::canvas::PictureError),
    /// The page.
    #[cfg(feature = "report")]
    #[error("the report cannot be rendered: {0}")]
    Page(#[from] askama::Error),
}

impl Remedied for Error {
    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Cell { setting, .. } | Self::Content { setting, .. } => {
                setting.map(Remedy::Change)
            }
            Self::Plan { setting, .. } => Some(Remedy::Change(*setting)),
            _ => None,
        }
    }
}

impl Error {
    pub(crate) fn plan(setting: Setting, reason: impl Into<String>) -> Self {
        Self::Plan { setting, reason: reason.into() }
    }
}

/// Results of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;
