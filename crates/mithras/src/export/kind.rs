//! What an export is.

use crate::file::WriteError;
use crate::record::SlideRecord;
use base::remedy::{Remedied, Remedy};
use slide::SlideError;

/// One kind of file written for every slide.
pub struct Export {
    /// File name inside the slide's folder.
    pub file: &'static str,
    /// What it is for.
    pub about: &'static str,
    /// Makes the file's bytes: no time, no machine, the same for the same record.
    pub bytes: fn(&SlideRecord) -> Result<Vec<u8>, ExportError>,
}

/// Why an export was not written.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "fields whose names state what they are")]
pub enum ExportError {
    /// The library that encodes the format failed.
    #[error("cannot encode {file}: {reason}")]
    Encode { file: &'static str, reason: String },
    /// A picture's pixels cannot be read.
    #[error(transparent)]
    Slide(#[from] SlideError),
    /// A file cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
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

impl Remedied for ExportError {
    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Slide(e) => e.remedy(),
            _ => None,
        }
    }
}
