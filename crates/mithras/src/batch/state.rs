//! `state.json` in a slide's folder: what was done to it, with which configuration, on which bytes.

use crate::file;
use crate::input::InputDigest;
pub use crate::record::RESULTS_VERSION;
use base::file::read_step;
use base::renamed;
use base::sealed::{SealError, Sealed};
use base::text::{Many, plain};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::path::Path;

/// Name of the state's file in a slide's folder.
pub const FILE: &str = "state.json";
/// The only schema this build reads.
pub const SCHEMA: &str = "mithras.state/1";

/// What the schemas of all versions begin with.
const FAMILY: &str = "mithras.state/";
/// Largest file that is read, bytes.
const LARGEST: u64 = 64 << 20;

/// What to do about results of a later version.
const LATER: &str = "; use the version that wrote it if you have it";
/// The same, of those that this version can make again.
pub(super) const AGAIN: &str = "; detection with the slide again, resuming, does it again";

/// Why a state that is there cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{}", self.cause(), self.step())]
#[expect(missing_docs, reason = "fields whose names state what they are")]
pub enum StateError {
    /// It is cut short, or not what this program writes.
    Damaged { reason: String },
    /// The system does not let it be read.
    Read { reason: String, step: &'static str },
    /// It is of another version of the format.
    Schema { found: String },
}

impl StateError {
    /// What is wrong, without what to do about it.
    pub(crate) fn cause(&self) -> String {
        match self {
            Self::Damaged { reason } => format!("its {FILE} is damaged ({reason})"),
            Self::Read { reason, .. } => format!("its {FILE} cannot be read ({reason})"),
            Self::Schema { found } => {
                format!(
                    "its {FILE} has the schema {found}, and this version of mithras reads {SCHEMA}"
                )
            }
        }
    }

    /// What to do about it.
    pub(super) fn step(&self) -> &'static str {
        match self {
            Self::Damaged { .. } => AGAIN,
            Self::Read { step, .. } => step,
            Self::Schema { .. } => LATER,
        }
    }

    /// Whether doing the slide again mends it.
    pub(super) fn is_mended(&self) -> bool {
        self.step() == AGAIN
    }

    /// Of results that have lost their state.
    pub(crate) fn missing() -> Self {
        Self::Damaged { reason: "it is missing".into() }
    }
}

/// The file; `work` is what this kind of work adds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct State<W> {
    /// [`SCHEMA`].
    pub schema: String,
    /// How it ended.
    pub status: Status,
    /// Digest of everything that changes a number.
    pub config: String,
    /// Size, time and digest of the slide's file.
    pub input: InputDigest,
    /// Message of the error where it failed.
    pub reason: Option<String>,
    /// Seconds, all in all.
    pub seconds: f64,
    /// What this kind of work adds.
    #[serde(flatten)]
    pub work: W,
    /// The settings behind the digest `config`, by name: errors name those that differ.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
    /// The files of its results; states of version 0.1 before 2026-11-26 have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub results: Option<Sealed>,
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
    /// All its files are written; no tissue was found.
    NoTissue,
    /// No results; [`State::reason`] has the error.
    Failed,
}

impl<W> State<W> {
    /// Whether all its files are written.
    #[must_use]
    pub fn is_done(&self) -> bool {
        matches!(self.status, Status::Finished | Status::NoTissue)
    }

    /// Why its slide is not done, whatever files are in the folder; none for one that is.
    #[must_use]
    pub fn undone(&self) -> Option<String> {
        match self.status {
            Status::Finished | Status::NoTissue => None,
            Status::Running => Some("detection has not ended".into()),
            Status::Failed => {
                let reason = self.reason.as_deref().unwrap_or("unknown");
                Some(format!("detection failed: {}", plain(reason)))
            }
        }
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
            results: None,
            columns: Vec::new(),
        }
    }

    /// Reads the state of a slide's folder; `None` without one, and for one that cannot be used
    /// ([`Self::read`] gives the reason).
    #[must_use]
    pub fn load(folder: &Path) -> Option<Self> {
        Self::read(folder).ok().flatten()
    }

    /// Reads the state of a slide's folder; `None` without one.
    ///
    /// # Errors
    /// [`StateError`] for one that is damaged, cannot be read or is of a later version.
    pub fn read(folder: &Path) -> Result<Option<Self>, StateError> {
        use std::io::ErrorKind::{NotADirectory, NotFound};
        let damaged = |reason: String| StateError::Damaged { reason };
        let bytes = match file::read(&folder.join(FILE), LARGEST) {
            Ok(bytes) => bytes,
            Err(e) if matches!(e.source.kind(), NotFound | NotADirectory) => return Ok(None),
            Err(e) => {
                let (reason, step) = (e.source.to_string(), read_step(&e).unwrap_or(AGAIN));
                return Err(StateError::Read { reason, step });
            }
        };
        let value: serde_json::Value =
            base::json::parse(&bytes).map_err(|e| damaged(e.to_string()))?;
        match value["schema"].as_str() {
            Some(SCHEMA) => {}
            Some(other) if other.starts_with(FAMILY) => {
                return Err(StateError::Schema { found: plain(other).into_owned() });
            }
            _ if has_results(folder) => return Err(damaged("it is not a slide's".into())),
            // The state.json of another program is not a slide's.
            _ => return Ok(None),
        }
        serde_json::from_value(value).map(Some).map_err(|e| damaged(e.to_string()))
    }

    /// Checks the files of its results against the digests that it records.
    ///
    /// # Errors
    /// [`SealError`] for the first that is not.
    pub fn check(&self, folder: &Path, wanted: impl Fn(&str) -> bool) -> Result<(), SealError> {
        self.results.as_ref().map_or(Ok(()), |sealed| sealed.check(folder, wanted))
    }

    /// Writes it.
    ///
    /// # Errors
    /// [`file::WriteError`].
    pub fn save(&self, folder: &Path) -> Result<(), file::WriteError> {
        base::json::write(&folder.join(FILE), self)
    }
}

/// Settings as this version names them: states of earlier versions name the program's version where
/// later ones name that of the numbers ([`RESULTS_VERSION`]), and keys that were [`renamed`] by their earlier names.
#[must_use]
pub fn upgraded(settings: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let current = |(name, value): (&String, &String)| (renamed::current(name), value.clone());
    let mut now: BTreeMap<String, String> = settings.iter().map(current).collect();
    if let Some(version) = now.get("version") {
        let first = RELEASES_OF_VERSION_1.contains(&version.as_str());
        let version = if first { VERSION_1.to_owned() } else { format!("of mithras {version}") };
        now.remove("version");
        now.entry(RESULTS_SETTING.to_owned()).or_insert(version);
    }
    now
}

/// Settings that states of earlier versions do not record: results without one are those of a former version, and kept.
const LATER_SETTINGS: [&str; 1] = ["model.networks_sha256"];

/// Two groups of settings as this version names them, without what one of them could not record.
fn comparable(
    a: &BTreeMap<String, String>,
    b: &BTreeMap<String, String>,
) -> [BTreeMap<String, String>; 2] {
    let mut both = [upgraded(a), upgraded(b)];
    for name in LATER_SETTINGS {
        if both.iter().any(|settings| !settings.contains_key(name)) {
            both.iter_mut().for_each(|settings| drop(settings.remove(name)));
        }
    }
    both
}

/// Whether two groups of settings are the same, as far as both record them.
pub(crate) fn alike(a: &BTreeMap<String, String>, b: &BTreeMap<String, String>) -> bool {
    let [a, b] = comparable(a, b);
    a == b
}

/// The name of [`RESULTS_VERSION`] among the settings.
pub const RESULTS_SETTING: &str = "results_version";
/// The um/px that was given for a slide.
pub(crate) const OWN_SETTING: &str = "given um/px";
/// The settings of a slide that are its own, not its run's.
pub(crate) const OWN_SETTINGS: [&str; 2] = [OWN_SETTING, "regions"];
/// Releases that did not name it and whose numbers are those of version 1.
pub const RELEASES_OF_VERSION_1: &[&str] = &["0.1.0"];
const VERSION_1: &str = "1";

/// The version of the numbers of these settings, where it is an earlier one: its results are kept where the slide gives
/// the same by this one.
#[must_use]
pub fn former_version(settings: &BTreeMap<String, String>) -> Option<u32> {
    let version = upgraded(settings).get(RESULTS_SETTING)?.parse().ok()?;
    (version < RESULTS_VERSION).then_some(version)
}

/// The settings of results of a former version as this version would name them; none of results of another version.
pub(crate) fn raised(settings: &BTreeMap<String, String>) -> Option<BTreeMap<String, String>> {
    former_version(settings)?;
    let mut settings = upgraded(settings);
    settings.insert(RESULTS_SETTING.to_owned(), RESULTS_VERSION.to_string());
    Some(settings)
}

/// What differs between the settings of two states, as text.
#[must_use]
pub fn differences(before: &BTreeMap<String, String>, now: &BTreeMap<String, String>) -> String {
    if before.is_empty() {
        return "an earlier version of mithras did not note which".into();
    }
    let [before, now] = &comparable(before, now);
    let value = |v: Option<&String>| v.map_or("none".to_owned(), |v| format!("`{}`", plain(v)));
    let names: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
    let differ = names
        .into_iter()
        .filter(|n| before.get(*n) != now.get(*n))
        .map(|n| format!("{n} was {} and is {}", value(before.get(n)), value(now.get(n))));
    let mut all: Vec<String> = differ.collect();
    // Of another model nearly every setting differs: its name is enough.
    all.sort_by_key(|text| !text.starts_with("model.name "));
    let more = all.len().saturating_sub(MOST_DIFFERENCES);
    all.truncate(MOST_DIFFERENCES);
    match (all.is_empty(), more) {
        (true, _) => "what it was given".into(),
        (_, 0) => all.join(", "),
        (_, more) => format!("{}, and {} more", all.join(", "), Many(more, "setting")),
    }
}

/// Settings that are named where more differ.
const MOST_DIFFERENCES: usize = 4;

/// Whether two groups of settings differ in that of this name and in no other.
pub(crate) fn differ_in_one(
    before: &BTreeMap<String, String>,
    now: &BTreeMap<String, String>,
    name: &str,
) -> bool {
    let [mut before, mut now] = comparable(before, now);
    before.remove(name) != now.remove(name) && before == now
}

/// Whether a folder holds a count, whatever its state.
pub(crate) fn has_results(folder: &Path) -> bool {
    folder.join("counts.json").symlink_metadata().is_ok()
}

/// Whether a folder holds the results of a slide, of whatever work. A damaged state counts, and with a count next to it
/// one that cannot be read.
#[must_use]
pub fn has_state(folder: &Path) -> bool {
    let path = folder.join(FILE);
    let mut head = Vec::new();
    let read = file::open_regular(&path).and_then(|f| f.take(4096).read_to_end(&mut head));
    let unread = read.is_err() && path.symlink_metadata().is_ok() && has_results(folder);
    unread || head.windows(FAMILY.len()).any(|w| w == FAMILY.as_bytes())
}
