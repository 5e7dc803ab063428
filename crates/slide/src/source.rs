//! What a format gives: levels, properties, claims about the resolution, and tiles on demand.

use crate::limits::Fault;
use crate::resolution::Claim;
use mitosis::{Rect, RgbTile};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Colour of everything outside the slide and of tiles that the scanner left out.
pub const BACKGROUND: u8 = 255;

/// One level of the pyramid.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Level {
    /// Pixels per row.
    pub width: u64,
    /// Rows.
    pub height: u64,
    /// Level-0 pixels per pixel of this level, horizontally (>= 1).
    pub downsample_x: f64,
    /// Level-0 pixels per pixel of this level, vertically (>= 1).
    pub downsample_y: f64,
    /// Width of the stored tiles in pixels.
    pub tile_width: u32,
    /// Height of the stored tiles in pixels.
    pub tile_height: u32,
}

impl Level {
    /// Tile columns and rows.
    #[must_use]
    pub fn grid(&self) -> (u64, u64) {
        (
            self.width.div_ceil(u64::from(self.tile_width)),
            self.height.div_ceil(u64::from(self.tile_height)),
        )
    }
}

/// A tile whose data are in doubt; as JSON a list of the two.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(TileAt, String)", into = "(TileAt, String)")]
pub struct SuspectTile {
    /// Level, column and row of the tile.
    pub at: TileAt,
    /// Why: data after the end, no end marker, restart markers out of turn.
    pub reason: String,
}

impl From<(TileAt, String)> for SuspectTile {
    fn from((at, reason): (TileAt, String)) -> Self {
        Self { at, reason }
    }
}

impl From<SuspectTile> for (TileAt, String) {
    fn from(tile: SuspectTile) -> Self {
        (tile.at, tile.reason)
    }
}

/// A tile or strip of a pyramid level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TileAt {
    /// The level, 0 being the finest.
    pub level: usize,
    /// From the left, 0 the first.
    pub column: u64,
    /// From the top, 0 the first.
    pub row: u64,
}

/// A label, macro photograph or thumbnail stored next to the pyramid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AssociatedImage {
    /// `label`, `macro`, `thumbnail` or the vendor's word.
    pub name: String,
    /// Pixels per row.
    pub width: u64,
    /// Rows.
    pub height: u64,
    /// Why its pixels cannot be read, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<String>,
}

/// How far the pixels of a tile can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TileState {
    Sound,
    /// The file has none; they are white.
    Absent,
    /// They were decoded, but something about their data is wrong.
    Suspect(&'static str),
}

/// A decoded tile.
pub(crate) struct Decoded {
    pub(crate) tile: Arc<RgbTile>,
    pub(crate) state: TileState,
}

/// Decoded pixels on demand. Tiles at the right and bottom edge may be cut to the level or padded.
pub(crate) trait Source: Send + Sync {
    /// Decodes one tile of the level's grid.
    fn tile(&self, level: usize, column: u64, row: u64) -> Result<Decoded, Fault>;

    /// Decodes one tile of a level that is read whole, handing on its rows.
    fn rows(
        &self,
        level: usize,
        column: u64,
        row: u64,
        sink: &mut dyn FnMut(&[u8]) -> Result<(), String>,
    ) -> Result<TileState, Fault> {
        let Decoded { tile, state } = self.tile(level, column, row)?;
        tile.data.chunks_exact(3 * tile.width.max(1)).try_for_each(sink)?;
        Ok(state)
    }

    /// Whether the pieces of a level are strips or a whole image, not tiles.
    fn stripped(&self, level: usize) -> bool {
        let _ = level;
        false
    }

    /// Whether the file states that a tile is left out.
    fn absent(&self, level: usize, column: u64, row: u64) -> bool {
        let _ = (level, column, row);
        false
    }

    /// Places of the tiles of a level that the file states are left out.
    fn left_out(&self, level: usize) -> Vec<(u64, u64)> {
        let _ = level;
        Vec::new()
    }

    /// Bytes of the file that a tile has, where that is known without reading it.
    fn stored_bytes(&self, level: usize, column: u64, row: u64) -> Option<u64> {
        let _ = (level, column, row);
        None
    }

    /// What a reader of the numbers must know of the file, in sentences.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// Places in the file of the directories of a TIFF whose images are read: levels, and those next to them.
    fn directories(&self) -> Vec<u64> {
        Vec::new()
    }

    /// Whether the pixels are one channel of grey.
    fn is_grey(&self) -> bool {
        false
    }

    /// Rules that earlier versions of the numbers did not have and that this file needs, in sentences.
    fn later_rules(&self) -> Vec<String> {
        Vec::new()
    }

    /// Bytes of memory that decoding one tile of a level takes, roughly.
    fn working_bytes(&self, level: usize) -> u64;

    /// Decodes the `index`-th associated image.
    fn associated(&self, index: usize) -> Result<RgbTile, Fault>;
}

/// An opened file, before its resolution is settled.
pub(crate) struct Opened {
    pub(crate) vendor: String,
    pub(crate) levels: Vec<Level>,
    pub(crate) properties: BTreeMap<String, String>,
    pub(crate) claims: Vec<Claim>,
    pub(crate) bounds: Option<Rect>,
    pub(crate) associated: Vec<AssociatedImage>,
    pub(crate) source: Box<dyn Source>,
}

/// A level whose pixels contradict those of a finer one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Disagreement {
    /// The coarse level. It is not used; the next finer one replaces it.
    pub level: usize,
    /// The finer level that it was compared with.
    pub against: usize,
    /// Places that differ.
    pub differing: usize,
    /// Places that were compared.
    pub compared: usize,
}

impl fmt::Display for Disagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "level {} shows something else than level {} at {} of {} places; it is not used",
            self.level, self.against, self.differing, self.compared
        )
    }
}
