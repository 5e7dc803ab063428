//! New corpora from old ones: merging, and the label interchange of the noise study.

use crate::error::{CorpusError, Result};
use crate::manifest::{Header, Manifest};
use crate::reader::Corpus;
use crate::schema::{CropMeta, Hash, Label};
use crate::shard::Columns;
use crate::writer::{CorpusWriter, Layout};
use base::table::{Format, Table, TableError, Unmatched};
use base::text::Many;
use mitosis::Score;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

/// Joins corpora in the order given. A path that occurs in several gets the corpus's number in
/// front. The same image in two of them is refused: it would count twice, or be trained on and tested with.
///
/// # Errors
/// When a corpus cannot be read or the new one not written; [`CorpusError::Crop`] for an image of two corpora.
pub fn merge(parts: &[Corpus], out: &Path, header: Header) -> Result<Manifest> {
    let mut header = header;
    let digests: Vec<_> = parts.iter().map(|p| p.manifest().digest.clone().into()).collect();
    header.notes.insert("merged".into(), serde_json::Value::Array(digests));
    let mut names: HashMap<String, usize> = HashMap::new();
    let mut images: HashMap<Hash, (usize, String)> = HashMap::new();
    let mut shared = BTreeSet::new();
    for (i, part) in parts.iter().enumerate() {
        for crop in part.crops(Columns::Meta)? {
            let CropMeta { path, pixels, .. } = crop?.meta;
            if let Some(pixels) = pixels {
                let (of, first) = images.entry(pixels).or_insert_with(|| (i, path.clone()));
                if *of != i {
                    let name = parts.get(*of).map_or("", |p| p.manifest().header.name.as_str());
                    let reason = format!(
                        "has the same pixels as `{first}` of the corpus `{name}`; leave one of them out"
                    );
                    return Err(CorpusError::Crop { crop: path, reason });
                }
            }
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
    /// SHA-256 of the table of scores.
    #[serde(skip_serializing_if = "Option::is_none")]
    scores: Option<&'a str>,
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
    /// Crops of the corpus, swapped or not.
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

/// Scores of labelled crops by a classifier that was not trained on them, in place of the corpus's `s_cls`.
#[derive(Debug)]
pub struct Scores {
    sha256: String,
    by_crop: HashMap<String, Score>,
}

impl Scores {
    /// Reads a table of held-out predictions (`RUN/predictions.csv` of `train finetune`): `file`, the crop's path in
    /// the corpus, and `p_mitotic_figure`.
    ///
    /// # Errors
    /// [`CorpusError::Table`] for a table without these columns, a probability outside 0 to 1, or a crop that occurs
    /// twice; [`CorpusError::Crop`] for a labelled crop that it lacks.
    pub fn read(path: &Path, corpus: &Corpus) -> Result<Self> {
        let table = Table::read(path, &Format::default())?;
        let (file, p) = (table.need(&["file"])?, table.need(&["p_mitotic_figure"])?);
        let mut by_crop = HashMap::with_capacity(table.len());
        for row in 0..table.len() {
            let score = Score::new(table.number(row, p)? as f32)
                .map_err(|e| table.wrong(row, p, e.to_string()))?;
            if by_crop.insert(table.cell(row, file).to_owned(), score).is_some() {
                let why =
                    "is scored twice; give the predictions of held-out crops, not those of a test";
                return Err(table.wrong(row, file, why).into());
            }
        }
        let mut lacking = Vec::new();
        let mut crops = BTreeSet::new();
        for crop in corpus.crops(Columns::Meta)? {
            let meta = crop?.meta;
            if meta.label != Label::Unlabeled && !by_crop.contains_key(&meta.path) {
                lacking.push(meta.path.clone());
            }
            crops.insert(meta.path);
        }
        if let Some(first) = lacking.first() {
            let lacking: Vec<&str> = lacking.iter().map(String::as_str).collect();
            let mut idle: Vec<&str> =
                by_crop.keys().map(String::as_str).filter(|k| !crops.contains(*k)).collect();
            idle.sort_unstable();
            let join = Unmatched::from_keys(("the corpus", "the table"), &lacking, &idle)
                .map_or_else(String::new, |join| format!(": {join}"));
            let reason = format!("{} does not score it{join}", path.display());
            return Err(CorpusError::Crop { crop: (*first).to_owned(), reason });
        }
        let (_, sha256) = base::digest::sha256_file(path).map_err(TableError::from)?;
        Ok(Self { sha256, by_crop })
    }
}

/// A crop of a corpus.
struct Ranked {
    score: f32,
    /// In the order of the corpus.
    number: usize,
    cohort: String,
}

/// The figures that may be interchanged, lowest score first, and the mimickers, highest first.
fn ranked(
    corpus: &Corpus,
    what: Interchange,
    score_of: &dyn Fn(&CropMeta) -> Option<Score>,
) -> Result<[Vec<Ranked>; 2]> {
    let score = |m: &CropMeta| {
        score_of(m).map(Score::get).ok_or_else(|| CorpusError::Crop {
            crop: m.path.clone(),
            reason: "has no s_cls, by which labels are ranked; give scores of held-out crops"
                .into(),
        })
    };
    let [mut figures, mut mimickers] = [vec![], vec![]];
    for (i, crop) in corpus.crops(Columns::Meta)?.enumerate() {
        let meta = crop?.meta;
        match meta.label {
            Label::MitoticFigure => {
                let s = score(&meta)?;
                if s > what.above && s <= what.up_to {
                    figures.push(Ranked { score: s, number: i, cohort: meta.cohort });
                }
            }
            Label::Mimicker => {
                let score = score(&meta)?;
                mimickers.push(Ranked { score, number: i, cohort: meta.cohort });
            }
            Label::Unlabeled => {}
        }
    }
    let rising = |a: &Ranked, b: &Ranked| a.score.total_cmp(&b.score);
    figures.sort_by(|a, b| rising(a, b).then(a.number.cmp(&b.number)));
    mimickers.sort_by(|a, b| rising(b, a).then(a.number.cmp(&b.number)));
    Ok([figures, mimickers])
}

/// Writes a copy of a corpus in which the least certain labels are interchanged: pseudo-figures
/// of `s_cls` in (`above`, `up_to`], lowest first, and as many pseudo-mimickers ranked by `s_cls`,
/// highest first; ties by corpus order. With `scores` they take the place of `s_cls`, in the copy, too.
///
/// # Errors
/// When fewer candidates of either kind exist than are asked for, or a score is missing.
pub fn interchange(
    corpus: &Corpus,
    out: &Path,
    what: Interchange,
    scores: Option<&Scores>,
) -> Result<InterchangeReport> {
    let score_of = |m: &CropMeta| match scores {
        Some(scores) => scores.by_crop.get(&m.path).copied(),
        None => m.s_cls,
    };
    let [mut figures, mut mimickers] = ranked(corpus, what, &score_of)?;
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
    let swapped: BTreeSet<usize> = figures.iter().chain(&mimickers).map(|c| c.number).collect();
    let mut cohorts: BTreeMap<String, [usize; 2]> = BTreeMap::new();
    for (k, list) in [&figures, &mimickers].into_iter().enumerate() {
        for c in list {
            cohorts.entry(c.cohort.clone()).or_default()[k] += 1;
        }
    }
    let mut header = corpus.manifest().header.clone();
    header.name = format!("{}-interchanged", header.name);
    let Interchange { above, up_to, .. } = what;
    let of = &corpus.manifest().digest;
    let note = Note { of, scores: scores.map(|s| s.sha256.as_str()), above, up_to, each: n };
    let note = serde_json::to_value(note).map_err(|e| CorpusError::Invalid(e.to_string()))?;
    header.notes.insert("interchange".into(), note);
    let mut writer = CorpusWriter::create(out, header, Layout::default())?;
    for (i, crop) in corpus.crops(Columns::All)?.enumerate() {
        let mut crop = crop?;
        crop.meta.s_cls = score_of(&crop.meta);
        if swapped.contains(&i) {
            crop.meta.label = match crop.meta.label {
                Label::MitoticFigure => Label::Mimicker,
                _ => Label::MitoticFigure,
            };
        }
        writer.push(crop.meta, crop.image)?;
    }
    let digest = writer.finish()?.digest;
    let range = |list: &[Ranked]| {
        let s = list.iter().map(|c| c.score);
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
