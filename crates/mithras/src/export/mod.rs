//! What is written per slide, one file each, one line each in [`EXPORTS`]. `docs/artifacts.md`
//! describes every field.
//!
//! Exports are pure: the same record gives the same bytes, whatever machine, thread count or
//! interruption lay between. Times live in `state.json` and `run.json` alone.

mod counts;
mod csv;
mod grand_challenge;
mod parquet;
mod qupath;
mod record;

pub use counts::{CountsFile, HotspotEntry, ResolutionEntry, UnreadEntry};
pub use csv::{DetectionRow, read as read_detections};
pub use record::{Condition, ModelEntry, SlideEntry, SlideRecord};

use crate::file::{self, WriteError};
use std::path::Path;

/// One kind of file written for every slide.
pub struct Export {
    /// File name inside the slide's folder.
    pub file: &'static str,
    /// What it is for.
    pub about: &'static str,
    /// Its bytes.
    pub bytes: fn(&SlideRecord) -> Result<Vec<u8>, ExportError>,
}

/// Every export. A new one is a file beside these and a line here.
pub static EXPORTS: &[Export] =
    &[csv::EXPORT, parquet::EXPORT, qupath::EXPORT, grand_challenge::EXPORT, counts::EXPORT];

/// Why an export was not written.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The encoder failed.
    #[error("cannot encode {file}: {reason}")]
    Encode {
        /// File name.
        file: &'static str,
        /// The encoder's word.
        reason: String,
    },
    /// The disk said no.
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// Writes every export of a slide into its folder.
///
/// # Errors
/// [`ExportError`]; files already written stay.
pub fn write_all(record: &SlideRecord, folder: &Path) -> Result<(), ExportError> {
    for export in EXPORTS {
        file::write(&folder.join(export.file), &(export.bytes)(record)?)?;
    }
    Ok(())
}

/// Pretty JSON with a final line break.
pub(crate) fn json(
    file: &'static str,
    value: &impl serde::Serialize,
) -> Result<Vec<u8>, ExportError> {
    let mut bytes = serde_json::to_vec_pretty(value)
        .map_err(|e| ExportError::Encode { file, reason: e.to_string() })?;
    bytes.push(b'\n');
    Ok(bytes)
}
