//! A log whose every line names the digest of the line before it: what was changed, taken out or put in between is
//! noticed.

use crate::digest::sha256;
use crate::log::{Log, LogError};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Why a chained log cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ChainError {
    /// The log cannot be read or written.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A line that is damaged, or not the one that was written.
    #[error("{}: line {line}: {reason}", path.display())]
    Line {
        /// Path of the log.
        path: PathBuf,
        /// From 1; 0 for one that was not written.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
}

/// Field of a line that holds the SHA-256 of the line before; empty in the first line.
const PREVIOUS: &str = "previous";

/// A log under way, held by this process alone.
pub struct Chained {
    log: Log,
    last: String,
}

impl Chained {
    /// Opens a log, creating it when new, and gives its checked lines.
    ///
    /// # Errors
    /// [`ChainError`].
    pub fn open(path: &Path) -> Result<(Self, String), ChainError> {
        let (log, text) = Log::open(path)?;
        let last = verify(path, &text)?;
        Ok((Self { log, last }, text))
    }

    /// Adds an object as a line; on disk before this returns.
    ///
    /// # Errors
    /// [`ChainError`] when the disk refuses; then nothing is added.
    pub fn append(&mut self, line: &impl Serialize) -> Result<(), ChainError> {
        let bad =
            |reason: String| ChainError::Line { path: self.log.path().to_owned(), line: 0, reason };
        let mut value = serde_json::to_value(line).map_err(|e| bad(e.to_string()))?;
        let map = value.as_object_mut().ok_or_else(|| bad("a line is not an object".into()))?;
        map.insert(PREVIOUS.into(), self.last.as_str().into());
        let text = serde_json::to_string(&value).map_err(|e| bad(e.to_string()))?;
        self.log.append(&text)?;
        self.last = sha256(&text);
        Ok(())
    }
}

/// The checked lines of a log that another process may hold; empty when the file does not exist.
///
/// # Errors
/// [`ChainError`].
pub fn read(path: &Path) -> Result<String, ChainError> {
    if !path.exists() {
        return Ok(String::new());
    }
    let text = Log::read(path)?;
    verify(path, &text)?;
    Ok(text)
}

/// Checks every line that names the one before; lines of earlier versions, which all come first, name none. Gives the
/// digest of the last line.
fn verify(path: &Path, text: &str) -> Result<String, ChainError> {
    let bad = |line: usize, reason: &str| ChainError::Line {
        path: path.to_owned(),
        line,
        reason: reason.to_owned(),
    };
    let mut last = String::new();
    let mut chained = false;
    for (i, line) in text.lines().enumerate() {
        let value: serde_json::Value =
            serde_json::from_str(line).map_err(|e| bad(i + 1, &e.to_string()))?;
        match value.get(PREVIOUS).and_then(|v| v.as_str()) {
            Some(previous) if previous == last => chained = true,
            Some(_) => {
                return Err(bad(
                    i + 1,
                    "the lines before it are not those that it was added to: the log was changed",
                ));
            }
            None if chained => {
                return Err(bad(i + 1, "it does not name the line before it: the log was changed"));
            }
            None => {}
        }
        last = sha256(line);
    }
    Ok(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn what_was_changed_afterwards_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.jsonl");
        // Lines of an earlier version.
        std::fs::write(&path, "{\"n\":0}\n").unwrap();
        let (mut log, _) = Chained::open(&path).unwrap();
        for n in 1..4 {
            log.append(&BTreeMap::from([("n", n)])).unwrap();
        }
        drop(log);
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(read(&path).unwrap(), text);
        assert_eq!(text.lines().count(), 4);
        let lines: Vec<&str> = text.lines().collect();
        let reread = |lines: &[&str]| {
            std::fs::write(&path, lines.join("\n") + "\n").unwrap();
            read(&path).map_err(|e| e.to_string())
        };
        let other = lines[1].replace("\"n\":1", "\"n\":9");
        for bad in [
            vec![lines[0], &other, lines[2], lines[3]],
            vec![lines[0], lines[2], lines[3]],
            vec![lines[0], lines[1], lines[3], lines[2]],
            vec![lines[0], lines[1], "{\"n\":7}", lines[2], lines[3]],
        ] {
            assert!(reread(&bad).unwrap_err().contains("the log was changed"), "{bad:?}");
        }
        assert!(reread(&lines).is_ok());
        let (mut log, _) = Chained::open(&path).unwrap();
        log.append(&BTreeMap::from([("n", 4)])).unwrap();
        assert_eq!(read(&path).unwrap().lines().count(), 5);
    }
}
