//! What can go wrong in this crate.

use std::path::Path;

use base::remedy::{Remedied, Remedy};
use encoders::EncoderError;

/// Result of this crate.
pub type Result<T> = std::result::Result<T, NetError>;

/// Errors with the file or name they belong to and what to do.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "fields whose names state what they are")]
pub enum NetError {
    /// libtorch refused.
    #[error("libtorch: {0}")]
    Torch(#[from] tch::TchError),
    /// The C++ shim over libtorch refused.
    #[error("libtorch ({call}): {reason}")]
    Shim { call: &'static str, reason: String },
    /// Another rank of a distributed run went away, or does not answer.
    #[error("the ranks are not whole any more: {reason}")]
    Ranks {
        /// Who, as far as it is known, or c10d's own words.
        reason: String,
    },
    /// Files, weights and settings of encoders.
    #[error(transparent)]
    Encoder(#[from] EncoderError),
    /// A device was asked for that is not there.
    #[error("device `{asked}`: {reason}")]
    Device { asked: String, reason: String },
}

impl Remedied for NetError {
    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Encoder(e) => e.remedy(),
            _ => None,
        }
    }
}

impl NetError {
    pub(crate) fn io(path: &Path, source: std::io::Error) -> Self {
        EncoderError::io(path, source).into()
    }

    pub(crate) fn file(path: &Path, reason: impl Into<String>, remedy: impl Into<String>) -> Self {
        EncoderError::file(path, reason, remedy).into()
    }

    pub(crate) fn config(key: impl Into<String>, reason: impl Into<String>) -> Self {
        EncoderError::config(key, reason).into()
    }
}
