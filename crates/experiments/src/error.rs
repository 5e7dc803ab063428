//! What can go wrong outside a step.

use std::path::PathBuf;

/// Why a data set, an experiment or a run folder cannot be used.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "fields whose names state what they are")]
pub enum ExperimentError {
    /// A file of this program that does not follow its form.
    #[error("{file}: {reason}")]
    Form {
        /// Name of the built-in TOML file.
        file: String,
        reason: String,
    },
    /// A name that is not known.
    #[error("unknown {what} `{name}`; known: {known}")]
    Unknown {
        /// Data set, experiment, step.
        what: &'static str,
        /// As it was typed.
        name: String,
        known: String,
    },
    /// A file or folder that cannot be read.
    #[error("{}: {reason}", path.display())]
    Path {
        /// The file or folder.
        path: PathBuf,
        reason: String,
    },
    /// A file that cannot be written.
    #[error(transparent)]
    Write(#[from] base::file::WriteError),
    /// A run folder that another process works in.
    #[error(transparent)]
    Lock(#[from] base::file::LockError),
}

impl ExperimentError {
    pub(crate) fn form(file: impl Into<String>, reason: impl ToString) -> Self {
        Self::Form { file: file.into(), reason: reason.to_string() }
    }

    pub(crate) fn path(path: impl Into<PathBuf>, reason: impl ToString) -> Self {
        Self::Path { path: path.into(), reason: reason.to_string() }
    }
}

/// Short for results of this crate.
pub type Result<T, E = ExperimentError> = std::result::Result<T, E>;
