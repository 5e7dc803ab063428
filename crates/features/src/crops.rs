//! Features of the crops of a dataset, and of images.

use crate::encoder::{Frozen, Grid};
use crate::error::FeatureError;
use crate::files::{self, images};
use crate::pipe::{self, Batch};
use crate::row::Row;
use crate::table::{self, Table};
use base::digest::{sha256, sha256_file};
use base::progress::Listener;
use crops::{Columns, Corpus, Label, Split};
use mitosis::{Mpp, Rect, RgbTile};
use rayon::prelude::*;
use regions::task::{Crops, Task, TestSet, TrainingSet};
use regions::{Dataset, Kind, Part};
use std::path::{Path, PathBuf};

/// Larger images are not crops.
const LARGEST: usize = 8192;

/// What is embedded.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// A corpus of crops: every crop, whole.
    Corpus(PathBuf),
    /// A regions dataset: around every label, at the encoder's resolution.
    Regions(PathBuf),
    /// AMi-Br's folder: every patch, whole.
    Ami(PathBuf),
    /// A folder of images, or one image: every image, whole. The first folder below is the class.
    Images(PathBuf),
}

impl Source {
    /// What a path contains, by its files.
    #[must_use]
    pub fn from_path(path: &Path) -> Self {
        let own = path.to_owned();
        let labels = |dir: &Path| dir.join("labels.csv").is_file() && dir.join("Atypical").is_dir();
        if path.join("manifest.json").is_file() {
            Self::Corpus(own)
        } else if Dataset::is_dataset(path) {
            Self::Regions(own)
        } else if labels(path) || labels(&path.join("ami_br")) {
            Self::Ami(own)
        } else {
            Self::Images(own)
        }
    }

    /// Its folder or file.
    #[must_use]
    pub fn path(&self) -> &Path {
        let (Self::Corpus(p) | Self::Regions(p) | Self::Ami(p) | Self::Images(p)) = self;
        p
    }
}

/// Features, and what could not be read.
#[derive(Debug)]
pub struct Embedded {
    /// One row per crop that could be read.
    pub table: Table,
    /// Why the others could not.
    pub failed: Vec<String>,
}

/// A crop that is still to be read.
struct Lazy<'a> {
    row: Row,
    read: Box<dyn FnOnce() -> Result<RgbTile, String> + Send + 'a>,
}

/// Size of crops that are cut out of regions; as the encoder has it where nothing is given.
#[derive(Clone, Copy, Debug, Default)]
pub struct CropSize {
    /// um/px.
    pub mpp: Option<Mpp>,
    /// Side, px.
    pub side: Option<usize>,
}

/// The crops of `source` without their pixels: whose they are, and at which scale they are cut out of regions; all
/// others are taken whole.
///
/// # Errors
/// [`FeatureError`]: the dataset does not open, or no such scale.
pub fn identity(
    encoder: &Frozen,
    source: &Source,
    CropSize { mpp, side }: CropSize,
) -> Result<table::Crops, FeatureError> {
    let (grid, digest) = match source {
        Source::Corpus(dir) => (None, Corpus::open(dir)?.manifest().digest.clone()),
        Source::Regions(dir) => {
            let grid = Grid::choose(encoder, mpp, side)?;
            (Some(grid), Dataset::open(dir)?.digest().to_owned())
        }
        Source::Ami(dir) | Source::Images(dir) => (None, of_images(dir)?),
    };
    Ok(table::Crops { grid, digest })
}

/// Digest of the names of images below a folder, and of their contents.
fn of_images(dir: &Path) -> Result<String, FeatureError> {
    let digest = |path: &PathBuf| {
        let below = path.strip_prefix(dir).unwrap_or(path).to_string_lossy().into_owned();
        // A file that cannot be read is listed where it is embedded.
        let content = sha256_file(path).map(|(_, digest)| digest).unwrap_or_default();
        format!("{below}\n{content}\n")
    };
    let files = images(&[dir.to_owned()])?;
    let all: Vec<String> = files.par_iter().map(digest).collect();
    Ok(sha256(all.concat()))
}

/// Features of every crop of `source`, in its order, `batch` at a time. A single crop that cannot be
/// read stops nothing. The size is that of crops cut out of regions; all others are taken
/// whole and resized to the encoder's input. `listener` gets the crops done and their total.
///
/// # Errors
/// [`FeatureError`]: the dataset does not open, or the network stops.
pub fn embed(
    encoder: &mut Frozen,
    source: &Source,
    CropSize { mpp, side }: CropSize,
    batch: usize,
    listener: &mut dyn Listener,
) -> Result<Embedded, FeatureError> {
    match source {
        Source::Corpus(dir) => {
            let corpus = Corpus::open(dir)?;
            let crops = corpus.crops(Columns::All)?.map(|crop| {
                let crop = crop?;
                let m = &crop.meta;
                let (x, y) = m.centroid.map_or((f64::NAN, f64::NAN), |p| (p.x, p.y));
                let row = Row {
                    name: m.path.clone(),
                    slide: m.slide.clone(),
                    label: m.label.name().into(),
                    subtype: m.subtype.clone().unwrap_or_default(),
                    split: m.split.name().into(),
                    x,
                    y,
                };
                let read = move || crop.decode().map_err(|e| e.to_string());
                Ok(Lazy { row, read: Box::new(read) })
            });
            run(encoder, crops, corpus.len(), batch, listener)
        }
        Source::Regions(dir) => {
            let dataset = Dataset::open(dir)?;
            let grid = Grid::choose(encoder, mpp, side)?;
            let total = dataset.images().iter().map(|i| i.labels.len() as u64).sum();
            run(encoder, labels(&dataset, grid), total, batch, listener)
        }
        Source::Ami(dir) => {
            let (train, test) =
                (TrainingSet::open(Task::AmiBr, dir)?, TestSet::open(Task::AmiBr, dir)?);
            let parts: [(Split, &Crops); 2] = [(Split::Train, &train), (Split::Test, &test)];
            let total = parts.iter().map(|(_, p)| p.items().len() as u64).sum();
            let crops = parts.iter().flat_map(|(split, part)| patches(*split, part));
            run(encoder, crops, total, batch, listener)
        }
        Source::Images(dir) => {
            let files = images(std::slice::from_ref(dir))?;
            let total = files.len() as u64;
            let crops = files.into_iter().map(|path| {
                let row = named(dir, &path);
                let read = move || image(&path);
                Ok(Lazy { row, read: Box::new(read) })
            });
            run(encoder, crops, total, batch, listener)
        }
    }
}

fn run<'a>(
    encoder: &mut Frozen,
    crops: impl Iterator<Item = Result<Lazy<'a>, FeatureError>> + Send,
    total: u64,
    batch: usize,
    listener: &mut dyn Listener,
) -> Result<Embedded, FeatureError> {
    let mut table = Table::new(&encoder.about);
    let failed = std::sync::Mutex::new(Vec::new());
    let mut crops = crops;
    let failures = &failed;
    let batches = std::iter::from_fn(move || {
        let part: Result<Vec<Lazy<'a>>, FeatureError> = crops.by_ref().take(batch.max(1)).collect();
        match part {
            Ok(part) if part.is_empty() => None,
            Ok(part) => {
                let read: Vec<_> =
                    part.into_par_iter().map(|crop| (crop.row, (crop.read)())).collect();
                let mut good = Batch::with_capacity(read.len());
                for (row, tile) in read {
                    match tile {
                        Ok(tile) => good.push((row, tile)),
                        Err(e) => failures.lock().expect("nobody panics here").push(e),
                    }
                }
                Some(Ok(good))
            }
            Err(e) => Some(Err(e)),
        }
    });
    pipe::run(encoder, &mut table, batches, total, listener)?;
    Ok(Embedded { table, failed: failed.into_inner().expect("nobody panics here") })
}

/// Squares around every label, in the order of images.
fn labels(
    dataset: &Dataset,
    grid: Grid,
) -> impl Iterator<Item = Result<Lazy<'_>, FeatureError>> + Send {
    let Grid { mpp, side } = grid;
    dataset.images().iter().flat_map(move |image| {
        let scale = image.scale(mpp);
        let slide = match dataset.open_image(image) {
            Ok(slide) => std::sync::Arc::new(slide),
            Err(e) => return vec![Err(e.into())],
        };
        let split = match image.part {
            Part::Train => Split::Train,
            Part::Test => Split::Test,
            Part::Calibration => Split::Validation,
        };
        let crops = image.labels.iter().enumerate().map(|(i, label)| {
            let kind = match label.kind {
                Kind::Figure => Label::MitoticFigure,
                Kind::Mimicker => Label::Mimicker,
                Kind::Other => Label::Unlabeled,
            };
            let row = Row {
                label: kind.name().into(),
                subtype: label.subtype.clone().unwrap_or_else(|| label.class.clone()),
                split: split.name().into(),
                x: label.x,
                y: label.y,
                ..Row::plain(format!("{}_{i}", image.name), &image.slide)
            };
            let corner = |c: f64, s: f64| (c * s - side as f64 / 2.0).round() as i64;
            let (x, y) = (corner(label.x, scale.0), corner(label.y, scale.1));
            let slide = slide.clone();
            let read =
                move || slide.read_at(mpp, Rect::new(x, y, side, side)).map_err(|e| e.to_string());
            Ok(Lazy { row, read: Box::new(read) })
        });
        crops.collect::<Vec<_>>()
    })
}

fn patches(
    split: Split,
    part: &Crops,
) -> impl Iterator<Item = Result<Lazy<'_>, FeatureError>> + Send {
    part.items().iter().zip(part.images()).map(move |(item, image)| {
        let row = Row {
            label: Label::MitoticFigure.name().into(),
            subtype: part.classes()[item.class].clone(),
            split: split.name().into(),
            ..Row::plain(&item.file, &item.source)
        };
        Ok(Lazy { row, read: Box::new(move || Ok(image.clone())) })
    })
}

/// An image's row: its path below the folder, whose first folder is its class.
fn named(dir: &Path, path: &Path) -> Row {
    let below = path.strip_prefix(dir).unwrap_or(path);
    let below = if below.as_os_str().is_empty() { path } else { below };
    let name = below.to_string_lossy().into_owned();
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let class = below.parent().and_then(|p| p.components().next());
    let class = class.map(|c| c.as_os_str().to_string_lossy().into_owned());
    Row { subtype: class.unwrap_or_default(), ..Row::plain(name, stem) }
}

fn image(path: &Path) -> Result<RgbTile, String> {
    let tile = files::image(path)?;
    let (w, h) = (tile.width, tile.height);
    match w.max(h) > LARGEST {
        true => Err(format!(
            "{}: {w}x{h} px is too large for a crop (at most {LARGEST})",
            path.display()
        )),
        false => Ok(tile),
    }
}
