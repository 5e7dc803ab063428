//! `state.json` in a slide's folder: what was done to it, with which configuration, on which bytes.

use crate::file;
use artifact::digest::{Digest, Sha256, hex};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Its name.
pub const FILE: &str = "state.json";
/// The only schema this build reads.
pub const SCHEMA: &str = "mithras.state/1";
/// How much of either end of a slide goes into its digest.
const ENDS: u64 = 1 << 20;

/// The file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
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
    /// Busy time per stage.
    pub stages: Vec<StageTime>,
    /// Windows taken over from an interrupted run.
    pub resumed_windows: usize,
    /// What the digest `config` is made of, by name, so that a difference can be told.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
}

/// How a slide ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// Not yet: interrupted if nobody is at work.
    Running,
    /// All exports are written.
    Finished,
    /// All exports are written; there was no tissue.
    NoTissue,
    /// See the reason.
    Failed,
}

/// One stage's share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StageTime {
    /// `decode`, `segment`, `stitch`, `crop`, `classify`.
    pub stage: String,
    /// Windows or candidates.
    pub items: u64,
    /// Threads at work.
    pub threads: usize,
    /// Seconds at work, summed over threads.
    pub busy_seconds: f64,
    /// Share of the wall time at work, 0 to 1.
    pub busy_share: f64,
}

/// What tells one slide file from another without reading all of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputDigest {
    /// Path as given.
    pub path: String,
    /// Bytes.
    pub size: u64,
    /// Seconds since 1970 of the last change; 0 when unknown.
    pub modified: u64,
    /// SHA-256 over size, first and last MiB.
    pub sha256: String,
}

impl InputDigest {
    /// Looks at a file.
    ///
    /// # Errors
    /// The system's, when it cannot be read.
    pub fn of(path: &Path) -> io::Result<Self> {
        let mut file = std::fs::File::open(path)?;
        let about = file.metadata()?;
        let size = about.len();
        let mut hash = Sha256::new();
        hash.update(size.to_le_bytes());
        let mut part = Vec::new();
        file.by_ref().take(ENDS).read_to_end(&mut part)?;
        hash.update(&part);
        if size > ENDS {
            part.clear();
            file.seek(SeekFrom::Start(size.saturating_sub(ENDS).max(ENDS)))?;
            file.take(ENDS).read_to_end(&mut part)?;
            hash.update(&part);
        }
        let modified = about.modified().ok().and_then(|t| t.duration_since(UNIX_EPOCH).ok());
        Ok(Self {
            path: path.display().to_string(),
            size,
            modified: modified.map_or(0, |d| d.as_secs()),
            sha256: hex(&hash.finalize()),
        })
    }

    /// Whether it is the same file, wherever it lies now.
    #[must_use]
    pub fn same(&self, other: &Self) -> bool {
        (self.size, self.modified, &self.sha256) == (other.size, other.modified, &other.sha256)
    }
}

/// What tells that a file was changed or replaced while it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp {
    modified: Option<SystemTime>,
    /// Which file it is, where the system says so.
    node: u64,
    digest: InputDigest,
}

impl Stamp {
    /// Looks at a file.
    ///
    /// # Errors
    /// The system's, when it cannot be read.
    pub fn of(path: &Path) -> io::Result<Self> {
        let about = std::fs::metadata(path)?;
        #[cfg(unix)]
        let node = std::os::unix::fs::MetadataExt::ino(&about);
        #[cfg(not(unix))]
        let node = 0;
        Ok(Self { modified: about.modified().ok(), node, digest: InputDigest::of(path)? })
    }

    /// The digest that goes into the results.
    #[must_use]
    pub fn digest(&self) -> &InputDigest {
        &self.digest
    }

    /// What is another than in `self`; `None` for an untouched file.
    #[must_use]
    pub fn differs(&self, now: &Self) -> Option<&'static str> {
        if self.digest.size != now.digest.size {
            Some("its size")
        } else if self.digest.sha256 != now.digest.sha256 {
            Some("its content")
        } else if self.node != now.node {
            Some("the file in its place")
        } else {
            (self.modified != now.modified).then_some("its time of change")
        }
    }
}

impl State {
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
            stages: Vec::new(),
            resumed_windows: 0,
            settings: BTreeMap::new(),
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
        artifact::json::write(&folder.join(FILE), self)
    }
}
