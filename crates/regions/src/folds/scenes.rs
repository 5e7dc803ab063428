//! A fold of a regions dataset in memory, in the forms that training draws samples from.

use super::RegionFold;
use crate::dataset::{Dataset, Image, Kind, Region, RegionsError, Result};
use crate::scene::{Mark, MarkKind, SampledPlace, Scene, fill_black_edges};
use base::digest::hex;
use mitosis::{Mpp, RgbTile};
use rayon::prelude::*;
use sha2::{Digest, Sha256};

/// Images whose shorter side is below this many working pixels are patches, not frames.
const FRAME: usize = 256;
/// Side of a patch cut around a figure, working pixels.
const PATCH: usize = 128;
/// Half of the side of a figure without a box, um.
const HALF_UM: f64 = 6.25;

/// Exhaustively labelled frames, and look-alikes.
#[derive(Clone, Debug, Default)]
pub struct Frames {
    /// The frames.
    pub scenes: Vec<Scene>,
    /// Look-alikes on them.
    pub lookalikes: Vec<SampledPlace>,
    /// Those of all other images, each in the middle of a square; the squares have one size.
    pub other_lookalikes: Vec<RgbTile>,
}

/// Images of a collection that have no label.
#[derive(Clone, Debug)]
pub struct UnlabelledScenes {
    /// Name of the collection.
    pub collection: String,
    /// Its images.
    pub scenes: Vec<Scene>,
}

/// Both sides of a fold; of the held-out side the frames.
#[derive(Clone, Debug)]
pub struct FoldScenes {
    /// To train on.
    pub frames: Frames,
    /// Held out.
    pub validation: Vec<Scene>,
    /// Look-alikes labelled on them.
    pub validation_lookalikes: Vec<SampledPlace>,
    /// Patches around figures of all other images. Apart from the figure, nothing is known of them.
    pub patches: Vec<Scene>,
    /// Those of them whose figures are all labelled.
    pub exhaustive_patches: Vec<Scene>,
    /// Images without a label. A figure may occur.
    pub unlabelled: Vec<UnlabelledScenes>,
    /// SHA-256 over the digests and labels of the training images.
    pub digest: String,
}

/// Whether an image is a frame at `mpp`: labelled exhaustively and large enough to detect on.
#[must_use]
pub fn is_frame(image: &Image, mpp: Mpp) -> bool {
    let (fx, fy) = image.scale(mpp);
    let side = (f64::from(image.width) * fx).min(f64::from(image.height) * fy);
    image.exhaustive && side + 1e-6 >= FRAME as f64
}

/// Bytes of pixels that [`FoldScenes::load`] would hold for these images.
#[must_use]
pub fn bytes_in_memory<'a>(images: impl IntoIterator<Item = &'a Image>, mpp: Mpp) -> u64 {
    let bytes = |i: &Image| {
        let (fx, fy) = i.scale(mpp);
        3.0 * f64::from(i.width) * fx * f64::from(i.height) * fy
    };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an estimate")]
    let sum = images.into_iter().map(bytes).sum::<f64>() as u64;
    sum
}

enum Loaded {
    Frame(Scene, Vec<(f32, f32)>),
    Patches { figures: Vec<Scene>, mimickers: Vec<RgbTile>, exhaustive: bool },
    Unlabelled(String, Scene),
}

impl FoldScenes {
    /// Reads the images of a fold at `mpp`.
    ///
    /// # Errors
    /// [`RegionsError`]: an image that cannot be read, or no exhaustively labelled frame to train on.
    pub fn load(set: &Dataset, fold: &RegionFold<'_>, mpp: Mpp) -> Result<Self> {
        let read = |image: &&Image| Ok(sort(image, set.load(image, mpp)?));
        let train: Vec<Loaded> = fold.train.par_iter().map(read).collect::<Result<_>>()?;
        let validation = fold
            .validation
            .par_iter()
            .filter(|i| is_frame(i, mpp))
            .map(|i| {
                let region = set.load(i, mpp)?;
                Ok((marked_scene(i, &region), label_centres(&region, Kind::Mimicker)))
            })
            .collect::<Result<Vec<_>>>()?;
        let (validation, lookalikes): (Vec<Scene>, Vec<_>) = validation.into_iter().unzip();
        let numbered = lookalikes.into_iter().enumerate();
        let placed = |(scene, l): (usize, Vec<(f32, f32)>)| {
            l.into_iter().map(move |(x, y)| SampledPlace { scene, x, y })
        };
        let validation_lookalikes = numbered.flat_map(placed).collect();
        let mut hash = Sha256::new();
        for image in &fold.train {
            hash.update(image.sha256.as_bytes());
            hash.update(serde_json::to_vec(&(&image.labels, &image.ignore)).unwrap_or_default());
        }
        let mut frames = Frames::default();
        let (mut patches, mut full) = (vec![], vec![]);
        let mut loose: Vec<RgbTile> = vec![];
        let mut unlabelled: Vec<UnlabelledScenes> = vec![];
        for loaded in train {
            match loaded {
                Loaded::Frame(scene, mimickers) => {
                    let at = frames.scenes.len();
                    let placed = |(x, y)| SampledPlace { scene: at, x, y };
                    frames.lookalikes.extend(mimickers.into_iter().map(placed));
                    frames.scenes.push(scene);
                }
                Loaded::Patches { figures, mimickers, exhaustive } => {
                    if exhaustive {
                        full.extend(figures.iter().cloned());
                    }
                    patches.extend(figures);
                    loose.extend(mimickers);
                }
                Loaded::Unlabelled(name, scene) => {
                    match unlabelled.iter_mut().find(|u| u.collection == name) {
                        Some(u) => u.scenes.push(scene),
                        None => unlabelled
                            .push(UnlabelledScenes { collection: name, scenes: vec![scene] }),
                    }
                }
            }
        }
        if frames.scenes.is_empty() {
            return Err(RegionsError::Invalid(format!(
                "fold {}: no exhaustively labelled image of at least {FRAME} px at {mpp} to train on",
                fold.name
            )));
        }
        // They are shown in mosaics of one another, which need one size.
        let side = loose.iter().map(|t| t.width.min(t.height)).min().unwrap_or(0);
        let square = |t: RgbTile| {
            let (x, y) = (t.width as f32 / 2.0, t.height as f32 / 2.0);
            plain(t).cut(x, y, side)
        };
        frames.other_lookalikes = loose.into_iter().map(square).collect();
        Ok(Self {
            frames,
            validation,
            validation_lookalikes,
            patches: uniform(patches),
            exhaustive_patches: uniform(full),
            unlabelled,
            digest: hex(&hash.finalize()),
        })
    }
}

fn plain(image: RgbTile) -> Scene {
    let (name, source) = (String::new(), String::new());
    Scene { name, source, image, marks: vec![], partial: false }
}

/// A region with its marks.
pub(crate) fn marked_scene(image: &Image, region: &Region) -> Scene {
    let half = (HALF_UM / region.mpp.get()) as f32;
    let figures = region.labels.iter().filter(|l| l.kind == Kind::Figure).map(|l| Mark {
        x: l.x as f32,
        y: l.y as f32,
        half: l.bbox.map_or(half, |b| ((b.x1 - b.x0).max(b.y1 - b.y0) / 2.0) as f32),
        kind: MarkKind::Figure,
    });
    let ignored = region.ignore.iter().map(|a| Mark {
        x: ((a.x0 + a.x1) / 2.0) as f32,
        y: ((a.y0 + a.y1) / 2.0) as f32,
        half: ((a.x1 - a.x0).max(a.y1 - a.y0) / 2.0) as f32,
        kind: MarkKind::Ignore,
    });
    Scene {
        name: image.name.clone(),
        source: image.slide.clone(),
        image: region.tile.clone(),
        marks: figures.chain(ignored).collect(),
        partial: !image.exhaustive,
    }
}

/// Centres of the labels of one kind, working pixels.
fn label_centres(region: &Region, kind: Kind) -> Vec<(f32, f32)> {
    let labels = region.labels.iter().filter(|l| l.kind == kind);
    labels.map(|l| (l.x as f32, l.y as f32)).collect()
}

/// What an image can teach.
fn sort(image: &Image, region: Region) -> Loaded {
    let figures = label_centres(&region, Kind::Figure);
    let mimickers = label_centres(&region, Kind::Mimicker);
    let whole = marked_scene(image, &region);
    if is_frame(image, region.mpp) {
        return Loaded::Frame(whole, mimickers);
    }
    if figures.is_empty() && mimickers.is_empty() {
        return Loaded::Unlabelled(image.source.clone(), whole);
    }
    let mut whole = whole;
    fill_black_edges(&mut whole.image);
    let side = PATCH.min(whole.image.width).min(whole.image.height);
    Loaded::Patches {
        figures: figures.iter().map(|&(x, y)| around(&whole, x, y, side)).collect(),
        mimickers: mimickers.iter().map(|&(x, y)| whole.cut(x, y, side)).collect(),
        exhaustive: image.exhaustive,
    }
}

/// The square around a figure with its marks.
fn around(whole: &Scene, x: f32, y: f32, side: usize) -> Scene {
    let corner = |c: f32| (c - side as f32 / 2.0).round();
    let (x0, y0) = (corner(x), corner(y));
    let marks = whole.marks.iter().map(|m| Mark { x: m.x - x0, y: m.y - y0, ..*m });
    Scene {
        name: format!("{} at {x:.0}, {y:.0}", whole.name),
        source: whole.source.clone(),
        image: whole.cut(x, y, side),
        marks: marks.collect(),
        partial: whole.partial,
    }
}

/// Cuts all to the smallest side, around their middle.
fn uniform(list: Vec<Scene>) -> Vec<Scene> {
    let side = list.iter().map(|s| s.image.width).min().unwrap_or(0);
    let cut = |s: Scene| {
        let middle = s.image.width as f32 / 2.0;
        if s.image.width == side { s } else { around(&s, middle, middle, side) }
    };
    list.into_iter().map(cut).collect()
}
