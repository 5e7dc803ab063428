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
    crate::batch::counts(folder).map_err(|reason| ReportError::Read { path, reason })
}
