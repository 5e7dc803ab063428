//! Why the crops of a task cannot be read.

use std::path::{Path, PathBuf};

/// Why labelled crops or their folds cannot be used.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "fields whose names state what they are")]
pub enum TaskError {
    /// A file or folder.
    #[error("{path}: {reason}")]
    File {
        path: PathBuf,
        /// Why, and what to do.
        reason: String,
    },
    /// A label that the task does not know.
    #[error("{path}: image `{image}` has the unknown label `{label}`; known: {known}")]
    UnknownLabel {
        /// Path of the table.
        path: PathBuf,
        image: String,
        label: String,
        known: String,
    },
    /// The same pixels under two labels.
    #[error(
        "`{first}` ({first_class}) and `{second}` ({second_class}) are the same image under two \
         labels; remove one"
    )]
    Contradiction { first: String, first_class: String, second: String, second_class: String },
    /// A fold that lacks a class.
    #[error(
        "fold {fold} has no `{class}` to {side} ({count} images of it in all); take fewer folds or another \
         data.split_seed, which may help, or leave the class out"
    )]
    MissingClass {
        /// Number of the fold.
        fold: usize,
        /// Name of the class.
        class: String,
        /// `train on` or `validate on`.
        side: &'static str,
        /// Images of the class in the whole set.
        count: usize,
    },
}

impl TaskError {
    pub(crate) fn file(path: &Path, reason: impl ToString) -> Self {
        Self::File { path: path.to_path_buf(), reason: reason.to_string() }
    }
}

/// Shorthand.
pub type Result<T, E = TaskError> = std::result::Result<T, E>;
