//! A slide's count, read back.

use super::error::ReportError;
use crate::export::CountsFile;
use std::path::Path;

/// Reads a slide's `counts.json`.
///
/// # Errors
/// [`ReportError::Read`].
pub fn counts(folder: &Path) -> Result<CountsFile, ReportError> {
    let path = folder.join("counts.json");
    let fail = |reason: String| ReportError::Read { path: path.clone(), reason };
    let text = std::fs::read_to_string(&path).map_err(|e| fail(e.to_string()))?;
    CountsFile::parse(&text).map_err(|e| fail(e.to_string()))
}
