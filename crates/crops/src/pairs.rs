//! Batches of view pairs for pretraining: labelled crops by number, in an order fixed by seed and
//! epoch, decoded and augmented on all cores.
//!
//! Sample `i` of step `s` depends on seed, `s` and `i` alone: not on the number of workers, on how a
//! step is cut into micro-batches, or on the rank that draws it.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use rand::Rng;
use rand::seq::SliceRandom;
use rayon::prelude::*;

use crate::error::{CorpusError, Result};
use crate::reader::Corpus;
use crate::schema::{CropBox, CropMeta, Label, Split};
use crate::shard::Columns;
use pixels::sample_rng;
use pixels::view::{Placement, Views, cells};

/// One crop: its encoded image, a slice of the mapped shard, and what the losses need.
#[derive(Clone, Debug)]
struct Item {
    image: Bytes,
    label: Label,
    bbox: Option<CropBox>,
}

/// Crops of one corpus, by number.
#[derive(Clone, Debug)]
pub struct CropSet {
    items: Vec<Item>,
    /// The corpus digest.
    pub digest: String,
    /// Slides of the training crops.
    pub slides: BTreeSet<String>,
    /// Their patients, where known.
    pub patients: BTreeSet<String>,
}

impl CropSet {
    /// The training crops of a corpus: splits `train` and `unassigned`.
    ///
    /// # Errors
    /// A corpus that cannot be read, holds test crops, or no training crop; with `labelled`, a
    /// training crop without a label, or a figure without a box.
    pub fn training(dir: &Path, labelled: bool) -> Result<Self> {
        let refuse = |crop: CropMeta, reason: &str| {
            Err(CorpusError::Crop { crop: crop.path, reason: reason.into() })
        };
        let corpus = Corpus::open(dir)?;
        let (mut items, mut slides, mut patients) = (vec![], BTreeSet::new(), BTreeSet::new());
        for crop in corpus.crops(Columns::All)? {
            let crop = crop?;
            match crop.meta.split {
                Split::Validation => continue,
                Split::Test => {
                    return refuse(crop.meta, "is test data; take it out before training");
                }
                Split::Train | Split::Unassigned => {}
            }
            if labelled && crop.meta.label == Label::Unlabeled {
                return refuse(crop.meta, "has no label, which this objective contrasts by");
            }
            if labelled && crop.meta.label == Label::MitoticFigure && crop.meta.bbox.is_none() {
                return refuse(crop.meta, "is a figure without a box, which labels the tokens");
            }
            let (label, bbox) = (crop.meta.label, crop.meta.bbox);
            items.push(Item { image: crop.image, label, bbox });
            patients.extend(crop.meta.patient);
            slides.insert(crop.meta.slide);
        }
        if items.is_empty() {
            let reason = format!("{} holds no training crop", dir.display());
            return Err(CorpusError::Invalid(reason));
        }
        Ok(Self { items, digest: corpus.manifest().digest.clone(), slides, patients })
    }

    /// Number of crops.
    #[must_use]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// How many figures and how many others there are.
    #[must_use]
    pub fn classes(&self) -> [usize; 2] {
        let figures = self.items.iter().filter(|i| i.label == Label::MitoticFigure).count();
        [figures, self.items.len() - figures]
    }

    /// Decodes crop `i`.
    ///
    /// # Errors
    /// When its bytes are not an image.
    pub fn decode(&self, i: usize) -> Result<mitosis::RgbTile> {
        slide::read_picture(&self.items[i].image)
            .map_err(|e| CorpusError::Crop { crop: format!("number {i}"), reason: e.to_string() })
    }
}

/// View pairs of part of a step, sample by sample, first view first.
#[derive(Clone, Debug, PartialEq)]
pub struct PairBatch {
    /// Samples, n.
    pub n: usize,
    /// `[n, 2, S, S, 3]`.
    pub pixels: Vec<u8>,
    /// `[n]`: 1 mitotic figure, 0 mimicker, -1 no label.
    pub labels: Vec<i64>,
    /// `[n, 2, T]`: 1 where the cell is mitotic.
    pub cells: Vec<u8>,
    /// `[n, 2, T]`: masking noise in [0, 1).
    pub noise: Vec<f32>,
}

/// Draws batches of view pairs.
pub struct PairLoader {
    set: CropSet,
    views: Views,
    size: usize,
    patch: usize,
    seed: u64,
    batch: usize,
    order: Mutex<(u64, Arc<Vec<u32>>)>,
    pool: Option<rayon::ThreadPool>,
}

/// The part of a batch that one sample fills.
struct PairRow<'a> {
    /// Of both views, `[2, S, S, 3]`.
    pixels: &'a mut [u8],
    label: &'a mut i64,
    /// Whether a token of a view is mitotic, `[2, tokens]`.
    cells: &'a mut [u8],
    /// As `cells`.
    noise: &'a mut [f32],
}

impl PairLoader {
    /// Views of side `size` with cells of `patch` pixels; `batch` samples per step. `workers` = 0
    /// shares the process's pool.
    ///
    /// # Errors
    /// When a step needs more crops than there are, or the threads cannot be had.
    pub fn new(
        set: CropSet,
        views: Views,
        (size, patch): (usize, usize),
        seed: u64,
        batch: usize,
        workers: usize,
    ) -> Result<Self> {
        if batch == 0 || batch > set.len() {
            return Err(CorpusError::Invalid(format!(
                "a step of {batch} crops out of {}; lower the batch",
                set.len()
            )));
        }
        let pool = (workers > 0)
            .then(|| rayon::ThreadPoolBuilder::new().num_threads(workers).build())
            .transpose()
            .map_err(|e| CorpusError::Invalid(format!("{workers} loader threads: {e}")))?;
        let order = Mutex::new((u64::MAX, Arc::new(vec![])));
        Ok(Self { set, views, size, patch, seed, batch, order, pool })
    }

    /// The crops.
    #[must_use]
    pub fn set(&self) -> &CropSet {
        &self.set
    }

    /// Whole steps per epoch; the rest of an epoch's order is left out, another rest each time.
    #[must_use]
    pub fn steps_per_epoch(&self) -> usize {
        self.set.len() / self.batch
    }

    fn epoch_order(&self, epoch: u64) -> Arc<Vec<u32>> {
        let mut held = self.order.lock().expect("no panic while held");
        if held.0 != epoch {
            let n = u32::try_from(self.set.len()).unwrap_or(u32::MAX);
            let mut order: Vec<u32> = (0..n).collect();
            order.shuffle(&mut sample_rng(self.seed ^ 0x0de5, epoch));
            *held = (epoch, Arc::new(order));
        }
        held.1.clone()
    }

    /// Samples `part` of step `step`.
    ///
    /// # Errors
    /// A crop that is not an image.
    pub fn draw(&self, step: usize, part: Range<usize>) -> Result<PairBatch> {
        let per_epoch = self.steps_per_epoch();
        let order = self.epoch_order((step / per_epoch) as u64);
        let from = (step % per_epoch) * self.batch;
        let (n, pixels, tiles) = (part.len(), 3 * self.size * self.size, {
            let grid = self.size / self.patch;
            grid * grid
        });
        let mut out = PairBatch {
            n,
            pixels: vec![0; n * 2 * pixels],
            labels: vec![0; n],
            cells: vec![0; n * 2 * tiles],
            noise: vec![0.0; n * 2 * tiles],
        };
        let mut work = || {
            let rows = out
                .pixels
                .par_chunks_mut(2 * pixels)
                .zip(out.labels.par_iter_mut())
                .zip(out.cells.par_chunks_mut(2 * tiles))
                .zip(out.noise.par_chunks_mut(2 * tiles))
                .enumerate();
            rows.try_for_each(|(i, (((pixels, label), cells), noise))| {
                let sample = part.start + i;
                let crop = order[from + sample] as usize;
                let index = (step * self.batch + sample) as u64;
                self.sample(crop, index, PairRow { pixels, label, cells, noise })
            })
        };
        match &self.pool {
            Some(pool) => pool.install(work),
            None => work(),
        }?;
        Ok(out)
    }

    fn sample(
        &self,
        crop: usize,
        index: u64,
        PairRow { pixels, label, cells: mitotic, noise }: PairRow<'_>,
    ) -> Result<()> {
        let tile = self.set.decode(crop)?;
        let item = &self.set.items[crop];
        let mut rng = sample_rng(self.seed, index);
        let grid = self.size / self.patch;
        let (area, tiles) = (pixels.len() / 2, mitotic.len() / 2);
        let views = self.views.draw(tile.width, tile.height, self.size, &mut rng);
        for (i, view) in views.iter().enumerate() {
            pixels[i * area..][..area].copy_from_slice(&view.render(&tile, self.size).data);
            // All tokens of a mimicker are non-mitotic.
            let b = item.bbox.filter(|_| item.label == Label::MitoticFigure);
            let b = b.and_then(|b| view.placement.map_box(b, self.size));
            mitotic[i * tiles..][..tiles].copy_from_slice(&cells(b, self.patch, grid));
        }
        *label = match item.label {
            Label::MitoticFigure => 1,
            Label::Mimicker => 0,
            Label::Unlabeled => -1,
        };
        rng.fill(noise);
        Ok(())
    }

    /// Plain views for figures: crops `0..n`, whole and unchanged, `[n, S, S, 3]`.
    ///
    /// # Errors
    /// A crop that is not an image.
    pub fn plain(&self, n: usize) -> Result<Vec<u8>> {
        let mut out = vec![];
        for i in 0..n.min(self.set.len()) {
            let tile = self.set.decode(i)?;
            let whole = Placement::whole(tile.width, tile.height);
            out.extend(whole.apply(&tile, self.size).data);
        }
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoding::Encoding;
    use crate::manifest::Header;
    use crate::writer::{CorpusWriter, Layout};
    use mitosis::{Mpp, RgbTile};

    fn views() -> Views {
        let text = include_str!("../tests/golden/views_preset.json");
        serde_json::from_str(text).unwrap()
    }

    /// Crops of 32 px, one colour each; every third is a figure.
    fn corpus(dir: &Path, n: usize, change: impl Fn(usize, &mut CropMeta)) {
        let layout = Layout { rows_per_group: 4, crops_per_shard: 10 };
        let mut w = CorpusWriter::create(dir, Header::default(), layout).unwrap();
        for i in 0..n {
            let tile = RgbTile::filled(32, 32, [i as u8 * 7, 90, 200]);
            let mut meta = CropMeta {
                bbox: Some(CropBox::centred(32, 16)),
                cohort: "drawn".into(),
                source: "drawn".into(),
                split: Split::Train,
                ..CropMeta::new(
                    format!("{i}.png"),
                    if i % 3 == 0 { Label::MitoticFigure } else { Label::Mimicker },
                    format!("s{}", i % 5),
                    Mpp::PAPER,
                    (32, 32),
                )
            };
            change(i, &mut meta);
            w.push(meta, Encoding::Png.encode(&tile).unwrap()).unwrap();
        }
        w.finish().unwrap();
    }

    fn loader(dir: &Path, workers: usize) -> PairLoader {
        let set = CropSet::training(dir, true).unwrap();
        PairLoader::new(set, views(), (48, 16), 3, 8, workers).unwrap()
    }

    #[test]
    fn samples_do_not_depend_on_workers_parts_or_start() {
        let dir = tempfile::tempdir().unwrap();
        corpus(dir.path(), 27, |_, _| {});
        let (one, four) = (loader(dir.path(), 1), loader(dir.path(), 4));
        assert_eq!(one.steps_per_epoch(), 3);
        let streamed: Vec<_> = (0..5).map(|step| one.draw(step, 0..8).unwrap()).collect();
        for (step, whole) in streamed.iter().enumerate() {
            assert_eq!(*whole, four.draw(step, 0..8).unwrap());
            let (a, b) = (four.draw(step, 0..3).unwrap(), four.draw(step, 3..8).unwrap());
            assert_eq!(whole.labels, [a.labels, b.labels].concat());
            assert_eq!(whole.pixels, [a.pixels, b.pixels].concat());
            assert_eq!(whole.noise, [a.noise, b.noise].concat());
            assert_eq!(whole.cells, [a.cells, b.cells].concat());
        }
        // Epochs differ in order; one epoch shows a crop once.
        assert_ne!(streamed[0].labels, streamed[3].labels);
        let first: Vec<u32> = one.epoch_order(0)[..24].to_vec();
        assert_eq!(first.iter().collect::<BTreeSet<_>>().len(), 24);
    }

    #[test]
    fn only_figures_have_mitotic_cells() {
        let dir = tempfile::tempdir().unwrap();
        corpus(dir.path(), 24, |_, _| {});
        let batch = loader(dir.path(), 2).draw(0, 0..8).unwrap();
        assert_eq!((batch.cells.len(), batch.noise.len()), (8 * 2 * 9, 8 * 2 * 9));
        let mut figures = 0;
        for (label, cells) in batch.labels.iter().zip(batch.cells.chunks(18)) {
            let any = cells.contains(&1);
            assert!(!any || *label == 1);
            figures += usize::from(any);
        }
        assert!(figures > 0, "no figure kept its box");
        assert!(batch.noise.iter().all(|v| (0.0..1.0).contains(v)));
    }

    #[test]
    fn refuses_test_crops_missing_labels_and_boxes() {
        let refused = |change: &dyn Fn(usize, &mut CropMeta)| {
            let dir = tempfile::tempdir().unwrap();
            corpus(dir.path(), 9, change);
            CropSet::training(dir.path(), true).unwrap_err().to_string()
        };
        assert!(
            refused(&|i, m| if i == 4 {
                m.split = Split::Test
            })
            .contains("is test data; take it out before training")
        );
        let taken_out = tempfile::tempdir().unwrap();
        corpus(taken_out.path(), 8, |_, _| {});
        CropSet::training(taken_out.path(), true).unwrap();
        assert!(
            refused(&|i, m| if i == 4 {
                m.label = Label::Unlabeled
            })
            .contains("no label")
        );
        assert!(
            refused(&|i, m| if i == 3 {
                m.bbox = None
            })
            .contains("without a box")
        );
        assert!(refused(&|_, m| m.split = Split::Validation).contains("no training crop"));
        let dir = tempfile::tempdir().unwrap();
        corpus(dir.path(), 9, |i, m| {
            if i > 4 {
                m.split = Split::Validation
            }
        });
        let set = CropSet::training(dir.path(), true).unwrap();
        assert_eq!((set.len(), set.classes()), (5, [2, 3]));
        let too_many = PairLoader::new(set, views(), (48, 16), 1, 6, 1);
        assert!(too_many.err().unwrap().to_string().contains("lower the batch"));
        let set = CropSet::training(dir.path(), true).unwrap();
        assert!(PairLoader::new(set, views(), (48, 16), 1, 5, 1).is_ok());
    }

    #[test]
    fn a_broken_crop_stops_the_loop_with_its_name() {
        let dir = tempfile::tempdir().unwrap();
        let mut w = CorpusWriter::create(dir.path(), Header::default(), Layout::default()).unwrap();
        let meta = |i: usize| CropMeta {
            cohort: "drawn".into(),
            source: "drawn".into(),
            split: Split::Train,
            ..CropMeta::new(format!("{i}.png"), Label::Unlabeled, "s", Mpp::PAPER, (8, 8))
        };
        for i in 0..8 {
            w.push(meta(i), vec![1, 2, 3]).unwrap();
        }
        w.finish().unwrap();
        let set = CropSet::training(dir.path(), false).unwrap();
        let l = PairLoader::new(set, views(), (48, 16), 3, 8, 1).unwrap();
        assert!(l.draw(0, 0..8).unwrap_err().to_string().contains("number"));
    }
}
