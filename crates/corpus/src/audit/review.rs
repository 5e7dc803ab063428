//! One reviewer's verdicts: a log that is only ever appended to, one line per key stroke.

use crate::error::{CorpusError, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

/// What the reviewer says about the centre of the picture (A2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It is what is asked for.
    Confirmed,
    /// It is not.
    NotConfirmed,
    /// Cannot tell.
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

/// The verdict on one picture as it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Verdict.
    pub verdict: Verdict,
    /// Box of a confirmed figure.
    #[serde(rename = "box", default, skip_serializing_if = "Option::is_none")]
    pub size: Option<BoxSize>,
    /// Another mitotic figure lies elsewhere in the crop.
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

/// A reviewer's log, read and open for appending.
pub struct ReviewLog {
    path: PathBuf,
    audit: String,
    file: File,
    entries: BTreeMap<String, Entry>,
    order: Vec<(String, Option<Entry>)>,
}

impl ReviewLog {
    /// Opens `reviews/<reviewer>.jsonl` of a package, creating it when new. A last line that a
    /// crash cut short is dropped.
    ///
    /// # Errors
    /// When the name is not made of letters, digits, `-`, `_` or `.`, another process holds the
    /// log, or it belongs to another audit.
    pub fn open(package: &Path, audit: &str, reviewer: &str) -> Result<Self> {
        check_name(reviewer)?;
        let dir = package.join("reviews");
        std::fs::create_dir_all(&dir).map_err(CorpusError::io(&dir))?;
        let path = dir.join(format!("{reviewer}.jsonl"));
        let (entries, whole) = match path.exists() {
            true => read(&path, audit)?,
            false => (BTreeMap::new(), 0),
        };
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .map_err(CorpusError::io(&path))?;
        if file.try_lock().is_err() {
            return Err(CorpusError::Locked { path });
        }
        file.set_len(whole).map_err(CorpusError::io(&path))?;
        Ok(Self { path, audit: audit.into(), file, entries, order: Vec::new() })
    }

    /// Verdicts as they stand, by item.
    #[must_use]
    pub const fn entries(&self) -> &BTreeMap<String, Entry> {
        &self.entries
    }

    /// Saves a verdict, or takes it back with `None`. On disk before this returns.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn set(&mut self, item: &str, entry: Option<Entry>) -> Result<()> {
        let before = self.entries.get(item).copied();
        self.append(item, entry)?;
        self.order.push((item.into(), before));
        Ok(())
    }

    /// Takes the last change of this session back; its item, or `None` when there is none.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn undo(&mut self) -> Result<Option<String>> {
        let Some((item, before)) = self.order.pop() else { return Ok(None) };
        self.append(&item, before)?;
        Ok(Some(item))
    }

    fn append(&mut self, item: &str, entry: Option<Entry>) -> Result<()> {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let unix_ms = now.map_or(0, |d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX));
        let line = Line { audit: self.audit.clone(), item: item.into(), unix_ms, entry };
        let mut text = serde_json::to_string(&line).map_err(|e| CorpusError::Manifest {
            path: self.path.clone(),
            reason: e.to_string(),
        })?;
        text.push('\n');
        self.file
            .write_all(text.as_bytes())
            .and_then(|()| self.file.sync_data())
            .map_err(CorpusError::io(&self.path))?;
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
            if path.extension().is_some_and(|e| e == "jsonl") {
                let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                out.insert(name, read(&path, audit)?.0);
            }
        }
        Ok(out)
    }
}

fn check_name(reviewer: &str) -> Result<()> {
    let ok = !reviewer.is_empty()
        && reviewer.len() <= 64
        && !reviewer.starts_with('.')
        && reviewer.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
    if ok {
        return Ok(());
    }
    Err(CorpusError::Invalid(format!(
        "reviewer name `{reviewer}`: use up to 64 letters, digits, `-`, `_` or `.`"
    )))
}

/// Verdicts and the length of the whole lines.
fn read(path: &Path, audit: &str) -> Result<(BTreeMap<String, Entry>, u64)> {
    let text = std::fs::read_to_string(path).map_err(CorpusError::io(path))?;
    let whole = text.rfind('\n').map_or(0, |i| i + 1);
    let mut entries = BTreeMap::new();
    for (i, line) in text[..whole].lines().enumerate() {
        let bad = |reason: String| CorpusError::Manifest {
            path: path.into(),
            reason: format!("line {}: {reason}", i + 1),
        };
        let line: Line = serde_json::from_str(line).map_err(|e| bad(e.to_string()))?;
        if line.audit != audit {
            return Err(bad(format!("belongs to the audit {}, not {audit}", line.audit)));
        }
        match line.entry {
            Some(e) => entries.insert(line.item, e),
            None => entries.remove(&line.item),
        };
    }
    Ok((entries, whole as u64))
}
