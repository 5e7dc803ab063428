//! A small labelled corpus of crops from a regions dataset: its figures, its look-alikes, and dark nuclei
//! of what is labelled exhaustively. Its test part has no way in.
//!
//! Every crop is a plain window of its image: no mirrored edge and no seam that would betray its
//! class. The held-out side of a fold is `validation`.

use base::remedy::{Remedied, Remedy};
use std::collections::HashSet;
use std::path::Path;

use mitosis::{Mpp, Point};

use crate::dataset::{Dataset, Image, Kind, RegionsError};
use crate::folds::{FoldsError, RegionFold, is_frame, marked_scene};
use crate::scene::{Scene, dark_places};
use crops::Encoding;
use crops::error::CorpusError;
use crops::manifest::{Header, Manifest};
use crops::schema::{CropBox, CropMeta, Label, Split, pixel_hash};
use crops::writer::{CorpusWriter, Layout};

/// What is cut.
#[derive(Clone, Debug)]
pub struct LabelledOptions {
    /// Side of a crop, pixels at 0.25 um/px; at most 128.
    pub crop: u32,
    /// Side of the box of a figure, pixels, centred.
    pub box_side: u32,
    /// Least distance of a dark nucleus from every figure, pixels.
    pub clear: f32,
    /// At most this many dark nuclei of an image that is smaller than a frame.
    pub dark_per_patch: usize,
    /// At most this many dark nuclei of a frame.
    pub dark_per_frame: usize,
    /// Program and version for the manifest.
    pub builder: String,
}

impl Default for LabelledOptions {
    /// 64 px crops with boxes of 32 px.
    fn default() -> Self {
        Self {
            crop: 64,
            box_side: 32,
            clear: 38.0,
            dark_per_patch: 2,
            dark_per_frame: 60,
            builder: concat!("mithras ", env!("CARGO_PKG_VERSION")).into(),
        }
    }
}

/// Whether a whole window around a place is inside the image.
fn inside(scene: &Scene, x: f32, y: f32, side: u32) -> bool {
    let ok = |c: f32, n: usize| {
        let lo = (c - side as f32 / 2.0).round();
        lo >= 0.0 && lo + side as f32 <= n as f32
    };
    ok(x, scene.image.width) && ok(y, scene.image.height)
}

struct Writer<'a> {
    out: CorpusWriter,
    paths: HashSet<String>,
    options: &'a LabelledOptions,
}

struct Place<'a> {
    scene: &'a Scene,
    cohort: &'a str,
    x: f32,
    y: f32,
    label: Label,
    kind: &'a str,
    subtype: Option<&'a str>,
    split: Split,
}

impl Writer<'_> {
    /// A name for the crop of a place; two places may round to one pixel.
    fn path(&mut self, p: &Place<'_>) -> String {
        let own = format!("{}_{}_{:.0}_{:.0}", p.scene.name, p.kind, p.x, p.y);
        let mut path = format!("{own}.png");
        let mut number = 2;
        while !self.paths.insert(path.clone()) {
            path = format!("{own}_{number}.png");
            number += 1;
        }
        path
    }

    fn push(&mut self, p: &Place<'_>) -> Result<(), CorpusError> {
        let side = self.options.crop;
        let tile = p.scene.cut(p.x, p.y, side as usize);
        let path = self.path(p);
        let image = Encoding::Png.encode(&tile).map_err(|reason| CorpusError::Crop {
            crop: path.clone(),
            reason: reason.to_string(),
        })?;
        let meta = CropMeta {
            subtype: p.subtype.map(Into::into),
            bbox: Some(CropBox::centred(side, self.options.box_side)),
            centroid: Some(Point::new(f64::from(p.x), f64::from(p.y))),
            cohort: p.cohort.into(),
            source: format!("labelled:{}", p.kind),
            split: p.split,
            pixels: Some(pixel_hash(&tile)),
            ..CropMeta::new(path, p.label, p.scene.source.clone(), Mpp::PAPER, (side, side))
        };
        self.out.push(meta, image)
    }

    /// Figures, look-alikes and dark nuclei of an image.
    fn image(&mut self, set: &Dataset, image: &Image, split: Split) -> Result<(), LabelledError> {
        let region = set.load(image, Mpp::PAPER)?;
        let scene = &marked_scene(image, &region);
        let cohort = &image.source;
        for l in &region.labels {
            let (label, kind) = match l.kind {
                Kind::Figure => (Label::MitoticFigure, "figure"),
                Kind::Mimicker => (Label::Mimicker, "mined"),
                Kind::Other => continue,
            };
            let (x, y, subtype) =
                (l.x as f32, l.y as f32, image.labels[l.index].subtype.as_deref());
            if inside(scene, x, y, self.options.crop) {
                self.push(&Place { scene, cohort, x, y, label, kind, subtype, split })?;
            }
        }
        if image.exhaustive {
            let o = self.options;
            let frame = is_frame(image, Mpp::PAPER);
            let most = if frame { o.dark_per_frame } else { o.dark_per_patch };
            let found = dark_places(scene, o.clear, 4 * most + 40);
            let whole = |p: &&(f32, f32)| inside(scene, p.0, p.1, o.crop);
            for &(x, y) in found.iter().filter(whole).take(most) {
                let (label, kind, subtype) = (Label::Mimicker, "dark", None);
                self.push(&Place { scene, cohort, x, y, label, kind, subtype, split })?;
            }
        }
        Ok(())
    }
}

/// Writes the corpus `out` of both sides of a fold.
///
/// # Errors
/// Images that cannot be read, options out of range, or a disk that refuses.
pub fn write(
    set: &Dataset,
    fold: &RegionFold<'_>,
    out: &Path,
    options: &LabelledOptions,
) -> Result<Manifest, LabelledError> {
    let o = options;
    if !(16..=128).contains(&o.crop) || o.box_side == 0 {
        return Err(CorpusError::Invalid(format!(
            "crops of {} px with boxes of {} px: crops are 16 to 128 px, boxes positive",
            o.crop, o.box_side
        ))
        .into());
    }
    let mut notes = serde_json::Map::new();
    notes.insert("dataset".into(), set.name().into());
    notes.insert("dataset_digest".into(), set.digest().into());
    notes.insert("held_out".into(), fold.name.clone().into());
    let header =
        Header { name: "labelled".into(), builder: o.builder.clone(), preset: None, notes };
    let mut w = Writer {
        out: CorpusWriter::create(out, header, Layout::default())?,
        paths: HashSet::new(),
        options: o,
    };
    for (images, split) in [(&fold.train, Split::Train), (&fold.validation, Split::Validation)] {
        for image in images {
            w.image(set, image, split)?;
        }
    }
    Ok(w.out.finish()?)
}

/// Errors of [`write()`].
#[derive(Debug, thiserror::Error)]
pub enum LabelledError {
    /// The dataset.
    #[error(transparent)]
    Regions(#[from] RegionsError),
    /// Its folds.
    #[error(transparent)]
    Folds(#[from] FoldsError),
    /// The corpus.
    #[error(transparent)]
    Corpus(#[from] CorpusError),
}

impl Remedied for LabelledError {
    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Regions(e) => e.remedy(),
            Self::Corpus(e) => e.remedy(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::import::{Options, icpr};
    use crate::folds::{FoldManifest, Scheme};
    use crops::{Columns, Corpus};
    use std::collections::{BTreeMap, BTreeSet};

    #[test]
    fn labels_of_one_pixel_get_crops_of_their_own() {
        use crate::dataset::{Builder, GivenMpp, Label as Place, MppSource, probe};
        let dir = tempfile::tempdir().unwrap();
        let mut made = Builder::new("t", "test");
        for name in ["a", "b"] {
            let file = dir.path().join(format!("{name}.png"));
            let grey = image::Rgb([name.as_bytes()[0]; 3]);
            image::RgbImage::from_pixel(300, 300, grey).save(&file).unwrap();
            let given = Some(GivenMpp { mpp: Mpp::PAPER, source: MppSource::User });
            let mut image = probe(&file, given).unwrap().image(name, name, "made");
            image.exhaustive = true;
            let places = [100.0, 100.2, 100.3].map(|x| Place::at("mitotic_figure", x, 100.0));
            image.labels.extend(places);
            made.push(image);
        }
        let set = made.write(&dir.path().join("set")).unwrap();
        let folds = FoldManifest::of_regions(&set, Scheme::LeaveOneOut, 0).unwrap();
        let fold = folds.regions(&set.training(), 0).unwrap();
        let none = LabelledOptions { dark_per_frame: 0, dark_per_patch: 0, ..Default::default() };
        let out = dir.path().join("crops");
        assert_eq!(write(&set, &fold, &out, &none).unwrap().counts.crops, 6);
        let corpus = Corpus::open(&out).unwrap();
        let crops = corpus.crops(Columns::Meta).unwrap();
        let paths: BTreeSet<String> = crops.map(|c| c.unwrap().meta.path).collect();
        assert!(paths.contains("a_figure_100_100.png"), "{paths:?}");
        assert!(paths.contains("a_figure_100_100_3.png"), "{paths:?}");
    }

    #[test]
    fn writes_figures_and_mimickers_of_disjoint_slides() {
        let Some(data) = testkit::data("icpr2012") else { return };
        let dir = tempfile::tempdir().unwrap();
        let set = icpr(&data, &Options::default()).unwrap().dataset;
        let set = set.write(&dir.path().join("set")).unwrap();
        let folds = FoldManifest::of_regions(&set, Scheme::LeaveOneOut, 0).unwrap();
        let fold = folds.regions(&set.training(), folds.number("A02").unwrap()).unwrap();
        let out = dir.path().join("corpus");
        let refuse = LabelledOptions { crop: 200, ..Default::default() };
        assert!(write(&set, &fold, &out, &refuse).unwrap_err().to_string().contains("200 px"));
        let manifest = write(&set, &fold, &out, &LabelledOptions::default()).unwrap();
        assert!(manifest.counts.labels["mitotic_figure"] > 80, "{:?}", manifest.counts);
        assert!(manifest.counts.labels["mimicker"] > 900, "{:?}", manifest.counts);
        // Listed places alone, of two frames.
        let none = LabelledOptions { dark_per_frame: 0, dark_per_patch: 0, ..Default::default() };
        let few = RegionFold { train: fold.train[..2].to_vec(), validation: vec![], ..fold };
        let listed = write(&set, &few, &dir.path().join("listed"), &none).unwrap().counts;
        let labels: usize = few.train.iter().map(|image| image.labels.len()).sum();
        assert!(listed.crops > 0 && listed.crops as usize <= labels, "{listed:?}, {labels}");
        let mut sides: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
        for crop in Corpus::open(&out).unwrap().crops(Columns::All).unwrap() {
            let crop = crop.unwrap();
            assert_eq!(crop.decode().unwrap().width, 64);
            sides.entry(crop.meta.slide).or_default().insert(crop.meta.split.name());
        }
        assert!(sides.values().all(|s| s.len() == 1), "a slide on both sides");
        assert_eq!(sides["A02"], BTreeSet::from(["validation"]));
        assert_eq!(sides["A00"], BTreeSet::from(["train"]));
    }
}
