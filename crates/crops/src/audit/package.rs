//! What a sample is on disk: `package/` for the reviewer, `key.json` for scoring.

use crate::encoding::Encoding;
use crate::error::{CorpusError, Result};
use crate::schema::CropMeta;
use base::digest::hex;
use base::file::{self, Access};
use mitosis::RgbTile;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Version of `audit.json`; a reader takes version 1, too, whose pictures have no scale.
const PACKAGE_SCHEMA: u32 = 2;
/// Version of `key.json`.
const KEY_SCHEMA: u32 = 1;

/// What the reviewer is asked about the picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Question {
    /// Is the object at the centre a mitotic figure? With box size and figures elsewhere.
    MitoticFigure,
    /// Is this tumour tissue?
    Tumour,
}

impl Question {
    /// Smallest side of a picture, px: the largest square in question, 75 px, and some tissue
    /// around it.
    #[must_use]
    pub const fn least_side(self) -> u32 {
        match self {
            Self::MitoticFigure => 96,
            Self::Tumour => 1,
        }
    }
}

/// A stratum and its size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stratum {
    /// Cohort.
    pub cohort: String,
    /// Label or subtype; of a run `accepted` or `rejected`.
    pub stratum: String,
    /// Crops in the corpus: the weight of pooled figures.
    pub pool: u64,
    /// Crops drawn.
    pub drawn: usize,
}

impl std::fmt::Display for Stratum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:<28} {:<16} {:>5} of {}", self.cohort, self.stratum, self.drawn, self.pool)
    }
}

/// A picture in the package. Its name does not reveal the label.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Item {
    /// Name of the picture without extension.
    pub id: String,
    /// um/px of the picture; absent in packages of schema 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mpp: Option<f64>,
    /// Side in px of the square in the middle that is shown first; absent where that is all of the
    /// picture.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub close: Option<u32>,
}

/// `audit.json`: all that a reviewer's machine needs to know.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Package {
    /// Always `mithras-audit`.
    pub format: String,
    /// Version of this file.
    pub schema: u32,
    /// Names the draw; reviews carry it.
    pub audit: String,
    /// What is asked.
    pub question: Question,
    /// Pictures in the order of review.
    pub items: Vec<Item>,
}

/// One drawn crop as the pipeline saw it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeyItem {
    /// Name of the picture.
    pub id: String,
    /// The crop's description, scores included.
    #[serde(flatten)]
    pub meta: CropMeta,
    /// Label or subtype it was drawn for; of a run `accepted` or `rejected`.
    pub stratum: String,
}

/// `key.json`: opened only for scoring.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Key {
    /// Always `mithras-audit-key`.
    pub format: String,
    /// Version of this file.
    pub schema: u32,
    /// The package it belongs to.
    pub audit: String,
    /// Digest of the corpus, or of the run.
    pub corpus_digest: String,
    /// Of the draw.
    pub seed: u64,
    /// Strata with their sizes.
    pub strata: Vec<Stratum>,
    /// The crops.
    pub items: Vec<KeyItem>,
}

/// A package under way: a folder under a name of its own, gone again unless it is finished.
pub struct PackageWriter {
    out: PathBuf,
    folder: file::Unfinished,
    question: Question,
    digest: String,
    seed: u64,
    items: Vec<(KeyItem, Item)>,
}

impl PackageWriter {
    /// Begins a package in `out`. `digest` names what was drawn from.
    ///
    /// # Errors
    /// When there is one already, or the folder cannot be made.
    pub fn create(out: &Path, question: Question, digest: &str, seed: u64) -> Result<Self> {
        let package = out.join("package");
        if package.exists() {
            return Err(CorpusError::Invalid(format!("{} already exists", package.display())));
        }
        std::fs::create_dir_all(out).map_err(CorpusError::io(out))?;
        let folder = file::Unfinished::new(out)?;
        let images = folder.path().join("images");
        std::fs::create_dir(&images).map_err(CorpusError::io(&images))?;
        Ok(Self { out: out.into(), folder, question, digest: digest.into(), seed, items: vec![] })
    }

    /// Adds a crop with its picture, which is `meta.mpp` um/px and has the crop's middle in its own;
    /// `close` is the side of what is shown first, where that is not all.
    ///
    /// # Errors
    /// When the picture is too small for the question, or cannot be written.
    pub fn push(
        &mut self,
        meta: CropMeta,
        stratum: String,
        picture: &RgbTile,
        close: Option<u32>,
    ) -> Result<()> {
        let (side, least) = (picture.width.min(picture.height), self.question.least_side());
        if side < least as usize {
            return Err(CorpusError::SmallPicture { crop: meta.path, side, least });
        }
        let id = hex(&Sha256::digest(format!("{} {} {}", self.seed, self.digest, meta.path))[..8]);
        // Encoded again: neither metadata nor the file type may reveal a label.
        let png = Encoding::Png.encode(picture).map_err(|reason| CorpusError::Crop {
            crop: meta.path.clone(),
            reason: reason.to_string(),
        })?;
        file::write(&self.folder.path().join("images").join(format!("{id}.png")), &png)?;
        let item = Item { id: id.clone(), mpp: Some(meta.mpp.get()), close };
        self.items.push((KeyItem { id, meta, stratum }, item));
        Ok(())
    }

    /// Mixes the pictures and puts package and key in their places.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn finish(mut self, strata: Vec<Stratum>) -> Result<Key> {
        self.items.sort_by(|a, b| a.0.id.cmp(&b.0.id));
        self.items.shuffle(&mut seeded(self.seed, "order"));
        let (known, shown): (Vec<KeyItem>, Vec<Item>) = self.items.into_iter().unzip();
        let mut h = Sha256::new();
        shown.iter().for_each(|i| h.update(&i.id));
        let audit = hex(&h.finalize()[..8]);
        let shown = Package {
            format: "mithras-audit".into(),
            schema: PACKAGE_SCHEMA,
            audit: audit.clone(),
            question: self.question,
            items: shown,
        };
        let key = Key {
            format: "mithras-audit-key".into(),
            schema: KEY_SCHEMA,
            audit,
            corpus_digest: self.digest,
            seed: self.seed,
            strata,
            items: known,
        };
        write_json(&self.folder.path().join("audit.json"), &shown, Access::Umask)?;
        // Who reads it is no longer blinded.
        write_json(&self.out.join("key.json"), &key, Access::Private)?;
        self.folder.persist(&self.out.join("package"))?;
        Ok(key)
    }
}

/// A generator of its own for every purpose.
pub(super) fn seeded(seed: u64, purpose: &str) -> ChaCha8Rng {
    let h: [u8; 32] = Sha256::digest(format!("{seed} {purpose}")).into();
    ChaCha8Rng::from_seed(h)
}

fn write_json<T: Serialize>(path: &Path, value: &T, access: Access) -> Result<()> {
    let mut text = serde_json::to_string_pretty(value)
        .map_err(|e| CorpusError::Manifest { path: path.into(), reason: e.to_string() })?;
    text.push('\n');
    Ok(file::write_with(path, text.as_bytes(), access)?)
}

fn read_json<T: for<'de> Deserialize<'de>>(path: &Path, format: &str, newest: u32) -> Result<T> {
    let bad = |reason: String| CorpusError::Manifest { path: path.into(), reason };
    let text =
        file::read(path, base::json::LARGEST).map_err(|e| CorpusError::io(path)(e.source))?;
    let value = base::json::value(&text).map_err(|e| bad(e.to_string()))?;
    let known = value["schema"].as_u64().is_some_and(|s| (1..=u64::from(newest)).contains(&s));
    if value["format"] != format || !known {
        return Err(bad(format!("not a `{format}` file of schema {newest} or below")));
    }
    serde_json::from_value(value).map_err(|e| bad(e.to_string()))
}

/// Refuses a file that lists something twice, by hand: it would count twice, or with either of two values.
fn once(path: &Path, all: impl Iterator<Item = String>) -> Result<()> {
    let mut listed = BTreeSet::new();
    for one in all {
        if let Some(first) = listed.replace(one) {
            let reason = format!("{first} is listed twice");
            return Err(CorpusError::Manifest { path: path.into(), reason });
        }
    }
    Ok(())
}

impl Package {
    /// Reads `audit.json` of a package folder and checks that every picture is there.
    ///
    /// # Errors
    /// When it is missing, of another format, lists an item twice or lacks a picture.
    pub fn read(dir: &Path) -> Result<Self> {
        let path = dir.join("audit.json");
        let package: Self = read_json(&path, "mithras-audit", PACKAGE_SCHEMA)?;
        once(&path, package.items.iter().map(|i| format!("item `{}`", i.id)))?;
        for item in &package.items {
            let plain = !item.id.is_empty() && item.id.bytes().all(|b| b.is_ascii_hexdigit());
            let picture = dir.join("images").join(format!("{}.png", item.id));
            if !plain || !picture.is_file() {
                let reason = format!("the picture of item `{}` is missing", item.id);
                return Err(CorpusError::Manifest { path, reason });
            }
        }
        Ok(package)
    }
}

impl Key {
    /// Reads `key.json`.
    ///
    /// # Errors
    /// When it is missing, of another format, or lists an item or stratum twice.
    pub fn read(path: &Path) -> Result<Self> {
        let key: Self = read_json(path, "mithras-audit-key", KEY_SCHEMA)?;
        once(path, key.items.iter().map(|i| format!("item `{}`", i.id)))?;
        let strata = key.strata.iter();
        once(path, strata.map(|s| format!("stratum `{}` of `{}`", s.stratum, s.cohort)))?;
        Ok(key)
    }
}

/// Crops by cohort and stratum, each by a number of the caller's: what a sample is drawn from.
#[derive(Default)]
pub struct Pools(BTreeMap<(String, String), Vec<usize>>);

/// A sample drawn from [`Pools`].
pub struct Drawn {
    /// Strata with their sizes.
    pub strata: Vec<Stratum>,
    /// Sampled crops and their strata, by the caller's numbers.
    pub chosen: BTreeMap<usize, String>,
}

impl Pools {
    /// Adds a crop.
    pub fn add(&mut self, cohort: &str, stratum: &str, number: usize) {
        self.0.entry((cohort.to_owned(), stratum.to_owned())).or_default().push(number);
    }

    /// Draws `wanted` crops of every stratum of every cohort.
    ///
    /// # Errors
    /// When a stratum holds fewer than asked (unless `allow_short`), or none holds any.
    pub fn draw(
        self,
        wanted: &BTreeMap<String, usize>,
        seed: u64,
        allow_short: bool,
    ) -> Result<Drawn> {
        let mut drawn = Drawn { strata: Vec::new(), chosen: BTreeMap::new() };
        let mut short = Vec::new();
        for ((cohort, stratum), mut pool) in self.0 {
            let Some(&wanted) = wanted.get(&stratum) else { continue };
            let size = pool.len();
            if size < wanted {
                short.push(format!("{cohort} {stratum}: {size} of {wanted}"));
            }
            // A stratum's draw does not depend on the other strata.
            let mut rng = seeded(seed, &format!("draw {cohort} {stratum}"));
            pool.shuffle(&mut rng);
            pool.truncate(wanted);
            let count = pool.len();
            drawn.chosen.extend(pool.into_iter().map(|i| (i, stratum.clone())));
            drawn.strata.push(Stratum { cohort, stratum, pool: size as u64, drawn: count });
        }
        if drawn.chosen.is_empty() {
            return Err(CorpusError::Invalid(format!(
                "no crops of {} to draw from",
                wanted.keys().cloned().collect::<Vec<_>>().join(", ")
            )));
        }
        if !short.is_empty() && !allow_short {
            return Err(CorpusError::TooFew(short.join("; ")));
        }
        Ok(drawn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Label;
    use mitosis::Mpp;

    #[test]
    fn an_item_or_stratum_that_is_listed_twice_by_hand_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let item = |id: &str| KeyItem {
            id: id.into(),
            meta: CropMeta::new("a.png", Label::MitoticFigure, "s", Mpp::PAPER, (8, 8)),
            stratum: "mf".into(),
        };
        let stratum =
            |s: &str| Stratum { cohort: "c".into(), stratum: s.into(), pool: 9, drawn: 2 };
        let path = dir.path().join("key.json");
        let read = |items: &[&str], strata: &[&str]| {
            let key = Key {
                format: "mithras-audit-key".into(),
                schema: KEY_SCHEMA,
                audit: "a".into(),
                corpus_digest: "d".into(),
                seed: 1,
                strata: strata.iter().copied().map(stratum).collect(),
                items: items.iter().copied().map(item).collect(),
            };
            write_json(&path, &key, Access::Private).unwrap();
            Key::read(&path).map_err(|e| e.to_string())
        };
        assert_eq!(read(&["0a", "0b"], &["mf", "imposter"]).unwrap().items.len(), 2);
        let e = read(&["0a", "0b", "0a"], &["mf"]).unwrap_err();
        assert!(e.contains("key.json") && e.contains("item `0a` is listed twice"), "{e}");
        let e = read(&["0a"], &["mf", "mf"]).unwrap_err();
        assert!(e.contains("stratum `mf` of `c` is listed twice"), "{e}");
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text.replacen("\"pool\"", "\"pool\": 8, \"pool\"", 1)).unwrap();
        let e = Key::read(&path).unwrap_err().to_string();
        assert!(e.contains("the key `pool` twice"), "{e}");

        std::fs::create_dir(dir.path().join("images")).unwrap();
        let package = Package {
            format: "mithras-audit".into(),
            schema: PACKAGE_SCHEMA,
            audit: "a".into(),
            question: Question::Tumour,
            items: ["0a", "0a"].map(|id| Item { id: id.into(), mpp: None, close: None }).into(),
        };
        write_json(&dir.path().join("audit.json"), &package, Access::Umask).unwrap();
        let e = Package::read(dir.path()).unwrap_err().to_string();
        assert!(e.contains("audit.json") && e.contains("item `0a` is listed twice"), "{e}");
    }
}
