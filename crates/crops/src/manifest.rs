//! `manifest.json`: what the corpus holds, who built it, and the digest that names it.

use crate::error::{CorpusError, Result};
use crate::schema::{CropMeta, Hash, Label, SCHEMA_VERSION};
use crate::slide_name::bare;
use base::digest::hex;
use base::file;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// File name of the manifest inside a corpus folder.
pub const MANIFEST: &str = "manifest.json";

/// What a builder states about a corpus.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// Corpus name, e.g. `tcga-mf-pseudo`.
    pub name: String,
    /// Program and version that built it.
    pub builder: String,
    /// Preset name or hash, when one was used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preset: Option<String>,
    /// Free notes of the builder: tumour filter, models, funnel, source files.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    pub notes: serde_json::Map<String, serde_json::Value>,
}

/// One shard as recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardEntry {
    /// File name inside the corpus folder.
    pub file: String,
    /// Rows of the shard.
    pub crops: u64,
    /// Its size in bytes.
    pub bytes: u64,
    /// SHA-256 of the file.
    pub sha256: String,
}

/// Counts that `inspect` prints and `verify` recomputes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Over all shards.
    pub crops: u64,
    /// Distinct slides.
    pub slides: u64,
    /// Distinct patients, of the crops that name one.
    pub patients: u64,
    /// Per label.
    pub labels: BTreeMap<String, u64>,
    /// Per cohort, per label.
    pub cohorts: BTreeMap<String, BTreeMap<String, u64>>,
    /// Per subtype, when the source has them.
    pub subtypes: BTreeMap<String, u64>,
    /// Per split.
    pub splits: BTreeMap<String, u64>,
}

/// Content of a corpus's `manifest.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Always `mithras-corpus`.
    pub format: String,
    /// Schema version of the shards.
    pub schema: u32,
    /// The builder's statement.
    #[serde(flatten)]
    pub header: Header,
    /// SHA-256 over the digests of all crops in order; independent of how shards are cut.
    pub digest: String,
    /// Crops in all, and by label, cohort, subtype and split.
    pub counts: Counts,
    /// Shards in order.
    pub shards: Vec<ShardEntry>,
}

impl Manifest {
    /// Reads and checks a corpus folder's manifest.
    ///
    /// # Errors
    /// When it is missing, no JSON, of another format or schema version.
    pub fn read(dir: &Path) -> Result<Self> {
        let path = dir.join(MANIFEST);
        let text = file::read_string(&path).map_err(CorpusError::io(&path))?;
        let bad = |reason: String| CorpusError::Manifest { path: path.clone(), reason };
        let value: serde_json::Value =
            base::json::parse(text.as_bytes()).map_err(|e| bad(e.to_string()))?;
        if value["format"] != "mithras-corpus" {
            return Err(bad("not a corpus manifest (`format` is not `mithras-corpus`)".into()));
        }
        if value["schema"] != SCHEMA_VERSION {
            return Err(bad(format!(
                "schema version {}, this program reads {SCHEMA_VERSION}",
                value["schema"]
            )));
        }
        let manifest: Self = serde_json::from_value(value).map_err(|e| bad(e.to_string()))?;
        for s in &manifest.shards {
            if Path::new(&s.file).components().count() != 1 || s.file.starts_with('.') {
                return Err(bad(format!("shard name `{}` leaves the folder", s.file)));
            }
        }
        Ok(manifest)
    }

    /// Writes the manifest in place of the old one, by rename.
    pub(crate) fn write(&self, dir: &Path) -> Result<()> {
        let mut text = serde_json::to_string_pretty(self).map_err(|e| CorpusError::Manifest {
            path: dir.join(MANIFEST),
            reason: e.to_string(),
        })?;
        text.push('\n');
        Ok(file::write(&dir.join(MANIFEST), text.as_bytes())?)
    }
}

/// Runs along with the crops and ends as digest and counts.
#[derive(Default)]
pub(crate) struct Tally {
    hasher: Sha256,
    counts: Counts,
    /// As written, with and without the suffixes of files.
    slides: BTreeSet<String>,
    patients: BTreeSet<String>,
}

impl Tally {
    pub fn add(&mut self, meta: &CropMeta, digest: &Hash) {
        self.hasher.update(digest);
        let c = &mut self.counts;
        c.crops += 1;
        let label = meta.label.name().to_owned();
        let cohort = c.cohorts.entry(meta.cohort.clone()).or_default();
        *cohort.entry(label.clone()).or_default() += 1;
        *c.labels.entry(label).or_default() += 1;
        *c.splits.entry(meta.split.name().to_owned()).or_default() += 1;
        if let Some(s) = &meta.subtype {
            *c.subtypes.entry(s.clone()).or_default() += 1;
        }
        if !self.slides.contains(&meta.slide) {
            self.slides.insert(meta.slide.clone());
        }
        if let Some(p) = &meta.patient
            && !self.patients.contains(p)
        {
            self.patients.insert(p.clone());
        }
    }

    /// Names of slides as earlier versions counted them.
    pub fn slide_names(&self) -> u64 {
        self.slides.len() as u64
    }

    pub fn finish(mut self) -> (String, Counts) {
        let slides: BTreeSet<&str> = self.slides.iter().map(|s| bare(s)).collect();
        self.counts.slides = slides.len() as u64;
        self.counts.patients = self.patients.len() as u64;
        for label in Label::ALL {
            self.counts.labels.entry(label.name().into()).or_insert(0);
        }
        (hex(&self.hasher.finalize()), self.counts)
    }
}
