//! What can be split into folds: one dataset or several, by random assignment or by a table.

use super::deal::{Equal, Words, by_table};
use super::{DataKind, FoldManifest, FoldsError, Result, SCHEMA, Scheme, Stratum, Unit};
use crate::annotations::SplitTable;
use crate::dataset::{Dataset, Part};
use crops::slide_name::bare;
use crops::{Columns, Corpus};
use crops::{CropMeta, Label, Split};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

/// A dataset as folds see it.
#[derive(Debug)]
pub enum Splittable {
    /// Regions.
    Regions(Dataset),
    /// Crops: their descriptions, and the digest of the dataset.
    Crops(Vec<CropMeta>, String),
}

impl Splittable {
    /// Opens a dataset of either kind.
    ///
    /// # Errors
    /// No dataset, or one that cannot be read.
    pub fn open(dir: &Path) -> Result<Self> {
        let invalid = |e: &dyn std::fmt::Display| FoldsError::Invalid(e.to_string());
        if Dataset::is_dataset(dir) {
            return Ok(Self::Regions(Dataset::open(dir).map_err(|e| invalid(&e))?));
        }
        Self::of_corpus(&Corpus::open(dir).map_err(|e| invalid(&e))?)
    }

    fn of_corpus(corpus: &Corpus) -> Result<Self> {
        let invalid = |e: crops::CorpusError| FoldsError::Invalid(e.to_string());
        let crops = corpus.crops(Columns::Meta).map_err(invalid)?;
        let metas = crops.map(|c| Ok(c.map_err(invalid)?.meta)).collect::<Result<_>>()?;
        Ok(Self::Crops(metas, corpus.manifest().digest.clone()))
    }

    fn kind(&self) -> DataKind {
        match self {
            Self::Regions(_) => DataKind::Regions,
            Self::Crops(..) => DataKind::Crops,
        }
    }

    fn digest(&self) -> &str {
        match self {
            Self::Regions(set) => set.digest(),
            Self::Crops(_, digest) => digest,
        }
    }

    /// Images stratified by figures and images per source; crops by cohort and label. Every crop can
    /// validate. Crops of equal pixels need not stay together: `contradiction` finds them.
    fn units(&self) -> Vec<Unit<'_>> {
        match self {
            Self::Regions(set) => regions(set),
            Self::Crops(metas, _) => metas
                .iter()
                .map(|m| Unit {
                    slide: &m.slide,
                    patient: m.patient.as_deref(),
                    copy: None,
                    pixels: None,
                    strata: vec![Stratum { name: format!("{} {}", m.cohort, m.label), count: 1 }],
                    figures: u64::from(m.label == Label::MitoticFigure),
                    test: m.split == Split::Test,
                    validates: true,
                })
                .collect(),
        }
    }
}

fn regions(set: &Dataset) -> Vec<Unit<'_>> {
    let images = set.images().iter();
    images
        .map(|i| Unit {
            slide: &i.slide,
            patient: i.patient.as_deref(),
            copy: Some(&i.sha256),
            pixels: i.pixels.as_deref(),
            strata: vec![
                Stratum {
                    name: format!("{} figures", i.source),
                    count: i.figures().count() as u64,
                },
                Stratum { name: format!("{} images", i.source), count: 1 },
            ],
            figures: i.figures().count() as u64,
            test: i.part != Part::Train,
            validates: i.exhaustive,
        })
        .collect()
}

/// What several datasets together are called.
fn named(sets: &[Splittable]) -> (DataKind, String) {
    if let [one] = sets {
        return (one.kind(), one.digest().to_owned());
    }
    let mut digests: Vec<&str> = sets.iter().map(Splittable::digest).collect();
    digests.sort_unstable();
    (DataKind::Several, base::digest::hex(&Sha256::digest(digests.join("\n"))))
}

/// The words of a table that lists slides, or else patients, or else both.
fn table_words<'t>(table: &'t SplitTable, units: &[Unit<'t>]) -> Result<Words<'t>> {
    // Two names of one slide are one name to the table.
    let mut slides = BTreeMap::new();
    for unit in units {
        slides.entry(bare(unit.slide)).or_insert(unit.slide);
    }
    let slides: Vec<&str> = slides.into_values().collect();
    let patients: HashSet<&str> = units.iter().filter_map(|u| u.patient).collect();
    let by_slide = || Some([table.words_by_name(slides.iter().copied()).ok()?, HashMap::new()]);
    let by_patient = || Some([HashMap::new(), table.words_by_name(patients.iter().copied()).ok()?]);
    let alone = match table.lists_cases() {
        true => by_patient().or_else(by_slide),
        false => by_slide().or_else(by_patient),
    };
    if let Some(words) = alone {
        return Ok(words);
    }
    let both = table.words_by_name(slides.iter().chain(&patients).copied());
    let both = both.map_err(|e| FoldsError::Invalid(e.to_string()))?;
    let unclear = |u: &&Unit<'_>| {
        let other = u.patient != Some(u.slide) && patients.contains(u.slide);
        other && both.contains_key(u.slide)
    };
    match units.iter().find(unclear) {
        Some(Unit { slide, .. }) => Err(FoldsError::Invalid(format!(
            "`{slide}` of the table is a slide and another patient; list slides alone, or patients alone in a column \
             `case`"
        ))),
        None => Ok([both.clone(), both]),
    }
}

impl FoldManifest {
    /// Splits a regions dataset, stratified by figures and images per source.
    ///
    /// # Errors
    /// As [`FoldManifest::new`].
    pub fn of_regions(set: &Dataset, scheme: Scheme, seed: u64) -> Result<Self> {
        Self::new(DataKind::Regions, set.digest(), regions(set), scheme, seed)
    }

    /// Splits the crops of a corpus.
    ///
    /// # Errors
    /// As [`FoldManifest::new`], or the corpus cannot be read.
    pub fn of_crops(corpus: &Corpus, scheme: Scheme, seed: u64) -> Result<Self> {
        Self::of_all(&[Splittable::of_corpus(corpus)?], scheme, seed)
    }

    /// Splits all slides and patients of some datasets. A slide's name must mean the same slide
    /// in all of them.
    ///
    /// # Errors
    /// As [`FoldManifest::new`].
    pub fn of_all(sets: &[Splittable], scheme: Scheme, seed: u64) -> Result<Self> {
        let (kind, dataset) = named(sets);
        Self::new(kind, &dataset, sets.iter().flat_map(Splittable::units), scheme, seed)
    }

    /// The folds that a table gives: for every slide or patient the name of the fold that holds it out,
    /// `train` where every fold trains on it, or `test`.
    ///
    /// # Errors
    /// A table that names others, leaves some out, or puts parts of a patient into two folds; fewer than
    /// two folds, or test data in one.
    pub fn given(sets: &[Splittable], table: &Path) -> Result<Self> {
        let invalid = |e: crate::annotations::ImportError| FoldsError::Invalid(e.to_string());
        let read = SplitTable::read(table).map_err(invalid)?;
        let units: Vec<Unit<'_>> = sets.iter().flat_map(Splittable::units).collect();
        let words = table_words(&read, &units)?;
        let (folds, groups) = by_table(&units, &words)
            .map_err(|why| FoldsError::Invalid(format!("{}: {why}", table.display())))?;
        let (kind, dataset) = named(sets);
        let mut made = Self {
            format: super::FORMAT.into(),
            schema: SCHEMA,
            kind,
            dataset,
            scheme: Scheme::Given,
            seed: 0,
            folds,
            groups,
            digest: String::new(),
        };
        made.digest = made.own_digest();
        made.index()?;
        Ok(made)
    }

    /// Folds of a task's items, dealt as results before this version were.
    pub(crate) fn of_task(
        dataset: &str,
        units: Vec<Unit<'_>>,
        scheme: Scheme,
        seed: u64,
    ) -> Result<Self> {
        Self::dealt(DataKind::Crops, dataset, units, scheme, Equal::First, seed)
    }
}
