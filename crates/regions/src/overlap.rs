//! Whether two datasets, of crops or of regions, share a slide, a patient or an image.

use crate::dataset::{Dataset, RegionsError};
use base::digest::hex;
use base::remedy::{Remedied, Remedy};
use base::text::Many;
use crops::slide_name::bare;
use crops::{Columns, Corpus, CorpusError};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Why two datasets may not be of one model, or cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum OverlapError {
    /// They share something.
    #[error("{} and {} share {shared}", train.display(), evaluation.display())]
    Shared {
        /// Folder of the one.
        train: PathBuf,
        /// Folder of the other.
        evaluation: PathBuf,
        /// How many slides, patients and images, and up to ten of each.
        shared: String,
    },
    /// A corpus of crops cannot be read.
    #[error(transparent)]
    Crops(#[from] CorpusError),
    /// A dataset of regions cannot be read.
    #[error(transparent)]
    Regions(#[from] RegionsError),
}

impl Remedied for OverlapError {
    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Shared { .. } => None,
            Self::Crops(e) => e.remedy(),
            Self::Regions(e) => e.remedy(),
        }
    }
}

/// Slides, patients, and digests of images: of pixels where they are crops, of files where they are regions.
#[derive(Default)]
struct Sources {
    sets: [BTreeSet<String>; 3],
    /// Names of regions by the digests of their pixels.
    pixels: BTreeMap<String, String>,
}

impl Sources {
    fn open(dir: &Path) -> Result<Self, OverlapError> {
        let mut all = Self::default();
        if Dataset::is_dataset(dir) {
            for i in Dataset::open(dir)?.images() {
                all.add(&i.slide, i.patient.as_deref(), Some(i.sha256.clone()));
                all.pixels.extend(i.pixels.clone().map(|digest| (digest, i.name.clone())));
            }
        } else {
            for crop in Corpus::open(dir)?.crops(Columns::Meta)? {
                let m = crop?.meta;
                all.add(&m.slide, m.patient.as_deref(), m.pixels.map(|h| hex(&h)));
            }
        }
        Ok(all)
    }

    fn add(&mut self, slide: &str, patient: Option<&str>, image: Option<String>) {
        let [slides, patients, images] = &mut self.sets;
        // Importers write the name of a slide with the suffix of its file or without.
        slides.insert(bare(slide).to_owned());
        patients.extend(patient.map(str::to_owned));
        images.extend(image);
    }
}

/// Refuses two datasets that share a slide, a patient or an image (nothing of an evaluation set may be trained on).
/// Crops and regions have no image in common: of these, slides and patients are compared.
///
/// # Errors
/// [`OverlapError`].
pub fn refuse_overlap(train: &Path, evaluation: &Path) -> Result<(), OverlapError> {
    let (a, b) = (Sources::open(train)?, Sources::open(evaluation)?);
    let mut parts = Vec::new();
    for (what, (x, y)) in ["slides", "patients", "images"].iter().zip(a.sets.iter().zip(&b.sets)) {
        let both: Vec<&str> = x.intersection(y).map(String::as_str).collect();
        if !both.is_empty() {
            let shown = both[..both.len().min(10)].join(", ");
            parts.push(format!("{} {what} ({shown})", both.len()));
        }
    }
    let pairs: Vec<String> = b
        .pixels
        .iter()
        .filter_map(|(digest, name)| Some(format!("{} as {name}", a.pixels.get(digest)?)))
        .collect();
    if !pairs.is_empty() {
        let shown = pairs[..pairs.len().min(10)].join(", ");
        parts.push(format!("the pixels of {} ({shown})", Many(pairs.len(), "image")));
    }
    if parts.is_empty() {
        return Ok(());
    }
    let (train, evaluation) = (train.to_owned(), evaluation.to_owned());
    Err(OverlapError::Shared { train, evaluation, shared: parts.join(", ") })
}
