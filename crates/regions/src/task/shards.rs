//! Labelled crops of a dataset of crops, as imports and builds write them.

use std::path::Path;

use mitosis::Mpp;

use super::item::LabelledCrop;
use super::labels::Part;
use super::{Item, Result, TaskError};
use base::digest::hex;
use crops::reader::Corpus;
use crops::schema::{Label, Split, pixel_hash};

/// The labelled crops of one part, in the dataset's order, and the dataset's digest. Unlabelled ones are passed over.
pub(super) fn open(dir: &Path, part: Part) -> Result<(Vec<LabelledCrop>, String)> {
    let fail = |e: crops::CorpusError| TaskError::file(dir, e);
    let corpus = Corpus::open(dir).map_err(fail)?;
    let mut out = vec![];
    for crop in corpus.crops(crops::Columns::All).map_err(fail)? {
        let crop = crop.map_err(fail)?;
        let m = &crop.meta;
        let class = match m.label {
            Label::Mimicker => 0,
            Label::MitoticFigure => 1,
            Label::Unlabeled => continue,
        };
        if (m.split == Split::Test) != (part == Part::Test) {
            continue;
        }
        if (m.mpp.get() - Mpp::PAPER.get()).abs() > 0.01 * Mpp::PAPER.get() {
            let reason = format!("crop `{}` is at {}, not at {}", m.path, m.mpp, Mpp::PAPER);
            return Err(TaskError::file(dir, reason));
        }
        let image = crop.decode().map_err(fail)?;
        let item = Item {
            file: m.path.clone(),
            class,
            votes: vec![class],
            coarse: None,
            source: m.patient.as_ref().unwrap_or(&m.slide).clone(),
            patient: m.patient.clone(),
            slide: m.slide.clone(),
            domain: m.cohort.clone(),
            hash: hex(&pixel_hash(&image)),
        };
        out.push(LabelledCrop { item, image });
    }
    Ok((out, corpus.manifest().digest.clone()))
}
