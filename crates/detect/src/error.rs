//! What can end a slide.

use base::remedy::{Remedied, Remedy};
use mitosis::PortError;
use std::path::PathBuf;

/// Why a slide has no result.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "fields whose names state what they are")]
pub enum DetectError {
    /// The recipe or the job cannot be carried out.
    #[error("cannot detect: {0}")]
    Recipe(String),
    /// The slide cannot be used at all, e.g. it has no resolution.
    #[error("{0}")]
    Slide(#[from] ReadError),
    /// The model failed.
    #[error("{stage}: {source}")]
    Model {
        stage: &'static str,
        /// The engine's own word.
        source: PortError,
    },
    /// The model answered with something that is not an answer.
    #[error("{stage}: the model gave {reason}")]
    Answer {
        stage: &'static str,
        /// What it gave, and what was expected.
        reason: String,
    },
    /// More windows were unreadable than the recipe allows.
    #[error(
        "{unread} of {planned} windows could not be read, more than the allowed share of {allowed}; \
         the first: {first}. The file is damaged: copy it again if its source is whole, or raise \
         max_unread_share if a count without that area is wanted"
    )]
    Unread {
        unread: usize,
        /// All windows of the plan.
        planned: usize,
        allowed: f64,
        /// Reason given for the first of them.
        first: String,
    },
    /// More candidates than are allowed.
    #[error(
        "more than {0} candidates (limit `candidates`): the first stage takes ink, noise or another \
         stain for figures, or its threshold is too low; look at the slide, or raise the limit"
    )]
    Candidates(usize),
    /// A stored state does not belong to this run or is damaged.
    #[error("cannot continue from the stored state: {0}")]
    Checkpoint(String),
    /// Storing the state failed.
    #[error("cannot store the state of the run: {0}")]
    Store(#[from] StoreError),
    /// A stage panicked: a bug, reported instead of a hang.
    #[error("the {stage} stage stopped: {message}")]
    Panicked { stage: &'static str, message: String },
    /// The [`CancelToken`](crate::CancelToken) was set.
    #[error("cancelled")]
    Cancelled,
}

/// Why pixels could not be read, in the reader's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// A part of the slide cannot be decoded; the rest is sound, and that part may be left out.
    #[error("{0}")]
    Damaged(String),
    /// The file cannot be read, or the slide cannot be used. Nothing may be left out for it: the next try
    /// may succeed.
    #[error("{0}")]
    File(String),
}

/// The state of a run cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("{}: {source}", path.display())]
pub struct StoreError {
    /// Path of the checkpoint.
    pub path: PathBuf,
    /// Error of the operating system.
    pub source: std::io::Error,
}

impl Remedied for DetectError {
    fn remedy(&self) -> Option<Remedy> {
        matches!(self, Self::Unread { .. }).then_some(Remedy::UnreadShare)
    }
}
