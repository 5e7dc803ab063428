//! `state.json` in a slide's folder: what was done to it, with which configuration, on which bytes.

use crate::file;
use crate::input::InputDigest;
use base::text::plain;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Its name.
pub const FILE: &str = "state.json";
/// The only schema this build reads.
pub const SCHEMA: &str = "mithras.state/1";

/// The file; `work` is what this kind of work adds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct State<W> {
    /// [`SCHEMA`].
    pub schema: String,
    /// How it ended.
    pub status: Status,
    /// Digest of everything that changes a number.
    pub config: String,
    /// The slide's file.
    pub input: InputDigest,
    /// Why it failed.
    pub reason: Option<String>,
    /// Seconds, all in all.
    pub seconds: f64,
    /// What this kind of work adds.
    #[serde(flatten)]
    pub work: W,
    /// What the digest `config` is made of, by name, so that a difference can be told.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
    /// Further columns of the list that named the slide, with its cells: see [`crate::input::Input`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<(String, String)>,
}

/// How a slide ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// Not yet: interrupted if nobody is at work.
    Running,
    /// All its files are written.
    Finished,
    /// All its files are written; there was no tissue.
    NoTissue,
    /// See the reason.
    Failed,
}

impl<W> State<W> {
    /// Whether all its files are written.
    #[must_use]
    pub fn is_done(&self) -> bool {
        matches!(self.status, Status::Finished | Status::NoTissue)
    }
}

impl<W: Default + Serialize + DeserializeOwned> State<W> {
    /// A slide that is being worked on.
    #[must_use]
    pub fn running(config: &str, input: InputDigest) -> Self {
        Self {
            schema: SCHEMA.into(),
            status: Status::Running,
            config: config.into(),
            input,
            reason: None,
            seconds: 0.0,
            work: W::default(),
            settings: BTreeMap::new(),
            columns: Vec::new(),
        }
    }

    /// Reads the state of a slide's folder; `None` without one. A damaged state counts as none:
    /// the slide is done again.
    #[must_use]
    pub fn load(folder: &Path) -> Option<Self> {
        let text = std::fs::read_to_string(folder.join(FILE)).ok()?;
        let state: Self = serde_json::from_str(&text).ok()?;
        (state.schema == SCHEMA).then_some(state)
    }

    /// Writes it.
    ///
    /// # Errors
    /// [`file::WriteError`].
    pub fn save(&self, folder: &Path) -> Result<(), file::WriteError> {
        base::json::write(&folder.join(FILE), self)
    }
}

/// What differs between the settings of two states, in words.
#[must_use]
pub fn differences(before: &BTreeMap<String, String>, now: &BTreeMap<String, String>) -> String {
    if before.is_empty() {
        return "an earlier version of mithras did not note which".into();
    }
    let value = |v: Option<&String>| v.map_or("none".to_owned(), |v| format!("`{}`", plain(v)));
    let names: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
    let differ = names
        .into_iter()
        .filter(|n| before.get(*n) != now.get(*n))
        .map(|n| format!("{n} was {} and is {}", value(before.get(n)), value(now.get(n))));
    let all: Vec<String> = differ.collect();
    if all.is_empty() { "what it was given".into() } else { all.join(", ") }
}

/// Whether two groups of settings differ in that of this name and in no other.
pub(crate) fn differ_in_one(
    before: &BTreeMap<String, String>,
    now: &BTreeMap<String, String>,
    name: &str,
) -> bool {
    let rest = |all: &BTreeMap<String, String>| {
        let mut all = all.clone();
        all.remove(name);
        all
    };
    before.get(name) != now.get(name) && rest(before) == rest(now)
}

/// Whether a folder holds the results of a slide, of whatever work.
#[must_use]
pub fn is_at(folder: &Path) -> bool {
    #[derive(Deserialize)]
    struct Any {
        schema: String,
    }
    let text = std::fs::read_to_string(folder.join(FILE)).ok();
    text.and_then(|t| serde_json::from_str::<Any>(&t).ok()).is_some_and(|a| a.schema == SCHEMA)
}
