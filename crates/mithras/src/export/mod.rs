//! What is written per slide, one file each, one line each in [`EXPORTS`]. `docs/artifacts.md` describes every field.
//!
//! Exports are pure: the same record gives the same bytes, whatever the machine, thread count or
//! interruptions. Times are in `state.json` and `run.json` alone.

mod caveat;
mod counts;
mod csv;
mod grand_challenge;
mod hotspot;
mod kind;
mod parquet;
pub mod pictures;
pub mod qupath;
mod region_counts;
mod restore;

pub use caveat::{Caveat, CaveatKind, labels};
pub use counts::{CountsError, CountsFile, OUT_OF_FOCUS_SHARE, ResolutionEntry, UnreadEntry};
pub use csv::read as read_detections;
pub use hotspot::{HOTSPOT_MM2, HotspotEntry};
pub use kind::{Export, ExportError};
pub use region_counts::{RegionCount, RegionCounts};
pub use restore::restored;

use crate::file;
use crate::record::SlideRecord;
use std::panic::resume_unwind;
use std::path::Path;
use std::thread::{self, ScopedJoinHandle};

/// Every export. A new one is a file in this folder and a line here.
pub static EXPORTS: &[Export] =
    &[csv::EXPORT, parquet::EXPORT, qupath::EXPORT, grand_challenge::EXPORT, counts::EXPORT];

/// A slide's candidates as Grand Challenge takes them: "Multiple points", mm.
///
/// # Errors
/// [`ExportError`] where the resolution cannot be written.
pub fn grand_challenge(record: &SlideRecord) -> Result<Vec<u8>, ExportError> {
    (grand_challenge::EXPORT.bytes)(record)
}

/// Writes every export of a slide into its folder.
///
/// # Errors
/// [`ExportError`]; files already written stay.
pub fn write_all(record: &SlideRecord, folder: &Path) -> Result<(), ExportError> {
    // Each waits for the disk; at once they wait once.
    thread::scope(|scope| {
        let write = |e: &Export| Ok(file::write(&folder.join(e.file), &(e.bytes)(record)?)?);
        let started: Vec<_> = EXPORTS.iter().map(|e| scope.spawn(move || write(e))).collect();
        let mut written = started.into_iter().map(ScopedJoinHandle::join);
        written.try_for_each(|w| w.unwrap_or_else(|panic| resume_unwind(panic)))
    })
}
