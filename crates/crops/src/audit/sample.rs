//! Draws a stratified sample of a corpus and writes the package.

use super::package::{Key, PackageWriter, Pools, Question};
use crate::error::{CorpusError, Result};
use crate::reader::Corpus;
use crate::schema::CropMeta;
use crate::shard::Columns;
use mitosis::RgbTile;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

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

/// How many crops of a stratum are drawn.
#[derive(Clone, Copy, Debug)]
pub struct Quota {
    /// Name of the stratum.
    pub stratum: &'static str,
    /// Crops per cohort.
    pub crops: usize,
}

impl Quota {
    /// So many crops of a stratum.
    #[must_use]
    pub const fn new(stratum: &'static str, crops: usize) -> Self {
        Self { stratum, crops }
    }
}

impl StratumBy {
    /// Crops per cohort for each stratum, from `NAME=COUNT`; labels have default counts.
    ///
    /// # Errors
    /// A text that is not such a pair; an empty list where no defaults exist.
    pub fn counts(self, pairs: &[String]) -> Result<BTreeMap<String, usize>, CountsError> {
        match self {
            Self::Label => {
                counts(pairs, &[Quota::new("mitotic_figure", 30), Quota::new("mimicker", 20)])
            }
            Self::Subtype => counts(pairs, &[]),
        }
    }
}

/// Crops per cohort for each stratum, from `NAME=COUNT`; the `usual` ones when none are given.
///
/// # Errors
/// A text that is not such a pair; an empty list where no defaults exist.
pub fn counts(pairs: &[String], usual: &[Quota]) -> Result<BTreeMap<String, usize>, CountsError> {
    let pair = |text: &String| {
        let (name, count) = text.rsplit_once('=')?;
        Some((name.to_owned(), count.parse().ok()?))
    };
    match (pairs, usual) {
        ([], []) => Err(CountsError::None),
        ([], usual) => Ok(usual.iter().map(|q| (q.stratum.into(), q.crops)).collect()),
        _ => pairs.iter().map(|p| pair(p).ok_or_else(|| CountsError::Form(p.clone()))).collect(),
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

/// Draws a sample from a corpus into `out/package` and `out/key.json`. The pictures are the crops.
///
/// # Errors
/// When a stratum holds fewer crops than asked (unless `allow_short`), none holds any, the folder
/// exists, or a crop cannot be decoded or is too small for the question.
pub fn sample(corpus: &Corpus, out: &Path, o: &SampleOptions) -> Result<Key> {
    sample_wider(corpus, out, o, |_, _| Ok(None))
}

/// [`sample`]; `wider` gives the picture that is shown in place of a crop: at the crop's um/px, with
/// the same middle.
///
/// # Errors
/// As [`sample`], or those of `wider`.
pub fn sample_wider<E: From<CorpusError>>(
    corpus: &Corpus,
    out: &Path,
    o: &SampleOptions,
    mut wider: impl FnMut(&CropMeta, &RgbTile) -> Result<Option<RgbTile>, E>,
) -> Result<Key, E> {
    let mut pools = Pools::default();
    for (i, crop) in corpus.crops(Columns::Meta)?.enumerate() {
        let meta = crop?.meta;
        pools.add(&meta.cohort, &stratum_name(&meta, o.by), i);
    }
    let mut drawn = pools.draw(&o.per_cohort, o.seed, o.allow_short)?;
    let mut package = PackageWriter::create(out, o.question, &corpus.manifest().digest, o.seed)?;
    for (i, crop) in corpus.crops(Columns::All)?.enumerate() {
        let crop = crop?;
        let Some(stratum) = drawn.chosen.remove(&i) else { continue };
        let own = crop.decode()?;
        let (picture, close) = match wider(&crop.meta, &own)? {
            // Never less than the question needs, however small the crop.
            Some(p) => {
                let side = crop.meta.width.max(crop.meta.height).max(o.question.least_side());
                (p, Some(side))
            }
            None => (own, None),
        };
        package.push(crop.meta, stratum, &picture, close)?;
    }
    Ok(package.finish(drawn.strata)?)
}

fn stratum_name(meta: &CropMeta, by: StratumBy) -> String {
    match by {
        StratumBy::Label => meta.label.name().to_owned(),
        StratumBy::Subtype => meta.subtype.clone().unwrap_or_default(),
    }
}
