//! Text files of a run.

use base::file;
use std::path::Path;

use crate::error::{Result, TrainError};

/// Writes a text file whole.
pub(crate) fn write_text(path: &Path, text: &str) -> Result<()> {
    file::write(path, text.as_bytes()).map_err(|e| TrainError::run(path, e.source))
}
