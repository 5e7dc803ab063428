//! Folds of a task on disk: whole sources, stratified by class and domain, seeded, digested.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{Result, Task, TaskError, TrainingSet};
use crate::file;
use crate::fold::Fold;
use crate::schema::hex;

const SCHEMA: &str = "mithras.folds/1";

/// One crop of a manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FoldItem {
    /// File relative to the data folder.
    pub file: String,
    /// Name of its class.
    pub class: String,
    /// What it was cut from; stays whole.
    pub source: String,
    /// The fold that holds it out.
    pub fold: usize,
}

/// Which crop is held out by which fold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FoldManifest {
    /// `mithras.folds/1`.
    pub schema: String,
    /// The task.
    pub task: Task,
    /// Class names in output order.
    pub classes: Vec<String>,
    /// Seed of ties.
    pub seed: u64,
    /// Number of folds.
    pub folds: usize,
    /// Digest of the set that was split.
    pub set_sha256: String,
    /// Every crop once, in the set's order.
    pub items: Vec<FoldItem>,
    /// SHA-256 over the fields above as JSON.
    pub digest: String,
}

impl FoldManifest {
    /// Deals whole sources, largest first, each to the fold furthest below its share of the
    /// source's classes and domain; equal ones in an order drawn from the seed.
    ///
    /// # Errors
    /// [`TaskError::MissingClass`], or fewer sources than folds.
    pub fn new(set: &TrainingSet, folds: usize, seed: u64) -> Result<Self> {
        type Table = BTreeMap<(usize, String), f64>;
        let mut sources: BTreeMap<&str, Table> = BTreeMap::new();
        let mut total = Table::new();
        // Copies of one image stay together: their sources are dealt as one.
        let owner = owners(set);
        for (item, source) in set.items().iter().zip(&owner) {
            let key = (item.class, item.domain.clone());
            *sources.entry(source).or_default().entry(key.clone()).or_default() += 1.0;
            *total.entry(key).or_default() += 1.0;
        }
        if folds < 2 || sources.len() < folds {
            let n = sources.len();
            let reason = format!("{folds} folds of {n} sources: two folds and one source each");
            return Err(TaskError::file(Path::new("data.folds"), reason));
        }
        let mut queue: Vec<(&str, Table)> = sources.into_iter().collect();
        queue.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
        // By what a source brings, rare classes counting more.
        let weight = |t: &Table| t.iter().map(|(k, n)| n / total[k]).sum::<f64>();
        queue.sort_by(|a, b| weight(&b.1).total_cmp(&weight(&a.1)));
        let mut have = vec![Table::new(); folds];
        let mut of: BTreeMap<&str, usize> = BTreeMap::new();
        for (name, table) in queue {
            // The rise of the squared excess over each stratum's share.
            let cost = |f: &Table| -> f64 {
                let rise = |(k, n): (&(usize, String), &f64)| {
                    let now = f.get(k).copied().unwrap_or(0.0);
                    ((now + n).powi(2) - now.powi(2)) / total[k]
                };
                table.iter().map(rise).sum()
            };
            let best = (0..folds)
                .min_by(|&a, &b| cost(&have[a]).total_cmp(&cost(&have[b])))
                .unwrap_or_default();
            of.insert(name, best);
            for (key, n) in &table {
                *have[best].entry(key.clone()).or_default() += n;
            }
        }
        let items = set.items().iter().zip(&owner).map(|(item, owner)| FoldItem {
            file: item.file.clone(),
            class: set.classes()[item.class].clone(),
            source: item.source.clone(),
            fold: of[owner.as_str()],
        });
        let mut made = Self {
            schema: SCHEMA.into(),
            task: set.task(),
            classes: set.classes().to_vec(),
            seed,
            folds,
            set_sha256: set.digest(),
            items: items.collect(),
            digest: String::new(),
        };
        made.digest = made.own_digest();
        made.check(Path::new("folds"))?;
        Ok(made)
    }

    /// The folds of the one manifest that `corpus split` writes, on the crops of its dataset.
    ///
    /// # Errors
    /// A manifest of other data, or of which a crop is in no fold.
    pub fn of_manifest(set: &TrainingSet, folds: &crate::folds::FoldManifest) -> Result<Self> {
        let fail = |reason: String| TaskError::file(Path::new("folds"), reason);
        let dataset = set.dataset().ok_or_else(|| {
            fail("the manifest of a dataset's folds serves `task = \"crops\"` alone".into())
        })?;
        folds.check_dataset(dataset).map_err(|e| fail(e.to_string()))?;
        let mut items = vec![];
        for item in set.items() {
            let Some(crate::folds::Place::Fold(fold)) = folds.place(&item.source) else {
                return Err(fail(format!("`{}` of `{}` is in no fold", item.file, item.source)));
            };
            let class = set.classes()[item.class].clone();
            let (file, source) = (item.file.clone(), item.source.clone());
            items.push(FoldItem { file, class, source, fold });
        }
        let mut made = Self {
            schema: SCHEMA.into(),
            task: set.task(),
            classes: set.classes().to_vec(),
            seed: folds.seed,
            folds: folds.folds.len(),
            set_sha256: set.digest(),
            items,
            digest: String::new(),
        };
        made.digest = made.own_digest();
        made.check(Path::new("folds"))?;
        Ok(made)
    }

    fn own_digest(&self) -> String {
        let bare = Self { digest: String::new(), ..self.clone() };
        hex(&Sha256::digest(serde_json::to_vec(&bare).unwrap_or_default()))
    }

    /// No source on both sides, every class on both sides of every fold, digest unchanged.
    fn check(&self, path: &Path) -> Result<()> {
        if self.schema != SCHEMA {
            let reason = format!("schema `{}`, this build reads {SCHEMA}", self.schema);
            return Err(TaskError::file(path, reason));
        }
        let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
        for i in &self.items {
            let first = *seen.entry(&i.source).or_insert(i.fold);
            if first != i.fold {
                return Err(TaskError::Leak {
                    path: path.to_path_buf(),
                    source_name: i.source.clone(),
                    first,
                    second: i.fold,
                });
            }
        }
        if self.digest != self.own_digest() {
            return Err(TaskError::file(path, "was changed after it was written"));
        }
        for fold in 0..self.folds {
            for class in &self.classes {
                let all: Vec<_> = self.items.iter().filter(|i| i.class == *class).collect();
                let held = all.iter().filter(|i| i.fold == fold).count();
                let missing = |side| {
                    let (class, count) = (class.clone(), all.len());
                    Err(TaskError::MissingClass { fold, class, side, count })
                };
                if held == 0 {
                    return missing("validate on");
                }
                if held == all.len() {
                    return missing("train on");
                }
            }
        }
        Ok(())
    }

    /// Reads a manifest, this run's own or that of the dataset, and checks it against the set it
    /// belongs to.
    ///
    /// # Errors
    /// When it is no manifest, was changed, has a source on both sides or lacks a class, or
    /// belongs to another set.
    pub fn read(path: &Path, set: &TrainingSet) -> Result<Self> {
        let fail = |reason: String| TaskError::file(path, reason);
        let text = std::fs::read_to_string(path).map_err(|e| fail(e.to_string()))?;
        let value: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        if value["format"] == crate::folds::FORMAT {
            let folds = crate::folds::FoldManifest::read(path).map_err(|e| fail(e.to_string()))?;
            return Self::of_manifest(set, &folds);
        }
        let manifest: Self =
            serde_json::from_str(&text).map_err(|e| fail(format!("no fold manifest ({e})")))?;
        manifest.check(path)?;
        if manifest.set_sha256 != set.digest() || manifest.items.len() != set.items().len() {
            return Err(fail("belongs to other images or labels; make it anew".into()));
        }
        Ok(manifest)
    }

    /// Writes the manifest.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn write(&self, path: &Path) -> Result<()> {
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        file::write(path, text.as_bytes()).map_err(|e| TaskError::file(path, e.source))
    }

    /// Both sides of fold `k`, as indices into the set.
    ///
    /// # Errors
    /// When there is no such fold.
    pub fn fold(&self, k: usize) -> Result<Fold> {
        if k >= self.folds {
            let reason = format!("there is no fold {k}; folds are 0 to {}", self.folds - 1);
            return Err(TaskError::file(Path::new("folds"), reason));
        }
        let (validation, train) = (0..self.items.len()).partition(|&i| self.items[i].fold == k);
        Ok(Fold { train, validation })
    }
}

/// The source that stands for each item: copies of one image join their sources.
fn owners(set: &TrainingSet) -> Vec<String> {
    let mut joined: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for i in set.items() {
        joined.entry(&i.hash).or_default().insert(&i.source);
    }
    let mut parent: BTreeMap<&str, &str> =
        set.items().iter().map(|i| (i.source.as_str(), i.source.as_str())).collect();
    fn root<'a>(parent: &BTreeMap<&'a str, &'a str>, mut s: &'a str) -> &'a str {
        while parent[s] != s {
            s = parent[s];
        }
        s
    }
    for group in joined.values().filter(|g| g.len() > 1) {
        let mut names = group.iter();
        let first = names.next().map(|n| root(&parent, n)).unwrap_or_default();
        for other in names {
            let other = root(&parent, other);
            parent.insert(other, first);
        }
    }
    set.items().iter().map(|i| root(&parent, &i.source).to_string()).collect()
}
