//! What a copy contains.

use std::path::PathBuf;

/// What a format wrote.
pub(super) struct Written {
    pub(super) output: Vec<PathBuf>,
    /// The file that opens the copy.
    pub(super) main: PathBuf,
    pub(super) removed: Vec<String>,
    pub(super) tiles: u64,
    pub(super) sha256: String,
    /// The same over the copy.
    pub(super) copied: String,
}
