//! One slide: tissue tiles, tumour filter, detector, pseudo-labels, crops, into its own folder.

use super::exclude::Origin;
use super::preset::{Crops, Kind, Patches, Preset, Tiles};
use anyhow::{Context, ensure};
use artifact::digest::{Digest, Sha256};
use corpus::cut::Encoding;
use corpus::schema::pixel_hash;
use corpus::{CorpusWriter, CropBox, CropMeta, Header, Label, Layout};
use detect::{CancelToken, Checkpoint, Job, Observer, WindowAt};
use mithras::job::Setup;
use mitosis::pseudo_label::{PseudoLabel, assign};
use mitosis::{Classifier, Detection, Level0, Mpp, Point, RgbTile};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};
use slide::{PlannedWindow, Slide, TissueMask, WindowPlan};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Instant;

/// How many of each came through (C5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Funnel {
    /// Tiles of the slide's grid.
    pub grid_tiles: u64,
    /// Tiles that touch tissue.
    pub tissue_tiles: u64,
    /// Tiles that could not be read.
    pub unread_tiles: u64,
    /// Tiles that the filter kept.
    pub tumour_tiles: u64,
    /// Candidates of the first stage in windows on kept tiles.
    pub candidates: u64,
    /// Candidates whose centroid lies in a kept tile, with both scores.
    pub in_tiles: u64,
    /// Pseudo-figures.
    pub figures: u64,
    /// Pseudo-mimickers.
    pub mimickers: u64,
    /// Between both: excluded by the rule.
    pub excluded: u64,
    /// Crops that could not be read.
    pub unread_crops: u64,
    /// Unlabelled patches.
    pub patches: u64,
    /// Resolutions left out because the slide itself is coarser.
    #[serde(default)]
    pub too_fine: u64,
}

impl Funnel {
    /// Names and values, in order.
    pub fn rows(&self) -> [(&'static str, u64); 12] {
        [
            ("tiles in the grid", self.grid_tiles),
            ("tiles on tissue", self.tissue_tiles),
            ("tiles unreadable", self.unread_tiles),
            ("tiles kept by the filter", self.tumour_tiles),
            ("candidates", self.candidates),
            ("candidates in kept tiles", self.in_tiles),
            ("pseudo-figures", self.figures),
            ("pseudo-mimickers", self.mimickers),
            ("excluded by the rule", self.excluded),
            ("crops unreadable", self.unread_crops),
            ("unlabelled patches", self.patches),
            ("resolutions finer than the slide", self.too_fine),
        ]
    }

    /// Adds another slide's counts.
    pub fn add(&mut self, o: &Self) {
        self.grid_tiles += o.grid_tiles;
        self.tissue_tiles += o.tissue_tiles;
        self.unread_tiles += o.unread_tiles;
        self.tumour_tiles += o.tumour_tiles;
        self.candidates += o.candidates;
        self.in_tiles += o.in_tiles;
        self.figures += o.figures;
        self.mimickers += o.mimickers;
        self.excluded += o.excluded;
        self.unread_crops += o.unread_crops;
        self.patches += o.patches;
        self.too_fine += o.too_fine;
    }
}

/// Seconds per stage; never part of a digest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Seconds {
    /// Opening and tissue mask.
    pub tissue: f64,
    /// Tumour filter, reading included.
    pub filter: f64,
    /// Detector.
    pub detect: f64,
    /// Crops: reading, encoding, writing.
    pub crops: f64,
}

/// What works on slides: one per thread.
pub struct Worker {
    /// Detector; `None` for unlabelled patches.
    pub setup: Option<Setup>,
    /// Tumour filter and the number of its tumour class.
    pub filter: Option<(Box<dyn Classifier>, usize)>,
}

/// Builds one slide's crops in `part` (removed first) and counts.
pub fn build(
    slide: &Slide,
    name: &str,
    origin: &Origin,
    preset: &Preset,
    worker: &mut Worker,
    part: &Path,
    identity: &str,
) -> anyhow::Result<(Funnel, Seconds)> {
    let start = Instant::now();
    if part.exists() {
        std::fs::remove_dir_all(part).with_context(|| part.display().to_string())?;
    }
    let mask = TissueMask::find(slide)?;
    let mut seconds = Seconds { tissue: start.elapsed().as_secs_f64(), ..Seconds::default() };
    let header =
        Header { name: name.into(), builder: super::super::builder(), ..Header::default() };
    let mut out = Out {
        writer: CorpusWriter::create(part, header, Layout::default())?,
        slide,
        name,
        origin,
        source: format!("{} {}", preset.name, preset.digest()),
    };
    let funnel = match preset.kind {
        Kind::PseudoLabels => {
            pseudo(&mut out, preset, worker, &mask, part, identity, &mut seconds)?
        }
        Kind::Unlabeled => {
            let start = Instant::now();
            let patches = preset.patches.as_ref().context("no [patches]")?;
            let funnel = unlabeled(&mut out, patches, &mask)?;
            seconds.crops = start.elapsed().as_secs_f64();
            funnel
        }
    };
    out.writer.finish()?;
    Ok((funnel, seconds))
}

struct Out<'a> {
    writer: CorpusWriter,
    slide: &'a Slide,
    name: &'a str,
    origin: &'a Origin,
    source: String,
}

/// What a crop says beside its pixels.
struct Said<'d> {
    label: Label,
    detection: Option<&'d Detection>,
    centre: Point<Level0>,
    bbox: Option<CropBox>,
    mpp: Mpp,
    path: String,
}

impl Out<'_> {
    fn push(&mut self, tile: &RgbTile, encoding: Encoding, said: Said<'_>) -> anyhow::Result<()> {
        let bytes = encoding.encode(tile).map_err(anyhow::Error::msg)?;
        // What a reader will decode, not what was encoded.
        let stored = match encoding {
            Encoding::Png => pixel_hash(tile),
            Encoding::Jpeg(_) => {
                let image = image::load_from_memory(&bytes)?.into_rgb8();
                pixel_hash(&RgbTile::new(tile.width, tile.height, image.into_raw()))
            }
        };
        let meta = CropMeta {
            s_seg: said.detection.map(|d| d.candidate.s_seg),
            s_cls: said.detection.and_then(|d| d.s_cls),
            bbox: said.bbox,
            centroid: Some(said.centre),
            patient: self.origin.patient.clone(),
            cohort: self.origin.cohort.clone(),
            source: self.source.clone(),
            pixels: Some(stored),
            ..CropMeta::new(
                said.path,
                said.label,
                self.name.to_owned(),
                said.mpp,
                (u32::try_from(tile.width)?, u32::try_from(tile.height)?),
            )
        };
        Ok(self.writer.push(meta, bytes)?)
    }
}

fn encoding(quality: Option<u8>) -> Encoding {
    quality.map_or(Encoding::Png, Encoding::Jpeg)
}

fn pseudo(
    out: &mut Out<'_>,
    preset: &Preset,
    worker: &mut Worker,
    mask: &TissueMask,
    part: &Path,
    identity: &str,
    seconds: &mut Seconds,
) -> anyhow::Result<Funnel> {
    let tiles = preset.tiles.as_ref().context("no [tiles]")?;
    let rule = preset.rule.as_ref().context("no [rule]")?;
    let crops = preset.crops.as_ref().context("no [crops]")?;
    let setup = worker.setup.as_mut().context("no detector")?;
    let mut funnel = Funnel::default();
    let start = Instant::now();
    let kept = kept_tiles(out.slide, mask, tiles, worker.filter.as_mut(), &mut funnel)?;
    seconds.filter = start.elapsed().as_secs_f64();
    if kept.is_empty() {
        return Ok(funnel);
    }
    let start = Instant::now();
    let detections = detect_on(out.slide, tiles, &kept, setup, part, identity, &mut funnel)?;
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
        let Ok(tile) = out.slide.read_at(crops.mpp, x, y, side, side) else {
            funnel.unread_crops += 1;
            continue;
        };
        let said = said(label, d, crops, format!("{}/{x}_{y}", out.name));
        // Two candidates of one slide cannot share a corner unless they share a centre.
        out.push(&tile, encoding(crops.jpeg_quality), said)?;
        match label {
            Label::MitoticFigure => funnel.figures += 1,
            _ => funnel.mimickers += 1,
        }
    }
    seconds.crops = start.elapsed().as_secs_f64();
    Ok(funnel)
}

fn said<'d>(label: Label, d: &'d Detection, crops: &Crops, stem: String) -> Said<'d> {
    let c = d.candidate.centroid;
    Said {
        label,
        detection: Some(d),
        centre: c,
        bbox: Some(CropBox::centred(crops.side, crops.box_side)),
        mpp: crops.mpp,
        path: format!("{stem}_{:.1}_{:.1}.{}", c.x, c.y, encoding(crops.jpeg_quality).extension()),
    }
}

fn kept_tiles(
    slide: &Slide,
    mask: &TissueMask,
    tiles: &Tiles,
    filter: Option<&mut (Box<dyn Classifier>, usize)>,
    funnel: &mut Funnel,
) -> anyhow::Result<BTreeSet<PlannedWindow>> {
    let side = tiles.side as usize;
    let plan = WindowPlan::new(slide, tiles.mpp, side, side, Some(mask))?;
    let (columns, rows) = plan.grid();
    funnel.grid_tiles = u64::try_from(columns * rows).unwrap_or(0);
    let on_tissue: Vec<PlannedWindow> = plan.iter().collect();
    funnel.tissue_tiles = on_tissue.len() as u64;
    let Some((filter, tumour)) = filter else {
        funnel.tumour_tiles = funnel.tissue_tiles;
        return Ok(on_tissue.into_iter().collect());
    };
    let mut kept = BTreeSet::new();
    for tile in on_tissue {
        let Ok(pixels) = slide.read_at(tiles.mpp, tile.x, tile.y, side, side) else {
            funnel.unread_tiles += 1;
            continue;
        };
        let probabilities = filter.classes(&sub_patches(&pixels, tiles.sub as usize))?;
        let all = probabilities.iter().all(|p| mitosis::likeliest(&p.0) == *tumour);
        if all {
            kept.insert(tile);
        }
    }
    funnel.tumour_tiles = kept.len() as u64;
    Ok(kept)
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

struct Store<'a>(&'a Path);

impl Observer for Store<'_> {
    fn stores(&self) -> bool {
        true
    }

    fn store(&mut self, checkpoint: &Checkpoint) -> Result<(), String> {
        checkpoint.save(self.0)
    }
}

/// Runs the detector on the windows that touch kept tiles; keeps what lies inside one.
fn detect_on(
    slide: &Slide,
    tiles: &Tiles,
    kept: &BTreeSet<PlannedWindow>,
    setup: &mut Setup,
    part: &Path,
    identity: &str,
    funnel: &mut Funnel,
) -> anyhow::Result<Vec<Detection>> {
    let recipe = &setup.config.recipe;
    let (window, stride) = (i64::from(recipe.grid.window()), i64::from(recipe.grid.stride()));
    ensure!(
        recipe.crops.is_some(),
        "the model has no second stage; pseudo-labels need both scores"
    );
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
                windows.insert(WindowAt { row: u32::try_from(row)?, col: u32::try_from(col)? });
            }
        }
    }
    // The frame's own cover decides which windows exist at the right and lower edge.
    let all: BTreeSet<WindowAt> = recipe.grid.cover(recipe.frame(slide)?).into_iter().collect();
    let windows: Vec<WindowAt> = windows.intersection(&all).copied().collect();
    // The analysed area is not asked for.
    let job = Job { windows, tissue: None, identity: identity.to_owned() };
    let path = part.with_extension("checkpoint");
    let stored = Checkpoint::load(&path).unwrap_or_default();
    let mut attempt = |stored| {
        detect::run(
            slide,
            &job,
            setup.segmenter.as_mut(),
            setup.classifier.as_deref_mut().map(|c| c as &mut dyn Classifier),
            &setup.config.recipe,
            &setup.workers,
            stored,
            &mut Store(&path),
            &CancelToken::new(),
        )
    };
    let resumed = stored.is_some();
    let result = match attempt(stored) {
        Err(detect::DetectError::Checkpoint(_)) if resumed => attempt(None)?,
        other => other?,
    };
    funnel.candidates = (result.detections.len() + result.unclassified.len()) as u64;
    funnel.unread_crops += result.unclassified.len() as u64;
    let (sx, sy) = slide.working_scale(tiles.mpp)?;
    #[expect(clippy::cast_possible_truncation, reason = "pixels of a slide")]
    let inside = |d: &Detection| {
        let at = |v: f64| (v / side).floor() as i64 * i64::from(tiles.side);
        let c = d.candidate.centroid;
        kept.contains(&PlannedWindow { x: at(c.x / sx), y: at(c.y / sy) })
    };
    let detections: Vec<Detection> = result.detections.into_iter().filter(inside).collect();
    funnel.in_tiles = detections.len() as u64;
    let _ = std::fs::remove_file(&path);
    Ok(detections)
}

/// A slide this much coarser than a resolution does not have it; scanners of 40x differ by less.
const COARSER: f64 = 1.3;

/// Patches inside the slide whose centre lies on tissue, at every resolution that the slide has.
fn unlabeled(out: &mut Out<'_>, p: &Patches, mask: &TissueMask) -> anyhow::Result<Funnel> {
    let mut funnel = Funnel::default();
    let side = p.side as usize;
    for &mpp in &p.mpp {
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
        if p.per_slide > 0 && chosen.len() > p.per_slide {
            let seed: [u8; 32] = Sha256::digest(format!("{} {} {}", p.seed, out.name, mpp)).into();
            chosen.shuffle(&mut rand_chacha::ChaCha8Rng::from_seed(seed));
            chosen.truncate(p.per_slide);
            chosen.sort();
        }
        for t in chosen {
            let Ok(tile) = out.slide.read_at(mpp, t.x, t.y, side, side) else {
                funnel.unread_tiles += 1;
                continue;
            };
            let encoding = encoding(p.jpeg_quality);
            let path =
                format!("{}/{}/{}_{}.{}", out.name, mpp.get(), t.x, t.y, encoding.extension());
            let said = Said {
                label: Label::Unlabeled,
                detection: None,
                centre: centre(&t),
                bbox: None,
                mpp,
                path,
            };
            out.push(&tile, encoding, said)?;
            funnel.patches += 1;
        }
    }
    Ok(funnel)
}
