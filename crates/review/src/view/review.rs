//! Reviewers' verdicts on candidates: a log per reviewer, appended to and never rewritten.

use crate::agreement::{Agreement, agreements};
use base::chain::{self, ChainError, Chained};
use base::file::WriteError;
use base::json::JsonError;
use base::log::{LogError, NameError, check_name};
use base::text::plain;
use serde::{Deserialize, Serialize};
use stats::StatsError;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// The schema of a line.
pub const SCHEMA: &str = "mithras.review/1";

/// Why a review cannot be read or saved.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "fields whose names state what they are")]
pub enum ReviewError {
    /// A name that is not valid.
    #[error("the reviewer's name is refused: {0}")]
    Name(NameError),
    /// A log cannot be read or written.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A log that was changed, or cannot be read or written.
    #[error(transparent)]
    Chain(#[from] ChainError),
    /// A file made of a log.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A file of drawn regions.
    #[error(transparent)]
    Drawn(#[from] JsonError),
    /// The folder of the logs.
    #[error("{}: {source}", path.display())]
    Folder {
        /// Folder of the logs.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// A log that is not there.
    #[error("{}: is not there; {}", path.display(), match &**others {
        [] => "no reviewer has a log in this folder".to_owned(),
        all => format!("this folder has the logs of {}", all.join(", ")),
    })]
    Missing {
        /// Path of the log.
        path: PathBuf,
        /// The reviewers whose logs are in its folder.
        others: Vec<String>,
    },
    /// A log that does not begin with the lines that were signed.
    #[error(
        "{}: not the log that {reviewer} signed for {slide} (version {version}): lines were changed or taken out since; put \
         the log that was signed back if you have it", path.display()
    )]
    Signed { path: PathBuf, reviewer: String, slide: String, version: usize },
    /// A line that is not a review, or of another schema.
    #[error("{}: line {line}: {reason}", path.display())]
    Line {
        /// Path of the log.
        path: PathBuf,
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
}

/// Whether a file of a folder is a reviewer's log; `._anna.jsonl` is what macOS writes next to one.
fn is_log(path: &Path) -> bool {
    let hidden = path.file_name().is_some_and(|n| n.to_string_lossy().starts_with('.'));
    !hidden && path.extension().is_some_and(|e| e == "jsonl")
}

/// Notes on reviewers whose names differ in case alone.
pub(super) fn names_by_case(names: &[String]) -> Vec<String> {
    let mut all: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for name in names {
        all.entry(name.to_lowercase()).or_default().push(name);
    }
    let several = all.into_values().filter(|own| own.len() > 1);
    several
        .map(|own| {
            format!("{} are different reviewers: their names differ in case", own.join(" and "))
        })
        .collect()
}

impl ReviewError {
    fn missing(path: &Path) -> Self {
        let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.path());
        let logs = entries.filter(|p| is_log(p));
        let stem = |p: PathBuf| p.file_stem().map(|s| plain(&s.to_string_lossy()).into_owned());
        let mut others: Vec<String> = logs.filter_map(stem).collect();
        others.sort();
        Self::Missing { path: path.to_owned(), others }
    }
}

/// A reviewer's verdict on a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// A mitotic figure.
    Figure,
    /// An atypical mitotic figure.
    Atypical,
    /// It only looks like one.
    Mimicker,
    /// Undecided; the network's decision is kept.
    Unsure,
    /// Nothing of interest: a candidate or an added figure that shall not count.
    Removed,
}

impl Verdict {
    /// Whether the place counts, if decided.
    #[must_use]
    pub fn counts(self) -> Option<bool> {
        match self {
            Self::Figure | Self::Atypical => Some(true),
            Self::Mimicker | Self::Removed => Some(false),
            Self::Unsure => None,
        }
    }
}

impl From<Verdict> for crate::agreement::Word {
    fn from(verdict: Verdict) -> Self {
        match verdict.counts() {
            Some(true) => Self::Yes,
            Some(false) => Self::No,
            None => Self::Unsure,
        }
    }
}

/// A verdict on one place; `verdict` null withdraws it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// `x,y` of a candidate to 0.01 px; a figure that the network missed has `+` in front.
    pub key: String,
    /// Level-0 px.
    pub x: f64,
    /// Level-0 px.
    pub y: f64,
    /// None withdraws an earlier one.
    pub verdict: Option<Verdict>,
    /// A figure that the network missed.
    pub added: bool,
    /// Its morphology, where the reviewer gave one: a name of [`mithras::record::COLUMNS`] without `p_`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub morphology: Option<String>,
    /// What the reviewer wrote about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
}

/// Longest comment, characters.
pub const LONGEST_COMMENT: usize = 500;

impl Entry {
    /// Whether a word names a morphology.
    #[must_use]
    pub fn is_morphology(word: &str) -> bool {
        mithras::record::COLUMNS[1..].iter().any(|c| c.strip_prefix("p_") == Some(word))
    }

    /// The key of a candidate's place.
    #[must_use]
    pub fn place_key(x: f64, y: f64) -> String {
        format!("{x:.2},{y:.2}")
    }
}

/// The slide that a review is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SlideKey {
    /// Its name in the run.
    pub slide: String,
    /// Digest of its file.
    pub slide_digest: String,
    /// Digest of the weights that gave the candidates; empty without a run.
    pub model_digest: String,
}

/// A line of the log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogLine {
    /// `mithras.review/1`.
    pub schema: String,
    /// Seconds since 1970, UTC.
    pub time: f64,
    /// Name and digest of the slide.
    #[serde(flatten)]
    pub of: SlideKey,
    /// The place and its verdict.
    #[serde(flatten)]
    pub entry: Entry,
    /// It takes the line before back, as far as that was not taken back already.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub undo: bool,
}

/// One reviewer's current verdicts on one slide.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SlideVerdicts {
    /// The last verdict on each key; withdrawn ones are left out.
    pub entries: BTreeMap<String, Entry>,
    /// Verdicts in the order of review that can be undone, each with the one it replaced.
    history: Vec<(Entry, Option<Entry>)>,
    /// The line of the log that last gave or withdrew a verdict on each key.
    lines: BTreeMap<String, usize>,
}

impl SlideVerdicts {
    /// Entries without a history, the first first.
    pub(super) fn from_entries(entries: impl IntoIterator<Item = Entry>) -> Self {
        let mut all = Self::default();
        for (line, entry) in entries.into_iter().enumerate() {
            all.lines.insert(entry.key.clone(), line);
            all.entries.insert(entry.key.clone(), entry);
        }
        all
    }

    /// The last verdict on each key, by key.
    fn list(&self) -> Vec<Entry> {
        self.entries.values().cloned().collect()
    }

    /// Takes a line of the log into account; `number` counts the lines of the whole log.
    fn apply(&mut self, line: &LogLine, number: usize) {
        let key = line.entry.key.clone();
        match line.undo && line.entry.verdict.is_none() {
            // As if nothing had been written: what was decided with other candidates holds again.
            true => self.lines.remove(&key),
            false => self.lines.insert(key, number),
        };
        let before = self.entries.get(&line.entry.key).cloned();
        match line.entry.verdict {
            Some(_) => self.entries.insert(line.entry.key.clone(), line.entry.clone()),
            None => self.entries.remove(&line.entry.key),
        };
        if line.undo {
            // Of any step, not of the last alone: the last verdict on this place.
            if let Some(at) = self.history.iter().rposition(|(e, _)| e.key == line.entry.key) {
                self.history.remove(at);
            }
        } else {
            self.history.push((line.entry.clone(), before));
        }
    }
}

/// One reviewer's current verdicts, by slide.
pub type Verdicts = BTreeMap<SlideKey, SlideVerdicts>;

/// The current verdicts of a log on a slide's file in the order of their lines, whichever model found its candidates:
/// of several on one key the last.
pub(super) fn entries_on<'a>(
    log: &'a Verdicts,
    slide: &str,
    slide_digest: &str,
) -> Vec<(&'a SlideKey, &'a Entry)> {
    let own = log.iter().filter(|(of, _)| of.slide == slide && of.slide_digest == slide_digest);
    let mut last: BTreeMap<&str, (usize, &SlideKey, Option<&Entry>)> = BTreeMap::new();
    for (of, verdicts) in own {
        for (key, &line) in &verdicts.lines {
            if last.get(key.as_str()).is_none_or(|(earlier, ..)| *earlier < line) {
                last.insert(key, (line, of, verdicts.entries.get(key)));
            }
        }
    }
    let mut all: Vec<_> =
        last.into_values().filter_map(|(line, of, entry)| Some((line, of, entry?))).collect();
    all.sort_by_key(|(line, ..)| *line);
    all.into_iter().map(|(_, of, entry)| (of, entry)).collect()
}

/// How far the reviewers of these logs agree, over all places of all slides.
///
/// # Errors
/// [`StatsError`].
pub fn agreement(logs: &BTreeMap<String, Verdicts>) -> Result<Vec<Agreement>, StatsError> {
    let verdicts = logs.iter().map(|(name, log)| {
        let entries = log.keys().flat_map(|SlideKey { slide, slide_digest, .. }| {
            let all = entries_on(log, slide, slide_digest).into_iter();
            all.filter_map(move |(_, e)| Some(((slide, slide_digest, &e.key), e.verdict?.into())))
        });
        (name.clone(), entries.collect())
    });
    agreements(&verdicts.collect())
}

/// One reviewer's log, held by this process alone.
pub struct VerdictLog {
    log: Chained,
    verdicts: Verdicts,
    lines: usize,
}

impl VerdictLog {
    /// The log's path in a folder.
    ///
    /// # Errors
    /// [`ReviewError::Name`].
    pub fn path(folder: &Path, reviewer: &str) -> Result<PathBuf, ReviewError> {
        check_name(reviewer).map_err(ReviewError::Name)?;
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
        let (log, text) = Chained::open(&path)?;
        let verdicts = parse(&path, &text)?;
        Ok(Self { log, verdicts, lines: text.lines().count() })
    }

    /// The current reviews in a log that another process may hold, by slide.
    ///
    /// # Errors
    /// [`ReviewError`].
    pub fn read(path: &Path) -> Result<Verdicts, ReviewError> {
        if !path.exists() {
            return Err(ReviewError::missing(path));
        }
        parse(path, &chain::read(path)?)
    }

    /// A reviewer's current verdicts on a slide, without making or holding the log; empty without a log.
    ///
    /// # Errors
    /// [`ReviewError`].
    pub fn read_slide(
        folder: &Path,
        reviewer: &str,
        of: &SlideKey,
    ) -> Result<Vec<Entry>, ReviewError> {
        let path = Self::path(folder, reviewer)?;
        let verdicts = parse(&path, &chain::read(&path)?)?;
        Ok(verdicts.get(of).map_or_else(Vec::new, SlideVerdicts::list))
    }

    /// The current reviews in every log of a folder, by reviewer; empty if the folder does not exist.
    ///
    /// # Errors
    /// [`ReviewError`].
    pub fn read_all(folder: &Path) -> Result<BTreeMap<String, Verdicts>, ReviewError> {
        let listed = match std::fs::read_dir(folder) {
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(BTreeMap::new()),
            other => {
                other.map_err(|source| ReviewError::Folder { path: folder.to_owned(), source })?
            }
        };
        let paths = listed.filter_map(|e| Some(e.ok()?.path()));
        let logs = paths.filter(|p| is_log(p));
        logs.map(|p| {
            let name = p.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            Ok((name, Self::read(&p)?))
        })
        .collect()
    }

    /// The current verdicts on a slide.
    #[must_use]
    pub fn entries(&self, of: &SlideKey) -> Vec<Entry> {
        self.verdicts.get(of).map_or_else(Vec::new, SlideVerdicts::list)
    }

    /// Saves a verdict; on disk before this returns.
    ///
    /// # Errors
    /// [`ReviewError::Log`] when the disk refuses; then nothing is saved.
    pub fn record(&mut self, of: &SlideKey, entry: Entry) -> Result<(), ReviewError> {
        self.append(of, entry, false)
    }

    /// Takes the last verdict on a slide back, of an earlier session, too; `None` if nothing is left.
    ///
    /// # Errors
    /// As [`VerdictLog::record`].
    pub fn undo(&mut self, of: &SlideKey) -> Result<Option<Entry>, ReviewError> {
        self.undo_verdict(of, None)
    }

    /// Takes the last verdict on one place back, or with no key the last of all.
    ///
    /// # Errors
    /// As [`VerdictLog::record`].
    pub fn undo_verdict(
        &mut self,
        of: &SlideKey,
        key: Option<&str>,
    ) -> Result<Option<Entry>, ReviewError> {
        let history = self.verdicts.get(of).map_or(&[][..], |s| &s.history);
        let last = history.iter().rev().find(|(e, _)| key.is_none_or(|k| e.key == k)).cloned();
        let Some((mut entry, before)) = last else { return Ok(None) };
        entry.verdict = before.as_ref().and_then(|e| e.verdict);
        entry.comment = before.as_ref().and_then(|e| e.comment.clone());
        entry.morphology = before.and_then(|e| e.morphology);
        self.append(of, entry.clone(), true)?;
        Ok(Some(entry))
    }

    fn append(&mut self, of: &SlideKey, entry: Entry, undo: bool) -> Result<(), ReviewError> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let time = now.map_or(0.0, |d| (d.as_secs_f64() * 1000.0).round() / 1000.0);
        let line = LogLine { schema: SCHEMA.into(), time, of: of.clone(), entry, undo };
        self.log.append(&line)?;
        self.verdicts.entry(of.clone()).or_default().apply(&line, self.lines);
        self.lines += 1;
        Ok(())
    }
}

fn parse(path: &Path, text: &str) -> Result<Verdicts, ReviewError> {
    let mut all = Verdicts::new();
    for (i, line) in text.lines().enumerate() {
        let bad = |reason: String| ReviewError::Line { path: path.to_owned(), line: i + 1, reason };
        let line: LogLine = serde_json::from_str(line).map_err(|e| bad(e.to_string()))?;
        if line.schema != SCHEMA {
            return Err(bad(format!("schema `{}`, this version reads `{SCHEMA}`", line.schema)));
        }
        all.entry(line.of.clone()).or_default().apply(&line, i);
    }
    Ok(all)
}
