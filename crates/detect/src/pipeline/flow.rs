//! What a run is given, and what passes between its stages.

use crate::candidates::Extractor;
use crate::checkpoint::{Scored, Unread};
use crate::error::ReadError;
use crate::flaw::{FlawedWindow, Verdicts};
use crate::grid::WindowAt;
use crate::recipe::{Job, Recipe, Workers};
use crate::source::TileSource;
use mitosis::ProbMap;

/// One run over a slide.
pub(crate) struct Run<'a> {
    pub(crate) source: &'a dyn TileSource,
    pub(crate) job: &'a Job<'a>,
    pub(crate) recipe: &'a Recipe,
    pub(crate) workers: &'a Workers,
}

/// A window to read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item {
    pub(super) at: WindowAt,
    /// Already done before the run was resumed; read again for its overlap with the next row.
    pub(super) warm: bool,
    /// Last window of its unit.
    pub(super) unit_end: bool,
}

/// What stages show the caller's thread.
pub(super) enum Event {
    Unread(Unread),
    Flawed(FlawedWindow),
    WindowDone,
    Scored(Scored),
    UnitEnd(Box<Stored>),
    End,
}

/// State of the assembling stage at the end of a unit.
pub(super) struct Stored {
    pub(super) next_row: u32,
    pub(super) extractor: Extractor,
}

/// The probabilities of a window; none where it could not be read.
pub(super) struct Segmented {
    /// Index of the window.
    pub(super) item: usize,
    pub(super) map: Option<ProbMap>,
}

/// What was read of a window.
pub(super) struct ReadWindow {
    /// Index of the window.
    pub(super) item: usize,
    pub(super) read: Result<Pixels, ReadError>,
}

/// The pixels of a window.
pub(super) struct Pixels {
    pub(super) tile: mitosis::RgbTile,
    /// What is wrong with them, where that was examined.
    pub(super) flaws: Option<Verdicts>,
}
