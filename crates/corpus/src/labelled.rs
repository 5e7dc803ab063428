//! A small labelled corpus from the figures at hand: AMi-Br's MIDOG21 part and the ICPR 2012 frames
//! (never AMi-Br's TUPAC16 part, which is a test set).
//!
//! Every crop is a plain window of its image: no mirrored edge and no seam that would betray its
//! class. Mitotic figures are the labelled ones; mimickers are dark nuclei away from every figure
//! and the mined negatives of the frames. The negatives of the other scanner are left out: their
//! um/px is not stated.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use mitosis::{Mpp, Point};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde::Deserialize;

use crate::ami::{Part, TrainingSet};
use crate::crops::{CropError, MarkKind, Scene, dark_places};
use crate::cut::Encoding;
use crate::error::CorpusError;
use crate::icpr::Icpr;
use crate::manifest::{Header, Manifest};
use crate::schema::{CropBox, CropMeta, Label, Split, pixel_hash};
use crate::writer::{CorpusWriter, Layout};

/// What is cut, and what is held out.
#[derive(Clone, Debug)]
pub struct LabelledOptions {
    /// Side of a crop, pixels at 0.25 um/px; at most 128.
    pub crop: u32,
    /// Side of the box of a figure, pixels, centred.
    pub box_side: u32,
    /// Least distance of a dark nucleus from every figure, pixels.
    pub clear: f32,
    /// At most this many dark nuclei of a MIDOG21 patch.
    pub dark_per_patch: usize,
    /// At most this many dark nuclei of an ICPR frame.
    pub dark_per_frame: usize,
    /// Folds of whole MIDOG21 slides; one is held out as `validation`.
    pub folds: usize,
    /// The fold held out.
    pub fold: usize,
    /// The ICPR slide held out.
    pub icpr_slide: String,
    /// Seed of the folds.
    pub seed: u64,
    /// Program and version for the manifest.
    pub builder: String,
}

impl Default for LabelledOptions {
    /// 64 px crops with boxes of 32 px; a third of the MIDOG21 slides and ICPR's A02 held out.
    fn default() -> Self {
        Self {
            crop: 64,
            box_side: 32,
            clear: 38.0,
            dark_per_patch: 2,
            dark_per_frame: 60,
            folds: 3,
            fold: 0,
            icpr_slide: "A02".into(),
            seed: 1,
            builder: concat!("mithras ", env!("CARGO_PKG_VERSION")).into(),
        }
    }
}

#[derive(Deserialize)]
struct Subtype {
    dataset: String,
    uid: u64,
    majority_atypical: String,
}

/// A whole window round a place, if it lies inside the image.
fn inside(scene: &Scene, x: f32, y: f32, side: u32) -> bool {
    let ok = |c: f32, n: usize| {
        let lo = (c - side as f32 / 2.0).round();
        lo >= 0.0 && lo + side as f32 <= n as f32
    };
    ok(x, scene.image.width) && ok(y, scene.image.height)
}

struct Writer<'a> {
    out: CorpusWriter,
    options: &'a LabelledOptions,
}

struct Place<'a> {
    scene: &'a Scene,
    x: f32,
    y: f32,
    label: Label,
    kind: &'a str,
    subtype: Option<&'a str>,
    split: Split,
}

impl Writer<'_> {
    fn push(&mut self, p: &Place<'_>) -> Result<(), CorpusError> {
        let side = self.options.crop;
        let tile = p.scene.cut(p.x, p.y, side as usize);
        let path = format!("{}_{}_{:.0}_{:.0}.png", p.scene.name, p.kind, p.x, p.y);
        let image = Encoding::Png.encode(&tile).map_err(|reason| CorpusError::Crop {
            crop: path.clone(),
            reason: reason.to_string(),
        })?;
        let meta = CropMeta {
            subtype: p.subtype.map(Into::into),
            bbox: Some(CropBox::centred(side, self.options.box_side)),
            centroid: Some(Point::new(f64::from(p.x), f64::from(p.y))),
            cohort: if p.scene.source.starts_with("MIDOG21") { "MIDOG21" } else { "ICPR2012" }
                .into(),
            source: format!("labelled:{}", p.kind),
            split: p.split,
            pixels: Some(pixel_hash(&tile)),
            ..CropMeta::new(path, p.label, p.scene.source.clone(), Mpp::PAPER, (side, side))
        };
        self.out.push(meta, image)
    }

    fn darks(&mut self, scene: &Scene, most: usize, split: Split) -> Result<(), CorpusError> {
        let found = dark_places(scene, self.options.clear, 4 * most + 40);
        let whole = |p: &&(f32, f32)| inside(scene, p.0, p.1, self.options.crop);
        for &(x, y) in found.iter().filter(whole).take(most) {
            let (label, kind) = (Label::Mimicker, "dark");
            self.push(&Place { scene, x, y, label, kind, subtype: None, split })?;
        }
        Ok(())
    }
}

/// Reads `data/ami_br` (its MIDOG21 part) and `data/icpr2012` and writes the corpus `out`.
///
/// # Errors
/// Missing or malformed sources, options out of range, or a disk that refuses.
pub fn write(
    data: &Path,
    out: &Path,
    options: &LabelledOptions,
) -> Result<Manifest, LabelledError> {
    let o = options;
    if !(16..=128).contains(&o.crop) || o.box_side == 0 || o.fold >= o.folds {
        return Err(CorpusError::Invalid(format!(
            "crops of {} px with boxes of {} px, fold {} of {}: crops are 16 to 128 px, boxes \
             positive, and the fold one of the folds",
            o.crop, o.box_side, o.fold, o.folds
        ))
        .into());
    }
    let ami = data.join("ami_br");
    let midog = TrainingSet::open(&ami, Part::Midog21)?;
    let icpr = Icpr::open(&data.join("icpr2012"), Mpp::PAPER)?;
    if !icpr.scenes.iter().any(|s| s.source == o.icpr_slide) {
        let known: BTreeSet<_> = icpr.scenes.iter().map(|s| s.source.as_str()).collect();
        return Err(CorpusError::Invalid(format!(
            "no ICPR slide {}; there are {known:?}",
            o.icpr_slide
        ))
        .into());
    }
    let labels = ami.join("labels.csv");
    let mut reader = csv::Reader::from_path(&labels).map_err(|e| CropError::read(&labels, e))?;
    let mut subtypes = BTreeMap::new();
    for row in reader.deserialize::<Subtype>() {
        let row = row.map_err(|e| CropError::read(&labels, e))?;
        if row.dataset == "MIDOG21" {
            let name = if row.majority_atypical == "True" { "atypical" } else { "typical" };
            subtypes.insert(format!("MIDOG21_{}", row.uid), name);
        }
    }
    let slides: BTreeSet<&str> = midog.scenes().iter().map(|s| s.source.as_str()).collect();
    let mut slides: Vec<&str> = slides.into_iter().collect();
    slides.shuffle(&mut ChaCha8Rng::seed_from_u64(o.seed));
    let held: BTreeSet<&str> = slides.iter().copied().skip(o.fold).step_by(o.folds).collect();
    let side = |held: bool| if held { Split::Validation } else { Split::Train };

    let mut notes = serde_json::Map::new();
    notes.insert("sources".into(), "AMi-Br MIDOG21 part; ICPR 2012 Aperio frames".into());
    notes.insert("held_out_icpr".into(), o.icpr_slide.clone().into());
    notes.insert("held_out_fold".into(), format!("{} of {}", o.fold, o.folds).into());
    let header =
        Header { name: "labelled".into(), builder: o.builder.clone(), preset: None, notes };
    let mut w = Writer { out: CorpusWriter::create(out, header, Layout::default())?, options: o };
    for scene in midog.scenes() {
        let split = side(held.contains(scene.source.as_str()));
        let subtype = subtypes.get(&scene.name).copied();
        let (x, y, label, kind) = (64.0, 64.0, Label::MitoticFigure, "figure");
        w.push(&Place { scene, x, y, label, kind, subtype, split })?;
        w.darks(scene, o.dark_per_patch, split)?;
    }
    for (i, scene) in icpr.scenes.iter().enumerate() {
        let split = side(scene.source == o.icpr_slide);
        for m in scene.marks.iter().filter(|m| m.kind == MarkKind::Figure) {
            if inside(scene, m.x, m.y, o.crop) {
                let (x, y, label, kind) = (m.x, m.y, Label::MitoticFigure, "figure");
                w.push(&Place { scene, x, y, label, kind, subtype: None, split })?;
            }
        }
        for n in &icpr.negatives {
            if let Some((at, x, y)) = n.place
                && at == i
                && inside(scene, x, y, o.crop)
            {
                let (label, kind) = (Label::Mimicker, "mined");
                w.push(&Place { scene, x, y, label, kind, subtype: None, split })?;
            }
        }
        w.darks(scene, o.dark_per_frame, split)?;
    }
    Ok(w.out.finish()?)
}

/// Errors of [`write()`].
#[derive(Debug, thiserror::Error)]
pub enum LabelledError {
    /// The sources.
    #[error(transparent)]
    Source(#[from] CropError),
    /// The corpus.
    #[error(transparent)]
    Corpus(#[from] CorpusError),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Columns, Corpus};

    #[test]
    fn writes_figures_and_mimickers_of_disjoint_slides() {
        let Some(data) = testkit::data("ami_br") else { return };
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("corpus");
        let manifest = write(data.parent().unwrap(), &out, &LabelledOptions::default()).unwrap();
        assert!(manifest.counts.labels["mitotic_figure"] > 1750);
        assert!(manifest.counts.labels["mimicker"] > 1200, "{:?}", manifest.counts);
        let mut sides: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
        for crop in Corpus::open(&out).unwrap().crops(Columns::All).unwrap() {
            let crop = crop.unwrap();
            assert!(!crop.meta.path.contains("TUPAC"));
            assert_eq!(crop.decode().unwrap().width, 64);
            sides.entry(crop.meta.slide).or_default().insert(crop.meta.split.name());
        }
        assert!(sides.values().all(|s| s.len() == 1), "a slide on both sides");
        assert_eq!(sides["A02"], BTreeSet::from(["validation"]));
        assert_eq!(sides["A00"], BTreeSet::from(["train"]));
    }

    #[test]
    fn refuses_what_cannot_be_cut() {
        let refuse = |o: LabelledOptions| {
            write(Path::new("/nowhere"), Path::new("/nowhere"), &o).unwrap_err().to_string()
        };
        assert!(refuse(LabelledOptions { crop: 200, ..Default::default() }).contains("200 px"));
        assert!(refuse(LabelledOptions { fold: 3, ..Default::default() }).contains("fold 3"));
    }
}
