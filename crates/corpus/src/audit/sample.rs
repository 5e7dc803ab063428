//! Draws a stratified sample and writes the package.

use crate::cut::Encoding;
use crate::error::{CorpusError, Result};
use crate::file;
use crate::reader::Corpus;
use crate::schema::{CropMeta, hex};
use crate::shard::Columns;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// What the reviewer is asked about the picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Question {
    /// Is the object at the centre a mitotic figure? With box size and figures elsewhere.
    MitoticFigure,
    /// Is this tumour tissue?
    Tumour,
}

/// What makes a stratum besides the cohort.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StratumBy {
    /// The label: 30 `mitotic_figure` and 20 `mimicker` per cohort in the paper.
    Label,
    /// The subtype, e.g. which tumour filter kept a tile: 25 of each per cohort in the paper.
    Subtype,
}

/// How to draw.
#[derive(Clone, Debug)]
pub struct SampleOptions {
    /// What is asked.
    pub question: Question,
    /// What makes a stratum.
    pub by: StratumBy,
    /// Crops per cohort for each stratum name.
    pub per_cohort: BTreeMap<String, usize>,
    /// Seed of the draw, the order and the names.
    pub seed: u64,
    /// Take all of a stratum that holds fewer than asked, instead of refusing.
    pub allow_short: bool,
}

impl StratumBy {
    /// Crops per cohort for each stratum, from `NAME=COUNT`; of labels there is a usual choice.
    ///
    /// # Errors
    /// What is no such pair, in words; or there is none, and no usual choice.
    pub fn counts(self, pairs: &[String]) -> Result<BTreeMap<String, usize>, CountsError> {
        if pairs.is_empty() && self == Self::Label {
            return Ok([("mitotic_figure", 30), ("mimicker", 20)]
                .map(|(n, k)| (n.into(), k))
                .into());
        }
        let pair = |text: &String| {
            let (name, count) = text.rsplit_once('=')?;
            Some((name.to_owned(), count.parse().ok()?))
        };
        match pairs {
            [] => Err(CountsError::None),
            _ => {
                pairs.iter().map(|p| pair(p).ok_or_else(|| CountsError::Form(p.clone()))).collect()
            }
        }
    }
}

/// Why it is not known how many crops to draw.
#[derive(Debug, thiserror::Error)]
pub enum CountsError {
    /// Not `NAME=COUNT`.
    #[error("`{0}` is not NAME=COUNT")]
    Form(String),
    /// Subtypes have no usual numbers.
    #[error("strata by subtype need numbers, NAME=COUNT")]
    None,
}

impl std::fmt::Display for Stratum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:<28} {:<16} {:>5} of {}", self.cohort, self.stratum, self.drawn, self.pool)
    }
}

/// A stratum and its size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stratum {
    /// Cohort.
    pub cohort: String,
    /// Label or subtype.
    pub stratum: String,
    /// Crops in the corpus: the weight of pooled figures.
    pub pool: u64,
    /// Crops drawn.
    pub drawn: usize,
}

/// A picture in the package. Its name says nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    /// Name of the picture without extension.
    pub id: String,
}

/// `audit.json`: all that a reviewer's machine needs to know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
    /// Label or subtype it was drawn for.
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
    /// Digest of the corpus.
    pub corpus_digest: String,
    /// Seed.
    pub seed: u64,
    /// Strata with their sizes.
    pub strata: Vec<Stratum>,
    /// The crops.
    pub items: Vec<KeyItem>,
}

/// Draws a sample from a corpus into `out/package` and `out/key.json`.
///
/// # Errors
/// When a stratum holds fewer crops than asked (unless `allow_short`), none holds any, the folder
/// exists, or a crop cannot be decoded.
pub fn sample(corpus: &Corpus, out: &Path, o: &SampleOptions) -> Result<Key> {
    let mut pools: BTreeMap<(String, String), Vec<usize>> = BTreeMap::new();
    for (i, crop) in corpus.crops(Columns::Meta)?.enumerate() {
        let meta = crop?.meta;
        let stratum = stratum_of(&meta, o.by);
        if o.per_cohort.contains_key(&stratum) {
            pools.entry((meta.cohort, stratum)).or_default().push(i);
        }
    }
    let mut strata = Vec::new();
    let mut chosen: HashMap<usize, String> = HashMap::new();
    let mut short = Vec::new();
    for ((cohort, stratum), mut pool) in pools {
        let wanted = o.per_cohort[&stratum];
        let size = pool.len();
        if size < wanted {
            short.push(format!("{cohort} {stratum}: {size} of {wanted}"));
        }
        // A stratum's draw does not depend on the other strata.
        let mut rng = seeded(o.seed, &format!("draw {cohort} {stratum}"));
        pool.shuffle(&mut rng);
        pool.truncate(wanted);
        strata.push(Stratum {
            cohort,
            stratum: stratum.clone(),
            pool: size as u64,
            drawn: pool.len(),
        });
        chosen.extend(pool.into_iter().map(|i| (i, stratum.clone())));
    }
    if chosen.is_empty() {
        return Err(CorpusError::Invalid(format!(
            "no crop of {} in this corpus",
            o.per_cohort.keys().cloned().collect::<Vec<_>>().join(", ")
        )));
    }
    if !short.is_empty() && !o.allow_short {
        return Err(CorpusError::TooFew(short.join("; ")));
    }

    let package = out.join("package");
    if package.exists() {
        return Err(CorpusError::Invalid(format!("{} already exists", package.display())));
    }
    let images = package.join("images");
    std::fs::create_dir_all(&images).map_err(CorpusError::io(&images))?;
    let mut items = Vec::new();
    for (i, crop) in corpus.crops(Columns::All)?.enumerate() {
        let crop = crop?;
        let Some(stratum) = chosen.remove(&i) else { continue };
        let name =
            Sha256::digest(format!("{} {} {}", o.seed, corpus.manifest().digest, crop.meta.path));
        let id = hex(&name[..8]);
        // Re-encoded, so that no metadata and no difference in file type gives a label away.
        let png = Encoding::Png.encode(&crop.decode()?).map_err(|reason| CorpusError::Crop {
            crop: crop.meta.path.clone(),
            reason: reason.to_string(),
        })?;
        file::write(&images.join(format!("{id}.png")), &png)?;
        items.push(KeyItem { id, meta: crop.meta, stratum });
    }
    items.sort_by(|a, b| a.id.cmp(&b.id));
    items.shuffle(&mut seeded(o.seed, "order"));
    let mut h = Sha256::new();
    items.iter().for_each(|i| h.update(&i.id));
    let audit = hex(&h.finalize()[..8]);
    let shown = Package {
        format: "mithras-audit".into(),
        schema: 1,
        audit: audit.clone(),
        question: o.question,
        items: items.iter().map(|i| Item { id: i.id.clone() }).collect(),
    };
    let key = Key {
        format: "mithras-audit-key".into(),
        schema: 1,
        audit,
        corpus_digest: corpus.manifest().digest.clone(),
        seed: o.seed,
        strata,
        items,
    };
    write_json(&package.join("audit.json"), &shown)?;
    write_json(&out.join("key.json"), &key)?;
    Ok(key)
}

fn stratum_of(meta: &CropMeta, by: StratumBy) -> String {
    match by {
        StratumBy::Label => meta.label.name().to_owned(),
        StratumBy::Subtype => meta.subtype.clone().unwrap_or_default(),
    }
}

fn seeded(seed: u64, purpose: &str) -> ChaCha8Rng {
    let h: [u8; 32] = Sha256::digest(format!("{seed} {purpose}")).into();
    ChaCha8Rng::from_seed(h)
}

fn write_json<T: Serialize>(path: &Path, value: &T) -> Result<()> {
    let mut text = serde_json::to_string_pretty(value)
        .map_err(|e| CorpusError::Manifest { path: path.into(), reason: e.to_string() })?;
    text.push('\n');
    Ok(file::write(path, text.as_bytes())?)
}

fn read_json<T: for<'de> Deserialize<'de>>(path: &Path, format: &str) -> Result<T> {
    let bad = |reason: String| CorpusError::Manifest { path: path.into(), reason };
    let text = std::fs::read_to_string(path).map_err(CorpusError::io(path))?;
    let value: serde_json::Value =
        serde_json::from_str(&text).map_err(|e| bad(format!("not JSON: {e}")))?;
    if value["format"] != format || value["schema"] != 1 {
        return Err(bad(format!("not a `{format}` file of schema 1")));
    }
    serde_json::from_value(value).map_err(|e| bad(e.to_string()))
}

impl Package {
    /// Reads `audit.json` of a package folder and checks that every picture is there.
    ///
    /// # Errors
    /// When it is missing, of another format, or lacks a picture.
    pub fn read(dir: &Path) -> Result<Self> {
        let path = dir.join("audit.json");
        let package: Self = read_json(&path, "mithras-audit")?;
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
    /// When it is missing or of another format.
    pub fn read(path: &Path) -> Result<Self> {
        read_json(path, "mithras-audit-key")
    }
}
