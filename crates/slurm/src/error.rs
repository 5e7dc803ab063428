//! Why a job was not submitted, or not watched to its end.

use base::file::WriteError;
use base::json::JsonError;
use base::remedy::{Remedied, Remedy};
use base::text::{Shown, plain_lines};
use mithras::batch::InputError;
use mithras::report::ReportError;
use std::path::PathBuf;

/// Why a job was not submitted, or not watched to its end.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "fields whose names state what they are")]
pub enum SlurmError {
    /// The list cannot be used.
    #[error(transparent)]
    List(#[from] InputError),
    /// A folder cannot be made or found.
    #[error("{}: {source}", Shown(path))]
    Io {
        /// Folder that cannot be made or found.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// A word that a job file cannot hold.
    #[error(
        "`{}` cannot be used in a job file because of a quotation mark, backslash or line break; \
         rename the file or change the option",
        plain_lines(.0)
    )]
    Words(String),
    /// A job file cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// What was submitted before cannot be read.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// A program of Slurm's cannot be run.
    #[error(
        "{program} cannot be run; do this where jobs are submitted from, or write the job file alone: \
         {source}"
    )]
    Program {
        program: &'static str,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// Slurm refused.
    #[error("{program} refused: {}", plain_lines(reason))]
    Refused { program: &'static str, reason: String },
    /// No task did any slide.
    #[error("no slide was done; the first task that refused: {}", plain_lines(first))]
    Tasks {
        /// Its shard and reason.
        first: String,
    },
    /// Watching was interrupted; the job continues.
    #[error(
        "no longer watched; job {job} continues: `scancel {job}` ends it, and the same command watches \
         it again"
    )]
    Stopped { job: String },
    /// The tables cannot be made.
    #[error("{0}")]
    Gather(#[source] ReportError),
}

impl Remedied for SlurmError {
    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::List(e) => e.remedy(),
            Self::Program { .. } => Some(Remedy::WithoutScheduler),
            Self::Gather(e) => e.remedy(),
            _ => None,
        }
    }
}
