//! Why the files over a run were not written.

use crate::file::{LockError, WriteError};

/// Why a run-level file was not written.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A file cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// Another process keeps the folder.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// A slide's own files cannot be read back.
    #[error("{path}: {reason}")]
    Read {
        /// The file.
        path: std::path::PathBuf,
        /// The reason.
        reason: String,
    },
    /// A slide's detections cannot be read back.
    #[error(transparent)]
    Table(#[from] artifact::table::TableError),
    /// The template failed.
    #[error("cannot render the summary: {0}")]
    Render(#[from] askama::Error),
}
