//! Why the files over a run were not written.

use crate::file::{LockError, WriteError};
use base::file::{ReadError, read_step};
use base::remedy::{Remedied, Remedy};
use base::text::Shown;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Why a run-level file was not written.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "fields whose names state what they are")]
pub enum ReportError {
    /// A file cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// Another process keeps the folder.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// A slide's own files cannot be read back.
    #[error("{}: {reason}", Shown(path))]
    Read {
        /// Path of the file of results.
        path: PathBuf,
        /// Cause, as the message shows it.
        reason: String,
    },
    /// The numbers of a recount were changed after they were written.
    #[error(
        "{}: its numbers have SHA-256 {now}, and the recount wrote {written}: it was changed by hand or is damaged; \
         recount the run",
        Shown(path)
    )]
    Recount {
        /// Path of the file.
        path: PathBuf,
        /// Digest of the numbers as they were written.
        written: String,
        /// Digest of those that are there.
        now: String,
    },
    /// A record of the slides of a list or of a command.
    #[error("{}{}", .0, read_step(.0).unwrap_or(
        "; without it a run or a case that lacks slides would look whole: run detection on the same slides again \
         and resume, which writes the record again, or remove the file to count without it"
    ))]
    List(base::json::JsonError),
    /// A finished slide's results cannot be used.
    #[error(transparent)]
    Unsound(#[from] crate::batch::ResultsError),
    /// A slide's detections cannot be read back.
    #[error(transparent)]
    Table(#[from] base::table::TableError),
    /// The folders contain no slides.
    #[error("{}: no slide with results here{}", paths(outs), outs.iter().map(|o| gathered_runs(o)).collect::<String>())]
    Nothing {
        /// The folders of runs.
        outs: Vec<PathBuf>,
    },
    /// The record of the run is missing.
    #[error(
        "{}: there are results of slides, but no record of the settings; run detection again and resume, \
         which writes the record",
        paths(outs)
    )]
    NoRecord {
        /// The folders of runs.
        outs: Vec<PathBuf>,
    },
    /// Slides that do not belong into one table.
    #[error(
        "{} and {} were made with different configurations, whose results do not belong together: \
         {differs}; put them into folders of their own, or run one again",
        Shown(first),
        Shown(second)
    )]
    Config {
        first: PathBuf,
        second: PathBuf,
        /// Which settings differ, with both values.
        differs: String,
    },
    /// Tables would replace those of another run.
    #[error(
        "{}: has slides of its own ({}), whose tables would be replaced; write into another folder, or gather this \
         run with the others",
        Shown(into),
        Shown(slide)
    )]
    Taken {
        /// Folder for the tables.
        into: PathBuf,
        /// Folder of a slide in it.
        slide: PathBuf,
    },
    /// Results of two files under one name.
    #[error(
        "{} and {} are results of two different files, and would both be the slide `{name}`; \
         rename one of the files and run it again, or gather them separately",
        Shown(first),
        Shown(second)
    )]
    Twice { name: String, first: PathBuf, second: PathBuf },
    /// The template failed.
    #[error("cannot render the summary: {0}")]
    Render(#[from] askama::Error),
}

fn paths(outs: &[PathBuf]) -> String {
    let all: Vec<String> = outs.iter().map(|o| Shown(o).to_string()).collect();
    all.join(", ")
}

impl Remedied for ReportError {
    fn remedy(&self) -> Option<Remedy> {
        let helps = match self {
            Self::List(e) => read_step(e).is_none(),
            _ => matches!(self, Self::NoRecord { .. }),
        };
        helps.then_some(Remedy::ContinueDetection)
    }
}

impl From<ReadError> for ReportError {
    fn from(e: ReadError) -> Self {
        let reason = format!("cannot be read: {}{}", e.source, read_step(&e).unwrap_or_default());
        Self::Read { path: e.path, reason }
    }
}

/// The runs that the tables in a folder were gathered from, as the end of a message about a folder without slides of
/// its own; empty where nothing was gathered into it.
#[must_use]
pub fn gathered_runs(folder: &Path) -> String {
    let file: Value = base::json::read(&folder.join("run.json")).unwrap_or_default();
    let slides = file["slides"].as_array().map_or(&[][..], Vec::as_slice);
    let run = |s: &Value| Some(Shown(folder.join(s["folder"].as_str()?).parent()?).to_string());
    let runs = Vec::from_iter(slides.iter().filter_map(run).collect::<BTreeSet<_>>()).join(", ");
    let names = "; its tables are of other folders; name one: ";
    if runs.is_empty() { runs } else { format!("{names}{runs}") }
}
