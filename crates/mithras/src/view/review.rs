//! What reviewers say about candidates: a log per reviewer, appended to and never rewritten.

use artifact::log::{Log, LogError, is_name};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// The schema of a line.
pub const SCHEMA: &str = "mithras.review/1";

/// Why a review cannot be read or saved.
#[derive(Debug, thiserror::Error)]
pub enum ReviewError {
    /// A name that is none.
    #[error(
        "the reviewer's name `{0}` is refused: up to 64 letters, digits, `-`, `_` or `.`, no dot first"
    )]
    Name(String),
    /// The file.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The folder of the logs.
    #[error("{}: {source}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// A line that is no review, or of another schema.
    #[error("{}: line {line}: {reason}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
}

/// What a reviewer says about a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// A mitotic figure.
    Figure,
    /// An atypical mitotic figure.
    Atypical,
    /// It only looks like one.
    Mimicker,
    /// Cannot tell; the network's word stands.
    Unsure,
    /// Nothing of interest: a candidate or an added figure that shall not count.
    Removed,
}

impl Verdict {
    /// Whether the place counts, where that is said.
    #[must_use]
    pub fn counts(self) -> Option<bool> {
        match self {
            Self::Figure | Self::Atypical => Some(true),
            Self::Mimicker | Self::Removed => Some(false),
            Self::Unsure => None,
        }
    }
}

/// What is said about one place; `verdict` null takes it back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// `x,y` of a candidate to 0.01 px; a figure that the network missed has `+` in front.
    pub key: String,
    /// Level-0 px.
    pub x: f64,
    /// Level-0 px.
    pub y: f64,
    /// The word.
    pub verdict: Option<Verdict>,
    /// A figure that the network missed.
    pub added: bool,
}

impl Entry {
    /// The key of a candidate's place.
    #[must_use]
    pub fn key_of(x: f64, y: f64) -> String {
        format!("{x:.2},{y:.2}")
    }
}

/// Of which slide something is said.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Change {
    /// Its name in the run.
    pub slide: String,
    /// Digest of its file.
    pub slide_digest: String,
    /// Digest of the weights that gave the candidates; empty without a run.
    pub model_digest: String,
}

/// A line of the log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// `mithras.review/1`.
    pub schema: String,
    /// Seconds since 1970, UTC.
    pub time: f64,
    /// The slide.
    #[serde(flatten)]
    pub of: Change,
    /// The word.
    #[serde(flatten)]
    pub entry: Entry,
    /// It takes the line before back, as far as that was not taken back already.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub undo: bool,
}

/// What stands about one slide, by key.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Standing {
    /// The last word on each key; taken back ones are not there.
    pub entries: BTreeMap<String, Entry>,
    /// Keys in the order of saying, each with what stood before.
    said: Vec<(Entry, Option<Verdict>)>,
}

impl Standing {
    fn hear(&mut self, line: &Line) {
        let before = self.entries.get(&line.entry.key).and_then(|e| e.verdict);
        match line.entry.verdict {
            Some(_) => self.entries.insert(line.entry.key.clone(), line.entry.clone()),
            None => self.entries.remove(&line.entry.key),
        };
        if line.undo {
            self.said.pop();
        } else {
            self.said.push((line.entry.clone(), before));
        }
    }
}

/// One reviewer's log, held by this process alone.
pub struct Reviews {
    log: Log,
    standing: BTreeMap<Change, Standing>,
}

impl Reviews {
    /// The log's path in a folder.
    ///
    /// # Errors
    /// [`ReviewError::Name`].
    pub fn path(folder: &Path, reviewer: &str) -> Result<PathBuf, ReviewError> {
        if !is_name(reviewer) {
            return Err(ReviewError::Name(reviewer.to_owned()));
        }
        Ok(folder.join(format!("{reviewer}.jsonl")))
    }

    /// Opens a reviewer's log in a folder, both made where they are missing.
    ///
    /// # Errors
    /// [`ReviewError`].
    pub fn open(folder: &Path, reviewer: &str) -> Result<Self, ReviewError> {
        let path = Self::path(folder, reviewer)?;
        std::fs::create_dir_all(folder)
            .map_err(|source| ReviewError::Folder { path: folder.to_owned(), source })?;
        let (log, text) = Log::open(&path)?;
        let standing = parse(&path, &text)?;
        Ok(Self { log, standing })
    }

    /// What stands in a log that somebody else may hold, by slide.
    ///
    /// # Errors
    /// [`ReviewError`].
    pub fn read(path: &Path) -> Result<BTreeMap<Change, Standing>, ReviewError> {
        parse(path, &Log::read(path)?)
    }

    /// What stands about a slide.
    #[must_use]
    pub fn of(&self, of: &Change) -> Vec<Entry> {
        self.standing.get(of).map_or_else(Vec::new, |s| s.entries.values().cloned().collect())
    }

    /// Saves a word; on disk before this returns.
    ///
    /// # Errors
    /// [`ReviewError::Log`] when the disk refuses; then nothing is saved.
    pub fn say(&mut self, of: &Change, entry: Entry) -> Result<(), ReviewError> {
        self.append(of, entry, false)
    }

    /// Takes the last word on a slide back, of an earlier session, too; `None` when there is none.
    ///
    /// # Errors
    /// As [`Reviews::say`].
    pub fn undo(&mut self, of: &Change) -> Result<Option<Entry>, ReviewError> {
        let last = self.standing.get(of).and_then(|s| s.said.last()).cloned();
        let Some((mut entry, before)) = last else { return Ok(None) };
        entry.verdict = before;
        self.append(of, entry.clone(), true)?;
        Ok(Some(entry))
    }

    fn append(&mut self, of: &Change, entry: Entry, undo: bool) -> Result<(), ReviewError> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let time = now.map_or(0.0, |d| (d.as_secs_f64() * 1000.0).round() / 1000.0);
        let line = Line { schema: SCHEMA.into(), time, of: of.clone(), entry, undo };
        let text = serde_json::to_string(&line).map_err(|e| ReviewError::Line {
            path: self.log.path().to_owned(),
            line: 0,
            reason: e.to_string(),
        })?;
        self.log.append(&text)?;
        self.standing.entry(of.clone()).or_default().hear(&line);
        Ok(())
    }
}

fn parse(path: &Path, text: &str) -> Result<BTreeMap<Change, Standing>, ReviewError> {
    let mut all: BTreeMap<Change, Standing> = BTreeMap::new();
    for (i, line) in text.lines().enumerate() {
        let bad = |reason: String| ReviewError::Line { path: path.to_owned(), line: i + 1, reason };
        let line: Line = serde_json::from_str(line).map_err(|e| bad(e.to_string()))?;
        if line.schema != SCHEMA {
            return Err(bad(format!("schema `{}`, this version reads `{SCHEMA}`", line.schema)));
        }
        all.entry(line.of.clone()).or_default().hear(&line);
    }
    Ok(all)
}
