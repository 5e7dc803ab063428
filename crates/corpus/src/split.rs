//! Folds of whole patients: stratified, seeded, and refused when anything lies on both sides
//! (K4, C5).

use crate::error::{CorpusError, Result};
use crate::file;
use crate::reader::Corpus;
use crate::schema::{CropMeta, Label, Split, hex};
use crate::shard::Columns;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// What stays together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GroupBy {
    /// Patients; a crop without one counts by slide.
    Patient,
    /// Slides.
    Slide,
}

/// Folds over one corpus. `folds` lists the validation groups; everything else trains.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SplitManifest {
    /// Always `mithras-split`.
    pub format: String,
    /// Version of this file.
    pub schema: u32,
    /// Digest of the corpus that was split.
    pub corpus_digest: String,
    /// What stays together.
    pub group_by: GroupBy,
    /// Seed.
    pub seed: u64,
    /// Validation groups per fold.
    pub folds: Vec<Vec<String>>,
    /// Groups kept out of every fold because the corpus marks them as test data.
    pub test: Vec<String>,
    /// Crops per fold and label.
    pub counts: Vec<BTreeMap<String, u64>>,
    /// SHA-256 over the fields above.
    pub digest: String,
}

/// The group of a crop.
#[must_use]
pub fn group_of(meta: &CropMeta, by: GroupBy) -> &str {
    match (by, &meta.patient) {
        (GroupBy::Patient, Some(p)) => p,
        _ => &meta.slide,
    }
}

/// Splits a corpus into `k` folds of whole groups. Groups are dealt largest first to the fold
/// that is furthest below its share, per cohort and label; equal groups are ordered by the seed.
///
/// # Errors
/// Fewer groups than folds, a slide that belongs to two groups, or a group that is partly test
/// data.
pub fn split(corpus: &Corpus, k: usize, by: GroupBy, seed: u64) -> Result<SplitManifest> {
    type Table = BTreeMap<(String, Label), u64>;
    let mut groups: BTreeMap<String, (Table, BTreeSet<Split>)> = BTreeMap::new();
    let mut slides: BTreeMap<String, String> = BTreeMap::new();
    for crop in corpus.crops(Columns::Meta)? {
        let meta = crop?.meta;
        let group = group_of(&meta, by).to_owned();
        let first = slides.entry(meta.slide.clone()).or_insert_with(|| group.clone());
        if *first != group {
            return Err(CorpusError::Invalid(format!(
                "slide `{}` belongs to both `{first}` and `{group}`; no split can keep it whole",
                meta.slide
            )));
        }
        let entry = groups.entry(group).or_default();
        *entry.0.entry((meta.cohort, meta.label)).or_default() += 1;
        entry.1.insert(meta.split);
    }
    let mut test = Vec::new();
    let mut pool = Vec::new();
    for (name, (table, splits)) in groups {
        match (splits.contains(&Split::Test), splits.len()) {
            (true, 1) => test.push(name),
            (true, _) => {
                return Err(CorpusError::Invalid(format!(
                    "group `{name}` is partly test data; no split can keep it whole"
                )));
            }
            _ => pool.push((name, table)),
        }
    }
    if k < 2 || pool.len() < k {
        return Err(CorpusError::Invalid(format!(
            "{k} folds of {} groups: at least 2 folds and one group each are needed",
            pool.len()
        )));
    }
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    pool.shuffle(&mut rng);
    pool.sort_by_key(|(_, t)| std::cmp::Reverse(t.values().sum::<u64>()));
    let mut total: Table = Table::new();
    for (_, t) in &pool {
        for (key, n) in t {
            *total.entry(key.clone()).or_default() += n;
        }
    }
    let mut folds: Vec<(Vec<String>, Table)> = vec![(Vec::new(), Table::new()); k];
    for (name, table) in pool {
        // The rise of the squared relative excess over each stratum's share.
        let cost = |f: &(Vec<String>, Table)| -> f64 {
            let strata: f64 = table
                .iter()
                .map(|(key, &n)| {
                    #[expect(clippy::cast_precision_loss, reason = "counts")]
                    let (have, n, all) =
                        (f.1.get(key).copied().unwrap_or(0) as f64, n as f64, total[key] as f64);
                    ((have + n).powi(2) - have.powi(2)) / all
                })
                .sum();
            #[expect(clippy::cast_precision_loss, reason = "counts")]
            let groups = f.0.len() as f64;
            strata + 1e-9 * groups
        };
        let best = (0..k)
            .min_by(|&a, &b| cost(&folds[a]).total_cmp(&cost(&folds[b])))
            .expect("k is at least 2");
        folds[best].0.push(name);
        for (key, n) in table {
            *folds[best].1.entry(key).or_default() += n;
        }
    }
    let counts = folds
        .iter()
        .map(|(_, t)| {
            let mut row: BTreeMap<String, u64> = BTreeMap::new();
            for ((_, label), n) in t {
                *row.entry(label.name().into()).or_default() += n;
            }
            row
        })
        .collect();
    let mut manifest = SplitManifest {
        format: "mithras-split".into(),
        schema: 1,
        corpus_digest: corpus.manifest().digest.clone(),
        group_by: by,
        seed,
        folds: folds
            .into_iter()
            .map(|(mut names, _)| {
                names.sort();
                names
            })
            .collect(),
        test,
        counts,
        digest: String::new(),
    };
    manifest.digest = manifest.own_digest();
    manifest.check()?;
    Ok(manifest)
}

impl SplitManifest {
    fn own_digest(&self) -> String {
        let bare = Self { digest: String::new(), ..self.clone() };
        hex(&Sha256::digest(serde_json::to_vec(&bare).unwrap_or_default()))
    }

    /// Checks the digest and that no group is listed twice.
    ///
    /// # Errors
    /// Naming the group.
    pub fn check(&self) -> Result<()> {
        let mut seen = BTreeSet::new();
        for name in self.folds.iter().flatten().chain(&self.test) {
            if !seen.insert(name) {
                return Err(CorpusError::Invalid(format!("group `{name}` is on two sides")));
            }
        }
        if self.digest != self.own_digest() {
            return Err(CorpusError::Invalid("the split was changed after it was written".into()));
        }
        Ok(())
    }

    /// Reads a split and checks it against its corpus: same digest, every group known.
    ///
    /// # Errors
    /// When it is no split, was changed, or belongs to another corpus.
    pub fn read(path: &Path, corpus: &Corpus) -> Result<Self> {
        let bad = |reason: String| CorpusError::Manifest { path: path.into(), reason };
        let text = std::fs::read_to_string(path).map_err(CorpusError::io(path))?;
        let split: Self = serde_json::from_str(&text).map_err(|e| bad(e.to_string()))?;
        if split.format != "mithras-split" || split.schema != 1 {
            return Err(bad(format!("not a split of schema 1: `{}`", split.format)));
        }
        split.check().map_err(|e| bad(e.to_string()))?;
        if split.corpus_digest != corpus.manifest().digest {
            return Err(bad(format!(
                "made for the corpus {}, not for {}",
                split.corpus_digest,
                corpus.manifest().digest
            )));
        }
        Ok(split)
    }

    /// Writes the split.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn write(&self, path: &Path) -> Result<()> {
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        Ok(file::write(path, text.as_bytes())?)
    }

    /// The side of a crop in one fold.
    #[must_use]
    pub fn side(&self, meta: &CropMeta, fold: usize) -> Split {
        let group = group_of(meta, self.group_by);
        if self.test.binary_search_by(|g| g.as_str().cmp(group)).is_ok() {
            return Split::Test;
        }
        let held = &self.folds[fold];
        match held.binary_search_by(|g| g.as_str().cmp(group)) {
            Ok(_) => Split::Validation,
            Err(_) => Split::Train,
        }
    }
}

/// Refuses two corpora that share a slide, a patient or an image (C5: nothing of an evaluation
/// set may be trained on).
///
/// # Errors
/// [`CorpusError::Invalid`] naming up to ten of each.
pub fn refuse_overlap(train: &Corpus, evaluation: &Corpus) -> Result<()> {
    type Keys = (BTreeSet<String>, BTreeSet<String>, BTreeSet<String>);
    let keys = |c: &Corpus| -> Result<Keys> {
        let mut out = Keys::default();
        for crop in c.crops(Columns::Meta)? {
            let m = crop?.meta;
            out.0.insert(m.slide);
            out.1.extend(m.patient);
            out.2.extend(m.pixels.map(|h| hex(&h)));
        }
        Ok(out)
    };
    let (a, b) = (keys(train)?, keys(evaluation)?);
    let shared = |x: &BTreeSet<String>, y: &BTreeSet<String>| -> Vec<String> {
        x.intersection(y).cloned().collect()
    };
    let mut parts = Vec::new();
    let pairs = [("slides", &a.0, &b.0), ("patients", &a.1, &b.1), ("images", &a.2, &b.2)];
    for (what, x, y) in pairs {
        let both = shared(x, y);
        if !both.is_empty() {
            let shown = both.iter().take(10).cloned().collect::<Vec<_>>().join(", ");
            parts.push(format!("{} {what} ({shown})", both.len()));
        }
    }
    if parts.is_empty() {
        return Ok(());
    }
    Err(CorpusError::Invalid(format!(
        "{} and {} share {}",
        train.dir().display(),
        evaluation.dir().display(),
        parts.join(", ")
    )))
}
