//! Lines of a chained log as typed values, and the time that they are given.

use super::review::ReviewError;
use base::chain::{self, Chained};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Seconds since 1970 to a millisecond.
pub(super) fn now() -> f64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0.0, |d| (d.as_secs_f64() * 1000.0).round() / 1000.0)
}

pub(super) fn lines<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>, ReviewError> {
    let text = chain::read(path)?;
    let parse = |(i, line): (usize, &str)| {
        serde_json::from_str(line).map_err(|e| ReviewError::Line {
            path: path.to_owned(),
            line: i + 1,
            reason: e.to_string(),
        })
    };
    text.lines().enumerate().map(parse).collect()
}

pub(super) fn append(path: &Path, line: &impl Serialize) -> Result<(), ReviewError> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)
            .map_err(|source| ReviewError::Folder { path: folder.to_owned(), source })?;
    }
    Ok(Chained::open(path)?.0.append(line)?)
}
