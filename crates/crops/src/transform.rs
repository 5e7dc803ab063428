//! New corpora from old ones: merging, and the label interchange of the noise study.

use crate::error::{CorpusError, Result};
use crate::manifest::{Header, Manifest};
use crate::reader::Corpus;
use crate::schema::{CropMeta, Label};
use crate::shard::Columns;
use crate::writer::{CorpusWriter, Layout};
use base::text::Many;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

/// Joins corpora in the order given. A path that occurs in several gets the corpus's number in
/// front.
///
/// # Errors
/// When a corpus cannot be read or the new one not written.
pub fn merge(parts: &[Corpus], out: &Path, header: Header) -> Result<Manifest> {
    let mut header = header;
    let digests: Vec<_> = parts.iter().map(|p| p.manifest().digest.clone().into()).collect();
    header.notes.insert("merged".into(), serde_json::Value::Array(digests));
    let mut names: HashMap<String, usize> = HashMap::new();
    let mut shared = BTreeSet::new();
    for (i, part) in parts.iter().enumerate() {
        for crop in part.crops(Columns::Meta)? {
            let path = crop?.meta.path;
            if names.insert(path.clone(), i).is_some_and(|old| old != i) {
                shared.insert(path);
            }
        }
    }
    let mut writer = CorpusWriter::create(out, header, Layout::default())?;
    for (i, part) in parts.iter().enumerate() {
        for crop in part.crops(Columns::All)? {
            let mut crop = crop?;
            if shared.contains(&crop.meta.path) {
                crop.meta.path = format!("{i}/{}", crop.meta.path);
            }
            writer.push(crop.meta, crop.image)?;
        }
    }
    writer.finish()
}

/// Which labels the noise study swaps.
#[derive(Clone, Copy, Debug)]
pub struct Interchange {
    /// Pseudo-figures with `s_cls` above this ...
    pub above: f32,
    /// ... and up to this are candidates (0.5 to 0.6 in the paper).
    pub up_to: f32,
    /// How many of each kind; all candidates when `None` (82,757 in the paper).
    pub count: Option<usize>,
}

impl Default for Interchange {
    fn default() -> Self {
        Self { above: 0.5, up_to: 0.6, count: None }
    }
}

/// The entry `interchange` of the corpus's notes.
#[derive(Serialize)]
struct Note<'a> {
    of: &'a str,
    above: f32,
    up_to: f32,
    each: usize,
}

/// What was swapped.
#[derive(Clone, Debug, Serialize)]
pub struct InterchangeReport {
    /// Figures turned mimickers.
    pub figures_swapped: usize,
    /// Mimickers turned figures; always the same number.
    pub mimickers_swapped: usize,
    /// Crops in all.
    pub crops: u64,
    /// Share of labels that changed, per cent.
    pub percent: f64,
    /// `s_cls` range of the swapped figures.
    pub figure_scores: Option<[f32; 2]>,
    /// `s_cls` range of the swapped mimickers.
    pub mimicker_scores: Option<[f32; 2]>,
    /// Swapped figures and mimickers per cohort.
    pub cohorts: BTreeMap<String, [usize; 2]>,
    /// Digest of the new corpus.
    pub digest: String,
}

impl std::fmt::Display for InterchangeReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let n = self.figures_swapped + self.mimickers_swapped;
        writeln!(f, "{n} of {} labels interchanged ({:.3} %)", self.crops, self.percent)?;
        for (what, range) in [("figures", self.figure_scores), ("mimickers", self.mimicker_scores)]
        {
            if let Some([lo, hi]) = range {
                writeln!(f, "{what}: s_cls {lo:.4} to {hi:.4}")?;
            }
        }
        for (cohort, [figures, mimickers]) in &self.cohorts {
            let (figures, mimickers) = (Many(figures, "figure"), Many(mimickers, "mimicker"));
            writeln!(f, "{cohort}: {figures}, {mimickers}")?;
        }
        writeln!(f, "digest {}", self.digest)
    }
}

/// Writes a copy of a corpus in which the least certain labels are interchanged: pseudo-figures
/// of `s_cls` in (`above`, `up_to`], lowest first, and as many pseudo-mimickers ranked by `s_cls`,
/// highest first; ties by corpus order.
///
/// # Errors
/// When fewer candidates of either kind exist than are asked for, or a score is missing.
pub fn interchange(corpus: &Corpus, out: &Path, what: Interchange) -> Result<InterchangeReport> {
    let (mut figures, mut mimickers) = (Vec::new(), Vec::new());
    for (i, crop) in corpus.crops(Columns::Meta)?.enumerate() {
        let meta = crop?.meta;
        let score = |m: &CropMeta| {
            m.s_cls.map(mitosis::Score::get).ok_or_else(|| CorpusError::Crop {
                crop: m.path.clone(),
                reason: "has no s_cls; the interchange ranks by it".into(),
            })
        };
        match meta.label {
            Label::MitoticFigure => {
                let s = score(&meta)?;
                if s > what.above && s <= what.up_to {
                    figures.push((s, i, meta.cohort));
                }
            }
            Label::Mimicker => mimickers.push((score(&meta)?, i, meta.cohort)),
            Label::Unlabeled => {}
        }
    }
    figures.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    mimickers.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let n = what.count.unwrap_or(figures.len());
    if n > figures.len() || n > mimickers.len() || n == 0 {
        return Err(CorpusError::Invalid(format!(
            "{n} labels of each kind to interchange; there are {} figures with s_cls in ({}, {}] and {} mimickers",
            figures.len(),
            what.above,
            what.up_to,
            mimickers.len()
        )));
    }
    figures.truncate(n);
    mimickers.truncate(n);
    let swapped: BTreeSet<usize> = figures.iter().chain(&mimickers).map(|c| c.1).collect();
    let mut cohorts: BTreeMap<String, [usize; 2]> = BTreeMap::new();
    for (k, list) in [&figures, &mimickers].into_iter().enumerate() {
        for c in list {
            cohorts.entry(c.2.clone()).or_default()[k] += 1;
        }
    }
    let mut header = corpus.manifest().header.clone();
    header.name = format!("{}-interchanged", header.name);
    let Interchange { above, up_to, .. } = what;
    let note = Note { of: &corpus.manifest().digest, above, up_to, each: n };
    let note = serde_json::to_value(note).map_err(|e| CorpusError::Invalid(e.to_string()))?;
    header.notes.insert("interchange".into(), note);
    let mut writer = CorpusWriter::create(out, header, Layout::default())?;
    for (i, crop) in corpus.crops(Columns::All)?.enumerate() {
        let mut crop = crop?;
        if swapped.contains(&i) {
            crop.meta.label = match crop.meta.label {
                Label::MitoticFigure => Label::Mimicker,
                _ => Label::MitoticFigure,
            };
        }
        writer.push(crop.meta, crop.image)?;
    }
    let digest = writer.finish()?.digest;
    let range = |list: &[(f32, usize, String)]| {
        let s = list.iter().map(|c| c.0);
        Some([s.clone().min_by(f32::total_cmp)?, s.max_by(f32::total_cmp)?])
    };
    #[expect(clippy::cast_precision_loss, reason = "a percentage")]
    let percent = 100.0 * (2 * n) as f64 / corpus.len() as f64;
    Ok(InterchangeReport {
        figures_swapped: n,
        mimickers_swapped: n,
        crops: corpus.len(),
        percent,
        figure_scores: range(&figures),
        mimicker_scores: range(&mimickers),
        cohorts,
        digest,
    })
}
