//! One reviewer's verdicts: a log that is only ever appended to, one line per key stroke.

use crate::error::{CorpusError, Result};
use base::log::{Log, check_name};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// The reviewer's verdict on the centre of the picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It is what is asked for.
    Confirmed,
    /// It is not.
    NotConfirmed,
    /// Undecided.
    Unsure,
}

/// Smallest square that encloses a confirmed figure, in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum BoxSize {
    /// 25 pixels.
    #[serde(rename = "25")]
    Px25,
    /// 50 pixels.
    #[serde(rename = "50")]
    Px50,
    /// 75 pixels.
    #[serde(rename = "75")]
    Px75,
    /// More than 75 pixels.
    #[serde(rename = "larger")]
    Larger,
}

/// The current verdict on one picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Confirmed, not confirmed or unsure.
    pub verdict: Verdict,
    /// Box of a confirmed figure.
    #[serde(rename = "box", default, skip_serializing_if = "Option::is_none")]
    pub size: Option<BoxSize>,
    /// There is another mitotic figure elsewhere in the crop.
    #[serde(default)]
    pub elsewhere: bool,
}

/// A line of the log; no entry means that the verdict was taken back.
#[derive(Serialize, Deserialize)]
struct Line {
    audit: String,
    item: String,
    unix_ms: u64,
    #[serde(default)]
    entry: Option<Entry>,
}

/// A change of this session that can be undone.
#[derive(Clone)]
struct Change {
    item: String,
    /// The verdict that it replaced.
    before: Option<Entry>,
}

/// A reviewer's log, read and open for appending.
pub struct ReviewLog {
    audit: String,
    log: Log,
    entries: BTreeMap<String, Entry>,
    /// The first first.
    changes: Vec<Change>,
}

impl ReviewLog {
    /// Opens `reviews/<reviewer>.jsonl` of a package, creating it when new. A last line that a
    /// crash cut short is dropped.
    ///
    /// # Errors
    /// When the initials are refused ([`check_name`]), another process holds the log, or it belongs to
    /// another audit.
    pub fn open(package: &Path, audit: &str, reviewer: &str) -> Result<Self> {
        check_name(reviewer).map_err(|reason| CorpusError::Initials { reason })?;
        let dir = package.join("reviews");
        std::fs::create_dir_all(&dir).map_err(CorpusError::io(&dir))?;
        let path = dir.join(format!("{reviewer}.jsonl"));
        let (log, text) = Log::open(&path)?;
        let entries = parse(&text, &path, audit)?;
        Ok(Self { audit: audit.into(), log, entries, changes: Vec::new() })
    }

    /// The current verdicts, by item.
    #[must_use]
    pub const fn entries(&self) -> &BTreeMap<String, Entry> {
        &self.entries
    }

    /// Saves a verdict, or takes it back with `None`. On disk before this returns.
    ///
    /// # Errors
    /// When the log cannot be written.
    pub fn set(&mut self, item: &str, entry: Option<Entry>) -> Result<()> {
        let before = self.entries.get(item).copied();
        self.append(item, entry)?;
        self.changes.push(Change { item: item.into(), before });
        Ok(())
    }

    /// Undoes the last change of this session; returns its item, or `None` if nothing was changed.
    ///
    /// # Errors
    /// When the log cannot be written.
    pub fn undo(&mut self) -> Result<Option<String>> {
        let Some(Change { item, before }) = self.changes.last().cloned() else { return Ok(None) };
        self.append(&item, before)?;
        self.changes.pop();
        Ok(Some(item))
    }

    fn append(&mut self, item: &str, entry: Option<Entry>) -> Result<()> {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let unix_ms = now.map_or(0, |d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX));
        let line = Line { audit: self.audit.clone(), item: item.into(), unix_ms, entry };
        let text = serde_json::to_string(&line).map_err(|e| CorpusError::Manifest {
            path: self.log.path().to_owned(),
            reason: e.to_string(),
        })?;
        self.log.append(&text)?;
        match entry {
            Some(e) => self.entries.insert(item.into(), e),
            None => self.entries.remove(item),
        };
        Ok(())
    }

    /// All finished logs of a package, by reviewer.
    ///
    /// # Errors
    /// When a log cannot be read or belongs to another audit.
    pub fn read_all(
        package: &Path,
        audit: &str,
    ) -> Result<BTreeMap<String, BTreeMap<String, Entry>>> {
        let dir = package.join("reviews");
        let mut out = BTreeMap::new();
        if !dir.exists() {
            return Ok(out);
        }
        for file in std::fs::read_dir(&dir).map_err(CorpusError::io(&dir))? {
            let path = file.map_err(CorpusError::io(&dir))?.path();
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            // `._anna.jsonl` is what macOS writes next to a log.
            if !name.starts_with('.') && path.extension().is_some_and(|e| e == "jsonl") {
                out.insert(name, parse(&Log::read(&path)?, &path, audit)?);
            }
        }
        Ok(out)
    }
}

/// Verdicts of whole lines.
fn parse(text: &str, path: &Path, audit: &str) -> Result<BTreeMap<String, Entry>> {
    let mut entries = BTreeMap::new();
    for (i, line) in text.lines().enumerate() {
        let bad = |reason: String| CorpusError::Manifest {
            path: path.into(),
            reason: format!("line {}: {reason}", i + 1),
        };
        let line = parse_line(line).map_err(|e| bad(e.to_string()))?;
        if line.audit != audit {
            return Err(bad(format!("belongs to the audit {}, not {audit}", line.audit)));
        }
        match line.entry {
            Some(e) => entries.insert(line.item, e),
            None => entries.remove(&line.item),
        };
    }
    Ok(entries)
}

/// A line. Earlier versions left half a line on a full disk and glued the next one to it: that one
/// was answered as saved, and counts.
fn parse_line(line: &str) -> serde_json::Result<Line> {
    serde_json::from_str(line).or_else(|e| {
        let glued = line.rfind(r#"{"audit":"#).filter(|at| *at > 0);
        glued.map_or(Err(e), |at| serde_json::from_str(&line[at..]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SURE: Entry = Entry { verdict: Verdict::Confirmed, size: None, elsewhere: false };

    #[test]
    fn a_log_from_a_full_disk_is_read_and_continued() {
        let Some(damaged) = testkit::data("hostile/audit_enospc/dd.jsonl") else { return };
        let dir = tempfile::tempdir().unwrap();
        let reviews = dir.path().join("reviews");
        std::fs::create_dir(&reviews).unwrap();
        let text = std::fs::read_to_string(damaged).unwrap();
        std::fs::write(reviews.join("dd.jsonl"), &text).unwrap();
        let mut log = ReviewLog::open(dir.path(), "3f62cd93950fe97a", "dd").unwrap();
        // The verdict that was glued to half a line had been answered as saved.
        assert_eq!(log.entries()["3f7822c8dd9c41fd"].verdict, Verdict::Unsure);
        assert_eq!(log.entries()["58ab8c9cbb80d8b5"].verdict, Verdict::Unsure);
        log.set("43894469b194406b", None).unwrap();
        drop(log);
        let all = ReviewLog::read_all(dir.path(), "3f62cd93950fe97a").unwrap();
        assert!(!all["dd"].contains_key("43894469b194406b"));
    }

    #[test]
    fn files_that_macos_writes_next_to_a_log_are_passed_over() {
        let dir = tempfile::tempdir().unwrap();
        ReviewLog::open(dir.path(), "a1", "anna").unwrap().set("one", Some(SURE)).unwrap();
        std::fs::write(dir.path().join("reviews/._anna.jsonl"), [0, 5, 22, 7]).unwrap();
        let all = ReviewLog::read_all(dir.path(), "a1").unwrap();
        assert_eq!(all.keys().collect::<Vec<_>>(), ["anna"]);
    }

    #[test]
    fn a_cut_last_line_is_dropped_under_the_lock() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = ReviewLog::open(dir.path(), "a1", "bert").unwrap();
        log.set("one", Some(SURE)).unwrap();
        assert!(matches!(
            ReviewLog::open(dir.path(), "a1", "bert"),
            Err(CorpusError::Locked { .. })
        ));
        let path = log.log.path().to_owned();
        drop(log);
        let mut text = std::fs::read_to_string(&path).unwrap();
        text.push_str(r#"{"audit":"a1","item":"tw"#);
        std::fs::write(&path, &text).unwrap();
        let mut log = ReviewLog::open(dir.path(), "a1", "bert").unwrap();
        log.set("three", Some(SURE)).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 2);
    }
}
