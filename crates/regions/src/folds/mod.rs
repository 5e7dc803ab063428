//! The one manifest of folds, for regions and crops: whole patients and slides, stratified by
//! figures, seeded, digested. Every trainer reads this file, and finds its images in it by the names of
//! their slides and patients: one manifest serves all datasets that were cut from the same slides.
//!
//! Images that share a slide, a patient or all of their bytes are one group, and a group is on one
//! side. Groups without an exhaustively labelled image cannot validate anything; they are dealt after
//! the others, so that a fold holds out tissue and patches, too, and train everywhere where every fold
//! leaves out one slide. Test groups are in no fold.

mod deal;
mod given;
mod manifest;
mod names;
mod regions;
mod scenes;
#[cfg(test)]
mod tests;

use base::digest::hex;
use base::file;
use base::file::FileError;
use base::text::Many;
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap};
use std::path::{Component, Path, PathBuf};

pub(crate) use deal::Equal;
pub use deal::{Stratum, Unit};
pub use given::Splittable;
pub use manifest::{DataKind, FoldManifest, FoldsError, Group, Place, Result, Scheme};
pub use names::Sought;
pub use regions::RegionFold;
pub(crate) use scenes::marked_scene;
pub use scenes::{FoldScenes, Frames, UnlabelledScenes, bytes_in_memory, is_frame};

/// The value of `format` in a manifest.
pub const FORMAT: &str = "mithras-folds";
/// Version of the manifest. A reader refuses any other.
pub const SCHEMA: u32 = 1;

/// Images or crops and figures of one fold's held-out side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FoldCounts {
    /// Name of the fold, or `train` and `test`.
    pub name: String,
    /// Groups held out.
    pub groups: usize,
    /// Images or crops in them.
    pub items: u64,
    /// Figures in them.
    pub figures: u64,
}

impl std::fmt::Display for FoldManifest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for c in self.counts() {
            let what = match c.name.as_str() {
                "train" => "in every fold's training".to_owned(),
                "test" => "test and calibration data, in no fold".to_owned(),
                name => format!("fold {name}"),
            };
            let (groups, items) = (Many(c.groups, "group"), Many(c.items, "item"));
            writeln!(f, "{what}: {groups}, {items}, {}", Many(c.figures, "figure"))?;
        }
        writeln!(f, "digest {}", self.digest)
    }
}

impl FoldManifest {
    /// Splits any items into folds of whole groups.
    ///
    /// # Errors
    /// [`FoldsError::Invalid`]: fewer groups that can validate than folds, fewer than two folds, or
    /// a group that is partly test or calibration data.
    pub fn new<'a>(
        kind: DataKind,
        dataset: &str,
        units: impl IntoIterator<Item = Unit<'a>>,
        scheme: Scheme,
        seed: u64,
    ) -> Result<Self> {
        Self::dealt(kind, dataset, units.into_iter().collect(), scheme, Equal::Fewest, seed)
    }

    pub(crate) fn dealt(
        kind: DataKind,
        dataset: &str,
        units: Vec<Unit<'_>>,
        scheme: Scheme,
        equal: Equal,
        seed: u64,
    ) -> Result<Self> {
        let (folds, groups) = deal::deal(units, scheme, equal, seed)?;
        let mut made = Self {
            format: FORMAT.into(),
            schema: SCHEMA,
            kind,
            dataset: dataset.into(),
            scheme,
            seed,
            folds,
            groups,
            digest: String::new(),
        };
        made.digest = made.own_digest();
        made.index()?;
        Ok(made)
    }

    /// Reads a manifest: format, digest, and that no slide or patient is in two groups.
    ///
    /// # Errors
    /// [`FoldsError`] naming the file.
    pub fn read(path: &Path) -> Result<Self> {
        let bad = |reason: String| -> FoldsError { FileError::content(path, reason) };
        let text = file::read_whole(path).map_err(FileError::io::<FoldsError>(path))?;
        let value =
            base::json::value(&text).map_err(|e| bad(format!("no manifest of folds ({e})")))?;
        if value["format"] != FORMAT || value["schema"] != SCHEMA {
            return Err(bad(format!(
                "`format` and `schema` are {} and {}, this program reads \"{FORMAT}\" and {SCHEMA}",
                value["format"], value["schema"]
            )));
        }
        let manifest: Self = serde_json::from_value(value).map_err(|e| bad(e.to_string()))?;
        if manifest.digest != manifest.own_digest() {
            return Err(bad("it was changed after it was written".into()));
        }
        manifest.index().map_err(|e| bad(e.to_string()))?;
        Ok(manifest)
    }

    /// Writes the manifest.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn write(&self, path: &Path) -> Result<()> {
        let mut text = serde_json::to_string_pretty(self)
            .map_err(|e| FileError::content::<FoldsError>(path, e))?;
        text.push('\n');
        Ok(file::write(path, text.as_bytes()).map_err(FileError::from)?)
    }

    /// Writes it unless it exists; an existing one must be equal.
    ///
    /// # Errors
    /// [`FoldsError`]: other folds are there, or the file cannot be written.
    pub fn write_once(&self, path: &Path) -> Result<()> {
        if !path.exists() {
            return self.write(path);
        }
        let old = Self::read(path)?;
        if old == *self {
            return Ok(());
        }
        let reason = format!("holds other folds ({}); name another file", old.digest);
        Err(FileError::content(path, reason))
    }

    /// The number of a fold by its name.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<usize> {
        self.folds.iter().position(|f| f == name)
    }

    /// The folder of a fold's run among those of all folds: its name, in which a `/` begins a folder within.
    ///
    /// # Errors
    /// [`FoldsError::Invalid`]: the folder would be outside.
    pub fn folder(&self, runs: &Path, fold: &str) -> Result<PathBuf> {
        let inside = |part| matches!(part, Component::Normal(_));
        if fold.is_empty() || !Path::new(fold).components().all(inside) {
            return Err(FoldsError::Invalid(format!(
                "fold `{fold}` has a name that cannot be a folder; give the folds other names, or train it alone in a \
                 folder of its own"
            )));
        }
        Ok(runs.join(fold))
    }

    /// What each fold holds out, then what all train on, then test and calibration data; without empty rows of
    /// the last two.
    #[must_use]
    pub fn counts(&self) -> Vec<FoldCounts> {
        let row = |name: &str, place: Place| {
            let groups: Vec<&Group> = self.groups.iter().filter(|g| g.place == place).collect();
            FoldCounts {
                name: name.into(),
                groups: groups.len(),
                items: groups.iter().map(|g| g.items).sum(),
                figures: groups.iter().map(|g| g.figures).sum(),
            }
        };
        let mut out: Vec<FoldCounts> =
            self.folds.iter().enumerate().map(|(k, name)| row(name, Place::Fold(k))).collect();
        let rest = [row("train", Place::Train), row("test", Place::Test)];
        out.extend(rest.into_iter().filter(|r| r.groups > 0));
        out
    }

    /// The side of fold `k` on which the crops of a slide and patient are.
    ///
    /// # Errors
    /// [`FoldsError::Invalid`] when the fold does not exist, or the slide is in no group.
    pub fn side(&self, k: usize, slide: &str) -> Result<crops::Split> {
        self.known(k)?;
        let group = names::Names::new(self).group(slide, None)?;
        let place = group.map(|g| self.groups[g].place);
        match place {
            Some(Place::Test) => Ok(crops::Split::Test),
            Some(Place::Fold(f)) if f == k => Ok(crops::Split::Validation),
            Some(Place::Fold(_) | Place::Train) => Ok(crops::Split::Train),
            None => Err(FoldsError::Invalid(format!("slide `{slide}` is in no group of folds"))),
        }
    }

    fn known(&self, k: usize) -> Result<()> {
        if k < self.folds.len() {
            return Ok(());
        }
        let known = self.folds.join(", ");
        Err(FoldsError::Invalid(format!("fold {k} does not exist; the folds are {known}")))
    }

    fn own_digest(&self) -> String {
        let bare = Self { digest: String::new(), ..self.clone() };
        hex(&Sha256::digest(serde_json::to_vec(&bare).unwrap_or_default()))
    }

    /// Groups by slide and patient; refuses one that is in two, and folds that are not there.
    fn index(&self) -> Result<Index<'_>> {
        let mut index = Index::default();
        for (number, group) in self.groups.iter().enumerate() {
            let slides = group.slides.iter().map(|s| ("slide", s));
            let patients = group.patients.iter().map(|p| ("patient", p));
            for (what, name) in slides.chain(patients) {
                let map = if what == "slide" { &mut index.slides } else { &mut index.patients };
                if let Some(first) = map.insert(name, number) {
                    return Err(FoldsError::Leak {
                        what,
                        name: name.clone(),
                        first: self.groups[first].name.clone(),
                        second: group.name.clone(),
                    });
                }
            }
            if let Place::Fold(k) = group.place {
                self.known(k)?;
            }
        }
        let mut held = BTreeMap::new();
        for g in &self.groups {
            if let Place::Fold(k) = g.place {
                *held.entry(k).or_insert(0) += g.items;
            }
        }
        match (0..self.folds.len()).find(|k| held.get(k).is_none_or(|&n| n == 0)) {
            Some(k) => Err(FoldsError::Invalid(format!("fold {k} holds nothing out"))),
            None => Ok(index),
        }
    }
}

#[derive(Default)]
struct Index<'a> {
    slides: HashMap<&'a str, usize>,
    patients: HashMap<&'a str, usize>,
}
