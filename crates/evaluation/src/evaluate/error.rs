//! Why predictions were not evaluated.

use base::remedy::{Remedied, Remedy};
use base::table::{TableError, Unmatched};
use base::text::Shown;
use mithras::report::{self};
use regions::units::Conflict;
use std::path::PathBuf;

/// Why nothing was evaluated.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "fields whose names state what they are")]
pub enum EvaluateError {
    /// The truth is not as documented.
    #[error("{}: {reason}", Shown(path))]
    Truth {
        /// Path of the table of known figures.
        path: PathBuf,
        reason: String,
    },
    /// A label that is not known.
    #[error("{place}: {reason}")]
    Word {
        /// File, column, row and line.
        place: String,
        reason: String,
    },
    /// The truth or the predictions are not a table as documented.
    #[error(transparent)]
    Table(#[from] TableError),
    /// The predictions cannot be read.
    #[error(transparent)]
    Counts(#[from] report::ReportError),
    /// The truth names slides without predictions.
    #[error(
        "no predictions in {} for {count} of {total} slides of the truth, the first: {first}; \
         every slide of the truth must have been run{}",
        Shown(dir), join.as_ref().map_or_else(String::new, |j| format!(" ({j})"))
    )]
    Missing {
        /// The folder of predictions.
        dir: PathBuf,
        count: usize,
        total: usize,
        first: String,
        /// Both sides' names that have no partner, where the folder has slides.
        join: Option<Box<Unmatched>>,
    },
    /// Results that are damaged, or of another slide.
    #[error("{}", reasons.join("; "))]
    Unsound {
        /// One reason a slide.
        reasons: Vec<String>,
    },
    /// A place of the truth that the slide does not have.
    #[error(
        "{slide}: the truth has a place at {x:.1}, {y:.1} px, outside the slide of {} x {} px; the truth \
         is of another file, level, um/px or orientation",
        size.0, size.1
    )]
    Outside {
        /// Name of the slide.
        slide: String,
        x: f64,
        y: f64,
        /// Its level-0 size, px.
        size: (u64, u64),
    },
    /// The regions that a slide was searched in cannot be read.
    #[error(transparent)]
    Regions(#[from] base::json::JsonError),
    /// A row of the truth has two places, in px and in um.
    #[error(transparent)]
    Conflict(#[from] Conflict),
    /// The radius or a point is not a number.
    #[error(transparent)]
    Match(#[from] mitosis::matching::MatchError),
    /// The requested package could not be opened.
    #[error(transparent)]
    Package(#[from] infer::PackageError),
    /// A stored resolution is not valid.
    #[error("{slide}: {source}")]
    Resolution {
        /// Name of the slide.
        slide: String,
        source: mitosis::MppError,
    },
}

impl Remedied for EvaluateError {
    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Counts(e) => e.remedy(),
            Self::Word { .. } => Some(Remedy::FigureWords),
            _ => None,
        }
    }
}
