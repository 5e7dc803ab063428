//! Items of both kinds of datasets.

use crate::dataset::{Dataset, Kind, RegionsError};
use crate::scene::{CropError, Mark, MarkKind, Scene, dark_places};
use crate::task::Crops;
use base::remedy::{Remedied, Remedy};
use crops::{Columns, Corpus, CorpusError, Label};
use mitosis::RgbTile;

/// Crops of a class that one source is judged by, at most.
const MOST: usize = 600;
/// Side of crops cut from regions, px.
const SIDE: usize = 64;

/// One labelled crop.
#[derive(Clone, Debug)]
pub struct ShortcutItem {
    /// Its pixels as stored, not resampled.
    pub tile: RgbTile,
    /// Whether a figure is at its centre.
    pub figure: bool,
    /// Where it comes from: sources are judged each by itself.
    pub source: String,
    /// Slide, on one side of every fold.
    pub slide: String,
    /// Centre on its image, as shares of width and height.
    pub place: Option<(f64, f64)>,
    /// Size as stored.
    pub bytes: Option<u64>,
}

/// Why a dataset cannot be judged.
#[derive(Debug, thiserror::Error)]
pub enum ShortcutError {
    /// Crops.
    #[error(transparent)]
    Corpus(#[from] CorpusError),
    /// Regions.
    #[error(transparent)]
    Regions(#[from] RegionsError),
    /// Images.
    #[error(transparent)]
    Crop(#[from] CropError),
}

/// Labelled crops of a corpus, thinned evenly to a few hundred of each class and source.
///
/// # Errors
/// [`ShortcutError`]: the corpus cannot be read.
pub fn of_corpus(corpus: &Corpus) -> Result<Vec<ShortcutItem>, ShortcutError> {
    let mut items = vec![];
    for crop in corpus.crops(Columns::All)? {
        let crop = crop?;
        let figure = match crop.meta.label {
            Label::MitoticFigure => true,
            Label::Mimicker => false,
            Label::Unlabeled => continue,
        };
        items.push(ShortcutItem {
            tile: crop.decode()?,
            figure,
            source: crop.meta.source.clone(),
            slide: crop.meta.slide.clone(),
            place: None,
            bytes: Some(crop.image.len() as u64),
        });
    }
    Ok(thinned(items))
}

/// Figures of a regions dataset against its mimickers, and against dark nuclei away from every
/// label where an image is labelled exhaustively.
///
/// # Errors
/// [`ShortcutError`]: an image cannot be read.
pub fn of_regions(set: &Dataset) -> Result<Vec<ShortcutItem>, ShortcutError> {
    let mut items = vec![];
    for image in set.images() {
        // At its own resolution: resampling would blur what is looked for.
        let region = set.load(image, image.mpp.x)?;
        let marks = region.labels.iter().map(|l| Mark {
            x: l.x as f32,
            y: l.y as f32,
            half: SIDE as f32 / 4.0,
            kind: MarkKind::Figure,
        });
        let scene = Scene {
            name: image.name.clone(),
            source: image.source.clone(),
            marks: marks.collect(),
            image: region.tile,
            partial: false,
        };
        let (w, h) = (scene.image.width as f64, scene.image.height as f64);
        let item = |x: f32, y: f32, figure| ShortcutItem {
            tile: scene.cut(x, y, SIDE),
            figure,
            source: image.source.clone(),
            slide: image.slide.clone(),
            place: Some((f64::from(x) / w, f64::from(y) / h)),
            bytes: None,
        };
        let mut figures = 0;
        for l in &region.labels {
            if l.kind == Kind::Other {
                continue;
            }
            let figure = l.kind == Kind::Figure;
            figures += usize::from(figure);
            items.push(item(l.x as f32, l.y as f32, figure));
        }
        if image.exhaustive {
            let dark = dark_places(&scene, SIDE as f32, 4 * figures.max(5));
            items.extend(dark.into_iter().map(|(x, y)| item(x, y, false)));
        }
    }
    Ok(thinned(items))
}

/// Some crops of a task, thinned evenly to a few hundred of each class, with their classes; `figure`
/// has no meaning for them.
#[must_use]
pub fn of_task(crops: &Crops, members: &[usize]) -> (Vec<ShortcutItem>, Vec<usize>) {
    let (mut items, mut of) = (vec![], vec![]);
    for class in 0..crops.classes().len() {
        let own: Vec<usize> =
            members.iter().copied().filter(|&i| crops.items()[i].class == class).collect();
        for &i in own.iter().step_by(own.len().div_ceil(MOST / 2).max(1)) {
            let item = &crops.items()[i];
            items.push(ShortcutItem {
                tile: crops.images()[i].clone(),
                figure: false,
                source: item.domain.clone(),
                slide: item.source.clone(),
                place: None,
                bytes: None,
            });
            of.push(class);
        }
    }
    (items, of)
}

fn thinned(items: Vec<ShortcutItem>) -> Vec<ShortcutItem> {
    use std::collections::BTreeMap;
    let mut by: BTreeMap<(String, bool), Vec<ShortcutItem>> = BTreeMap::new();
    for item in items {
        by.entry((item.source.clone(), item.figure)).or_default().push(item);
    }
    by.into_values()
        .flat_map(|list| {
            let step = list.len().div_ceil(MOST).max(1);
            list.into_iter().step_by(step)
        })
        .collect()
}

impl Remedied for ShortcutError {
    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Corpus(e) => e.remedy(),
            Self::Regions(e) => e.remedy(),
            _ => None,
        }
    }
}
