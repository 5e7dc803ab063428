//! One slide: tissue tiles, tumour filter, detector, pseudo-labels, crops, into a corpus of its own.

use super::error::ConstructError;
use super::exclude::Origin;
use super::funnel::{Funnel, Seconds};
use super::part::{CropRecord, Out, draw, encoding};
use super::preset::{Crops, Kind, Patches, Preset, Tiles};
use super::tiles::{self, Filter};
use base::preset::Preset as _;
use crops::{CorpusWriter, CropBox, Header, Label, Layout};
use detect::{Control, Job, StateFile, WindowAt};
use mithras::detector::Detector;
use mitosis::pseudo_label::{PseudoLabel, assign};
use mitosis::{Detection, Level0, Point};
use slide::{PlannedWindow, Rect, Slide, TissueMask, WindowPlan};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Instant;

/// What works on slides: one per thread.
pub struct Worker {
    /// Detector; `None` without pseudo-labels.
    pub detector: Option<Detector>,
    /// Tumour filters.
    pub filters: Vec<Filter>,
}

/// A slide and whose it is.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    pub slide: &'a Slide,
    pub name: &'a str,
    pub origin: &'a Origin,
    /// How many tiles it gives of those that its cohort gives; `None` where that is not counted.
    pub share: Option<usize>,
}

/// Where one slide's crops and its interrupted detection are, and of what they are.
#[derive(Clone, Copy)]
pub struct Part<'a> {
    pub folder: &'a Path,
    /// Digest of the slide and of what is done with it.
    pub identity: &'a str,
}

/// Builds one slide's crops in the folder of `part` (removed first) and counts.
pub fn build(
    Source { slide, name, origin, share }: Source<'_>,
    preset: &Preset,
    worker: &mut Worker,
    part: Part<'_>,
) -> Result<(Funnel, Seconds), ConstructError> {
    let start = Instant::now();
    let folder = part.folder;
    if folder.exists() {
        std::fs::remove_dir_all(folder).map_err(|e| ConstructError::io(folder, e))?;
    }
    let mask = TissueMask::find(slide)?;
    let mut seconds = Seconds { tissue: start.elapsed().as_secs_f64(), ..Seconds::default() };
    let header = Header { name: name.into(), builder: mithras::program(), ..Header::default() };
    let mut out = Out {
        writer: CorpusWriter::create(folder, header, Layout::default())?,
        slide,
        name,
        origin,
        source: format!("{} {}", preset.name, preset.digest()),
    };
    let funnel = match preset.kind {
        Kind::PseudoLabels => pseudo(&mut out, preset, worker, &mask, part, &mut seconds)?,
        Kind::Unlabeled => {
            let start = Instant::now();
            let patches = preset.patches.as_ref().ok_or(ConstructError::Part("no [patches]"))?;
            let funnel = unlabeled(&mut out, patches, &mask)?;
            seconds.crops = start.elapsed().as_secs_f64();
            funnel
        }
        Kind::TumourTiles => {
            tiles::sorted(&mut out, preset, &mut worker.filters, &mask, share, &mut seconds)?
        }
    };
    out.writer.finish()?;
    Ok((funnel, seconds))
}

fn pseudo(
    out: &mut Out<'_>,
    preset: &Preset,
    worker: &mut Worker,
    mask: &TissueMask,
    part: Part<'_>,
    seconds: &mut Seconds,
) -> Result<Funnel, ConstructError> {
    let tiles = preset.tiles.as_ref().ok_or(ConstructError::Part("no [tiles]"))?;
    let rule = preset.rule.as_ref().ok_or(ConstructError::Part("no [rule]"))?;
    let crops = preset.crops.as_ref().ok_or(ConstructError::Part("no [crops]"))?;
    let detector = worker.detector.as_mut().ok_or(ConstructError::Part("no detector"))?;
    let mut funnel = Funnel::default();
    let start = Instant::now();
    let kept = tiles::kept(out.slide, mask, tiles, worker.filters.first_mut(), &mut funnel)?;
    seconds.filter = start.elapsed().as_secs_f64();
    if kept.is_empty() {
        return Ok(funnel);
    }
    let start = Instant::now();
    let detections = detect_near_tiles(out.slide, tiles, &kept, detector, part, &mut funnel)?;
    seconds.detect = start.elapsed().as_secs_f64();
    let start = Instant::now();
    let (sx, sy) = out.slide.working_scale(crops.mpp)?;
    for d in &detections {
        let Some(s_cls) = d.s_cls else { continue };
        let label = match assign(d.candidate.s_seg, s_cls, rule) {
            Some(PseudoLabel::Mitotic) => Label::MitoticFigure,
            Some(PseudoLabel::Mimicker) => Label::Mimicker,
            None => {
                funnel.excluded += 1;
                continue;
            }
        };
        let centre = d.candidate.centroid;
        let half = f64::from(crops.side) / 2.0;
        #[expect(clippy::cast_possible_truncation, reason = "pixels of a slide")]
        let corner = |c: f64| (c - half).round() as i64;
        let (x, y) = (corner(centre.x / sx), corner(centre.y / sy));
        let side = crops.side as usize;
        let Some(tile) = out.slide.read_whole_at(crops.mpp, Rect::new(x, y, side, side))? else {
            funnel.unread_crops += 1;
            continue;
        };
        let record = record_of(label, d, crops, format!("{}/{x}_{y}", out.name));
        // Two candidates of one slide cannot share a corner unless they share a centre.
        out.push(&tile, encoding(crops.jpeg_quality), record)?;
        match label {
            Label::MitoticFigure => funnel.figures += 1,
            _ => funnel.mimickers += 1,
        }
    }
    seconds.crops = start.elapsed().as_secs_f64();
    Ok(funnel)
}

fn record_of<'d>(label: Label, d: &'d Detection, crops: &Crops, stem: String) -> CropRecord<'d> {
    let c = d.candidate.centroid;
    CropRecord {
        label,
        subtype: None,
        detection: Some(d),
        centre: c,
        bbox: Some(CropBox::centred(crops.side, crops.box_side)),
        mpp: crops.mpp,
        path: format!("{stem}_{:.1}_{:.1}.{}", c.x, c.y, encoding(crops.jpeg_quality).extension()),
    }
}

/// Runs the detector on the windows that touch kept tiles; keeps the detections inside one.
fn detect_near_tiles(
    slide: &Slide,
    tiles: &Tiles,
    kept: &BTreeSet<PlannedWindow>,
    detector: &mut Detector,
    part: Part<'_>,
    funnel: &mut Funnel,
) -> Result<Vec<Detection>, ConstructError> {
    let recipe = &detector.config.recipe;
    let (window, stride) = (i64::from(recipe.grid.window()), i64::from(recipe.grid.stride()));
    if recipe.crops.is_none() {
        return Err(ConstructError::OneStage);
    }
    // Tiles in pixels of the detector.
    let ratio = tiles.mpp.get() / recipe.mpp.get();
    let side = f64::from(tiles.side);
    let mut windows = BTreeSet::new();
    for tile in kept {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_precision_loss,
            reason = "pixels of a slide"
        )]
        let span = |v: i64| {
            let (lo, hi) = (v as f64 * ratio, (v as f64 + side) * ratio);
            let first = ((lo.floor() as i64 - window) / stride + 1).max(0);
            first..=(hi.ceil() as i64 - 1).div_euclid(stride)
        };
        for row in span(tile.y) {
            for col in span(tile.x) {
                let place = |v: i64| u32::try_from(v).unwrap_or(u32::MAX);
                windows.insert(WindowAt { row: place(row), col: place(col) });
            }
        }
    }
    // The frame's own cover decides which windows exist at the right and lower edge.
    let all: BTreeSet<WindowAt> = recipe.grid.cover(recipe.frame(slide)?).into_iter().collect();
    let windows: Vec<WindowAt> = windows.intersection(&all).copied().collect();
    // The analysed area is not asked for.
    let job = Job { windows, tissue: None, identity: part.identity.to_owned() };
    let mut store = StateFile(part.folder.with_extension("checkpoint"));
    let result = detector.windows(slide, &job, Control::default().stored(&mut store))?;
    funnel.candidates = (result.candidates.len() + result.unclassified.len()) as u64;
    funnel.unread_crops += result.unclassified.len() as u64;
    let (sx, sy) = slide.working_scale(tiles.mpp)?;
    #[expect(clippy::cast_possible_truncation, reason = "pixels of a slide")]
    let inside = |d: &&Detection| {
        let at = |v: f64| (v / side).floor() as i64 * i64::from(tiles.side);
        let c = d.candidate.centroid;
        kept.contains(&PlannedWindow { x: at(c.x / sx), y: at(c.y / sy) })
    };
    let detections: Vec<Detection> = result.detections().filter(inside).copied().collect();
    funnel.in_tiles = detections.len() as u64;
    detect::Store::discard(&mut store);
    Ok(detections)
}

/// A slide this much coarser than a resolution does not have it; scanners of 40x differ by less.
const COARSER: f64 = 1.3;

/// Patches inside the slide whose centre is on tissue, at every resolution that the slide has.
fn unlabeled(out: &mut Out<'_>, p: &Patches, mask: &TissueMask) -> Result<Funnel, ConstructError> {
    let mut funnel = Funnel::default();
    let side = p.side as usize;
    for (i, &mpp) in p.mpp.iter().enumerate() {
        if out.slide.resolution()?.mean().get() > COARSER * mpp.get() {
            funnel.too_fine += 1;
            continue;
        }
        let plan = WindowPlan::new(out.slide, mpp, side, side, Some(mask))?;
        let (columns, rows) = plan.grid();
        funnel.grid_tiles += u64::try_from(columns * rows).unwrap_or(0);
        let (sx, sy) = out.slide.working_scale(mpp)?;
        let (w, h) = out.slide.working_dimensions(mpp)?;
        let half = f64::from(p.side) / 2.0;
        #[expect(clippy::cast_precision_loss, reason = "pixels of a slide")]
        let centre = |t: &PlannedWindow| {
            Point::<Level0>::new((t.x as f64 + half) * sx, (t.y as f64 + half) * sy)
        };
        let fits = |t: &PlannedWindow| {
            let end = |v: i64| u64::try_from(v).unwrap_or(u64::MAX).saturating_add(side as u64);
            end(t.x) <= w && end(t.y) <= h && mask.contains(centre(t))
        };
        let mut chosen: Vec<PlannedWindow> = plan.iter().filter(fits).collect();
        funnel.tissue_tiles += chosen.len() as u64;
        let most = Some(p.per_slide.at(i)).filter(|n| *n > 0);
        draw(&mut chosen, most, &format!("{} {} {}", p.seed, out.name, mpp));
        for t in chosen {
            let Some(tile) = out.slide.read_whole_at(mpp, Rect::new(t.x, t.y, side, side))? else {
                funnel.unread_tiles += 1;
                continue;
            };
            let encoding = encoding(p.jpeg_quality);
            let path =
                format!("{}/{}/{}_{}.{}", out.name, mpp.get(), t.x, t.y, encoding.extension());
            let record = CropRecord {
                label: Label::Unlabeled,
                subtype: None,
                detection: None,
                centre: centre(&t),
                bbox: None,
                mpp,
                path,
            };
            out.push(&tile, encoding, record)?;
            funnel.patches += 1;
        }
    }
    Ok(funnel)
}
