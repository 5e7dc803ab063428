//! What can go wrong with a corpus on disk, always with the path and the remedy.

use base::file::{LockError, WriteError};
use base::log::{LogError, NameError};
use base::remedy::{Remedied, Remedy};
use parquet::errors::ParquetError;
use std::path::{Path, PathBuf};

/// Errors of reading, writing and checking a corpus.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "fields whose names state what they are")]
pub enum CorpusError {
    /// The operating system refused.
    #[error("{path}: {reason}")]
    Io {
        path: PathBuf,
        /// Its reason (no `source`: the message contains it).
        reason: std::io::Error,
    },
    /// A shard is not readable Parquet, or was cut short.
    #[error(
        "{path}: not a readable shard ({reason}); restore it from a copy or rebuild the corpus"
    )]
    Shard {
        path: PathBuf,
        /// The Parquet reader's reason.
        reason: String,
    },
    /// A shard is Parquet but not of this schema.
    #[error("{path}: column `{column}` {reason}; written by another tool or schema version")]
    Schema {
        path: PathBuf,
        column: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The manifest cannot be read.
    #[error("{path}: {reason}")]
    Manifest { path: PathBuf, reason: String },
    /// Checksum, count or digest differ from the manifest.
    #[error(
        "{path}: {what} is {found}, but {expected} in the manifest; the file changed after it was written"
    )]
    Mismatch {
        /// Path of the shard or manifest.
        path: PathBuf,
        what: &'static str,
        found: String,
        expected: String,
    },
    /// Another process writes this corpus or review.
    #[error("{path}: another process is writing here; wait for it to end")]
    Locked {
        /// The folder, or the reviewer's log.
        path: PathBuf,
    },
    /// A crop that no corpus may hold.
    #[error("crop `{crop}`: {reason}")]
    Crop {
        /// Its path in the corpus.
        crop: String,
        reason: String,
    },
    /// A sample that the corpus cannot fill.
    #[error("too few crops ({0}), unless what there is may do")]
    TooFew(String),
    /// Initials of a reviewer that cannot name a log.
    #[error("the initials are refused: {reason}")]
    Initials {
        /// The reason (no `source`: the message contains it).
        reason: NameError,
    },
    /// A picture on which not all can be seen that is asked.
    #[error(
        "{crop}: a picture of {side} px is too small for the squares of up to 75 px that are asked \
         about; it takes {least} px, as cut from its slide"
    )]
    SmallPicture {
        crop: String,
        /// Its shorter side, px.
        side: usize,
        /// What it must be, px.
        least: u32,
    },
    /// A table that is read with the corpus.
    #[error(transparent)]
    Table(#[from] base::table::TableError),
    /// The request itself cannot be met.
    #[error("{0}")]
    Invalid(String),
}

impl CorpusError {
    /// Wraps an I/O error with its path.
    pub fn io(path: impl AsRef<Path>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.as_ref().to_path_buf();
        move |reason| Self::Io { path, reason }
    }

    /// Wraps a Parquet error with its path.
    pub fn shard(path: impl AsRef<Path>) -> impl FnOnce(ParquetError) -> Self {
        let path = path.as_ref().to_path_buf();
        // A disk that refuses is not a damaged file.
        move |e| match e {
            ParquetError::External(e) => match e.downcast::<std::io::Error>() {
                Ok(reason) => Self::Io { path, reason: *reason },
                Err(e) => Self::Shard { path, reason: e.to_string() },
            },
            e => Self::Shard { path, reason: e.to_string() },
        }
    }
}

impl From<WriteError> for CorpusError {
    fn from(e: WriteError) -> Self {
        Self::Io { path: e.path, reason: e.source }
    }
}

impl From<LockError> for CorpusError {
    fn from(e: LockError) -> Self {
        match e {
            LockError::Busy { path } => Self::Locked { path },
            LockError::Io { path, source } => Self::Io { path, reason: source },
        }
    }
}

impl From<LogError> for CorpusError {
    fn from(e: LogError) -> Self {
        match e {
            LogError::Busy { path } => Self::Locked { path },
            LogError::Io { path, source } => Self::Io { path, reason: source },
            LogError::Replaced { path } => {
                let reason = "another program moved, replaced or cut it after it was opened";
                Self::Io { path, reason: std::io::Error::other(reason) }
            }
        }
    }
}

/// Shorthand.
pub type Result<T, E = CorpusError> = std::result::Result<T, E>;

impl Remedied for CorpusError {
    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::TooFew(_) => Some(Remedy::AllowShort),
            Self::SmallPicture { .. } => Some(Remedy::CutFromSlides),
            _ => None,
        }
    }
}
