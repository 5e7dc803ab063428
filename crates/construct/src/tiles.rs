//! Tissue tiles under tumour filters: those that one keeps, and which of two keeps which.

use super::error::ConstructError;
use super::funnel::{Funnel, Seconds};
use super::part::{CropRecord, Out, draw, encoding};
use super::preset::{Preset, Tiles};
use base::digest::sha256;
use crops::Label;
use infer::{EngineOptions, ModelPackage};
use mithras::batch::state::{RESULTS_VERSION, State};
use mithras::input::{Input, InputDigest};
use mitosis::{Classifier, Level0, Point, RgbTile};
use serde::{Deserialize, Serialize};
use slide::{OpenOptions, PlannedWindow, Rect, Slide, TissueMask, WindowPlan};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Largest difference between a filter's um/px and the preset's, as a share.
const MPP_TOLERANCE: f64 = 0.1;

/// A tumour filter as it is asked for.
#[derive(Clone, Debug)]
pub struct FilterPlan {
    /// Its package.
    pub package: PathBuf,
    /// Its class that counts as tumour, if not the preset's.
    pub class: Option<String>,
}

impl FilterPlan {
    /// A filter by the folder of its package, or by the name of one in `filters`.
    #[must_use]
    pub fn find(named: &Path, filters: &Path, class: Option<String>) -> Self {
        let there = filters.join(named);
        let package = if !named.is_dir() && there.is_dir() { there } else { named.to_owned() };
        Self { package, class }
    }

    /// The class that counts.
    pub(super) fn class<'a>(&'a self, tiles: &'a Tiles) -> &'a str {
        self.class.as_deref().unwrap_or(&tiles.tumour_class)
    }

    /// The filter, on the embedded engine.
    pub(super) fn open(&self, tiles: &Tiles) -> Result<Filter, ConstructError> {
        let at = || self.package.clone();
        let package = ModelPackage::find(Some(&self.package))?;
        let takes = package.card.classifier.as_ref().map(|c| c.crop);
        if let Some(takes) = takes.filter(|&n| n != tiles.sub as usize) {
            return Err(ConstructError::FilterSize { package: at(), takes, has: tiles.sub });
        }
        let made = package.card.classifier.as_ref().map(|c| c.mpp.get());
        let used = tiles.mpp.get();
        if let Some(made) = made.filter(|m| (m / used - 1.0).abs() > MPP_TOLERANCE) {
            return Err(ConstructError::FilterMpp { package: at(), made, used });
        }
        let classifier = infer::open(&package, &EngineOptions::default())?
            .classifier
            .ok_or_else(|| ConstructError::NoFilter { package: at() })?;
        let (names, class) = (classifier.class_names(), self.class(tiles));
        let tumour = names.iter().position(|n| n == class).ok_or_else(|| {
            let (class, known) = (class.to_owned(), names.join(", "));
            ConstructError::FilterClass { package: at(), class, known }
        })?;
        Ok(Filter { name: package.card.name, classifier, tumour })
    }
}

/// A tumour filter at work.
pub struct Filter {
    name: String,
    classifier: Box<dyn Classifier>,
    /// Number of its tumour class.
    tumour: usize,
}

impl Filter {
    /// Whether every sub-patch has the tumour class as its most probable one.
    fn keeps(&mut self, patches: &[RgbTile]) -> Result<bool, ConstructError> {
        let probabilities = self.classifier.classes(patches)?;
        Ok(probabilities.iter().all(|p| mitosis::likeliest(&p.0) == self.tumour))
    }
}

/// The tiles that touch tissue.
fn on_tissue(
    slide: &Slide,
    mask: &TissueMask,
    tiles: &Tiles,
    funnel: &mut Funnel,
) -> Result<Vec<PlannedWindow>, ConstructError> {
    let side = tiles.side as usize;
    let plan = WindowPlan::new(slide, tiles.mpp, side, side, Some(mask))?;
    let (columns, rows) = plan.grid();
    funnel.grid_tiles = u64::try_from(columns * rows).unwrap_or(0);
    let found: Vec<PlannedWindow> = plan.iter().collect();
    funnel.tissue_tiles = found.len() as u64;
    Ok(found)
}

/// The number of tiles of a slide in its part, so that a later run does not search its tissue again.
const COUNT: &str = "tiles.json";
const COUNT_SCHEMA: &str = "mithras.tiles/1";

#[derive(Serialize, Deserialize)]
struct Count {
    schema: String,
    /// Digest of all that decides it, apart from the slide's file.
    config: String,
    /// The slide's file.
    input: InputDigest,
    /// Tiles that touch tissue.
    tiles: usize,
}

/// What the state of a finished part has: parts of earlier versions lack [`COUNT`].
#[derive(Default, Serialize, Deserialize)]
struct Finished {
    funnel: Funnel,
}

/// How many tiles of a slide touch tissue: counted, or as its part has it for the same file, or for one that cannot be
/// read now; `None` without either.
pub(super) fn count(input: &Input, tiles: &Tiles, folder: &Path) -> Option<usize> {
    let side = tiles.side;
    let config = sha256(format!("{} {side} {:?} {RESULTS_VERSION}", tiles.mpp.get(), input.mpp));
    let path = folder.join(COUNT);
    let now = InputDigest::from_file(&input.path).ok();
    let known = base::json::read_schema::<Count>(&path, COUNT_SCHEMA).ok();
    let same = |c: &Count| now.as_ref().is_none_or(|now| now.same_slide(&c.input));
    if let Some(known) = known.filter(|c| c.config == config && same(c)) {
        return Some(known.tiles);
    }
    let Some(tiles) = searched(input, tiles) else {
        let done = State::<Finished>::load(folder).filter(State::is_done);
        return done.and_then(|s| s.work.funnel.tissue_tiles.try_into().ok());
    };
    let count = Count { schema: COUNT_SCHEMA.into(), config, input: now?, tiles };
    // Where it cannot be written, the part cannot be either, and that is reported.
    let _ = std::fs::create_dir_all(folder).map(|()| base::json::write(&path, &count));
    Some(tiles)
}

fn searched(input: &Input, tiles: &Tiles) -> Option<usize> {
    let options = OpenOptions { mpp: input.mpp, ..OpenOptions::default() };
    let found = || -> Result<usize, ConstructError> {
        let slide = Slide::open_with(&input.path, &options)?;
        let mask = TissueMask::find(&slide)?;
        Ok(on_tissue(&slide, &mask, tiles, &mut Funnel::default())?.len())
    };
    found().ok()
}

/// The tiles that the filter keeps; all of the tissue without one.
pub(super) fn kept(
    slide: &Slide,
    mask: &TissueMask,
    tiles: &Tiles,
    filter: Option<&mut Filter>,
    funnel: &mut Funnel,
) -> Result<BTreeSet<PlannedWindow>, ConstructError> {
    let side = tiles.side as usize;
    let found = on_tissue(slide, mask, tiles, funnel)?;
    let Some(filter) = filter else {
        funnel.tumour_tiles = funnel.tissue_tiles;
        return Ok(found.into_iter().collect());
    };
    let mut kept = BTreeSet::new();
    for tile in found {
        let rect = Rect::new(tile.x, tile.y, side, side);
        let Some(pixels) = slide.read_whole_at(tiles.mpp, rect)? else {
            funnel.unread_tiles += 1;
            continue;
        };
        if filter.keeps(&sub_patches(&pixels, tiles.sub as usize))? {
            kept.insert(tile);
        }
    }
    funnel.tumour_tiles = kept.len() as u64;
    Ok(kept)
}

/// Tiles that at least one of two filters keeps, as crops whose subtype names the filter: `both`, `NAME-only`. The
/// strata of the audit of tissue selection. `share` is how many of the cohort's tiles this slide gives.
pub(super) fn sorted(
    out: &mut Out<'_>,
    preset: &Preset,
    filters: &mut [Filter],
    mask: &TissueMask,
    share: Option<usize>,
    seconds: &mut Seconds,
) -> Result<Funnel, ConstructError> {
    let tiles = preset.tiles.as_ref().ok_or(ConstructError::Part("no [tiles]"))?;
    let sample = preset.sample.as_ref().ok_or(ConstructError::Part("no [sample]"))?;
    let [first, second] = filters else {
        return Err(ConstructError::Filters { kind: preset.kind.to_string(), takes: "two" });
    };
    let mut funnel = Funnel::default();
    let start = Instant::now();
    let mut chosen = on_tissue(out.slide, mask, tiles, &mut funnel)?;
    // A share is 0 in a cohort of more slides than tiles; a preset's 0 per slide takes all.
    let most = share.or(sample.per_slide.filter(|n| *n > 0));
    draw(&mut chosen, most, &format!("{} {}", sample.seed, out.name));
    funnel.drawn_tiles = chosen.len() as u64;
    let (sx, sy) = out.slide.working_scale(tiles.mpp)?;
    let (side, half) = (tiles.side as usize, f64::from(tiles.side) / 2.0);
    let encoding = encoding(sample.jpeg_quality);
    for tile in chosen {
        let rect = Rect::new(tile.x, tile.y, side, side);
        let Some(pixels) = out.slide.read_whole_at(tiles.mpp, rect)? else {
            funnel.unread_tiles += 1;
            continue;
        };
        let patches = sub_patches(&pixels, tiles.sub as usize);
        let (a, b) = (first.keeps(&patches)?, second.keeps(&patches)?);
        funnel.tumour_tiles += u64::from(a);
        let subtype = match (a, b) {
            (true, true) => {
                funnel.both_filters += 1;
                "both".into()
            }
            (true, false) => format!("{}-only", first.name),
            (false, true) => {
                funnel.second_only += 1;
                format!("{}-only", second.name)
            }
            (false, false) => continue,
        };
        #[expect(clippy::cast_precision_loss, reason = "pixels of a slide")]
        let centre = Point::<Level0>::new((tile.x as f64 + half) * sx, (tile.y as f64 + half) * sy);
        let record = CropRecord {
            label: Label::Unlabeled,
            subtype: Some(subtype),
            detection: None,
            centre,
            bbox: None,
            mpp: tiles.mpp,
            path: format!("{}/{}_{}.{}", out.name, tile.x, tile.y, encoding.extension()),
        };
        out.push(&pixels, encoding, record)?;
        funnel.patches += 1;
    }
    seconds.filter = start.elapsed().as_secs_f64();
    Ok(funnel)
}

/// The grid of sub-patches, row by row.
fn sub_patches(tile: &RgbTile, sub: usize) -> Vec<RgbTile> {
    let mut out = Vec::new();
    for y0 in (0..tile.height).step_by(sub) {
        for x0 in (0..tile.width).step_by(sub) {
            let mut data = Vec::with_capacity(3 * sub * sub);
            for y in y0..y0 + sub {
                let from = 3 * (y * tile.width + x0);
                data.extend_from_slice(&tile.data[from..from + 3 * sub]);
            }
            out.push(RgbTile::new(sub, sub, data));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slide_without_a_share_gives_no_tile() {
        let all: Vec<PlannedWindow> = (0..5).map(|x| PlannedWindow { x, y: 0 }).collect();
        let left = |most: Option<usize>| {
            let mut tiles = all.clone();
            draw(&mut tiles, most, "seed");
            tiles.len()
        };
        assert_eq!([Some(0), Some(2), Some(9), None].map(left), [0, 2, 5, 5]);
    }

    /// The tissue is not searched where the part has the number, whether the slide is there or not.
    #[test]
    fn a_count_is_kept_for_the_same_slide_and_tiles() {
        let dir = tempfile::tempdir().unwrap();
        let (path, part) = (dir.path().join("a.png"), dir.path().join("part"));
        let picture = |width| {
            let mut all = image::RgbImage::new(width, 64);
            all.enumerate_pixels_mut()
                .for_each(|(x, y, p)| p.0 = [200, 40 + ((x + y) % 7) as u8, 160]);
            all.save(&path).unwrap();
        };
        picture(128);
        let (mpp, tumour_class) = (mitosis::Mpp::PAPER, String::new());
        let tiles = Tiles { mpp, side: 64, sub: 64, tumour_class };
        let input = Input { mpp: Some(mpp), ..Input::new(&path) };
        let counted = |tiles: &Tiles| count(&input, tiles, &part);
        assert_eq!(counted(&tiles), Some(2));
        let file = part.join(COUNT);
        let recorded = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, recorded.replace("\"tiles\": 2", "\"tiles\": 7")).unwrap();
        assert_eq!(counted(&tiles), Some(7), "as the part has it");
        assert_eq!(counted(&Tiles { side: 32, sub: 32, ..tiles.clone() }), Some(8), "other tiles");
        assert_eq!(counted(&tiles), Some(2));
        picture(192);
        assert_eq!(counted(&tiles), Some(3), "another picture");
        std::fs::remove_file(&path).unwrap();
        assert_eq!(counted(&tiles), Some(3), "the slide is gone");
        std::fs::write(&file, "{").unwrap();
        assert_eq!(counted(&tiles), None);
        let mut state = State::<Finished>::running("", InputDigest::from_file(&file).unwrap());
        state.work.funnel.tissue_tiles = 3;
        state.save(&part).unwrap();
        assert_eq!(counted(&tiles), None, "its part is not done");
        state.status = mithras::batch::state::Status::Finished;
        state.save(&part).unwrap();
        assert_eq!(counted(&tiles), Some(3), "of a part without a count");
    }

    #[test]
    fn a_filter_is_found_by_folder_or_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let filters = dir.path().join("filters");
        std::fs::create_dir_all(filters.join("impash")).unwrap();
        let find = |named: &Path| FilterPlan::find(named, &filters, None).package;
        assert_eq!(find(Path::new("impash")), filters.join("impash"));
        assert_eq!(find(Path::new("conch")), Path::new("conch"), "as it was given");
        let own = dir.path().join("impash");
        std::fs::create_dir(&own).unwrap();
        assert_eq!(find(&own), own);
    }
}
