//! What passes between the stages.

use crate::candidates::Extractor;
use crate::checkpoint::Scored;
use crate::error::ReadError;
use crate::flaw::Verdicts;
use crate::grid::WindowAt;
use mitosis::ProbMap;

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
    Unread(WindowAt, String),
    Flawed(WindowAt, Verdicts),
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
