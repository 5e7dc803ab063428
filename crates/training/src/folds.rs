//! Steps on the folds of a regions dataset with trained weights: where a first stage is wrong on its
//! own training images, and one operating point over what was held out.

use super::calibrate::{FIRST, ImageCase, RADIUS, Report, Settings, Stage, report};
use super::frames::{Candidates, Remembering, SecondStage, WINDOW, detect};
use super::{Result, TrainingError};
use crate::Named;
use ::detect::Grid;
use base::file::{self, Lock};
use base::progress::Listener;
use base::table::{Format, Table, Writer};
use base::text::Many;
use mitosis::matching::Rule;
use mitosis::{Classifier, Mpp, Physical, Point, Resolution, ResolutionSource, Symmetric};
use net::checkpoint::Spec;
use regions::Image;
use regions::folds::{RegionFold, is_frame};
use std::path::{Path, PathBuf};
use train::data::Source;
use train::finetune::Mined;
use train::port::{TorchClassifier, TorchSegmenter};
use train::seen::{Names, Seen, shown};

/// Resolution that training works at.
pub const WORKING: Mpp = Mpp::PAPER;

/// From this `s_seg` on a candidate of an image without labels is passed over: it may be a figure.
const DOUBTFUL: f32 = 0.6;

fn resolution(image: &Image) -> Resolution {
    Resolution { x: image.mpp.x, y: image.mpp.y, source: ResolutionSource::User }
}

fn truth(image: &Image) -> Vec<Point<Physical>> {
    let r = resolution(image);
    image.figures().map(|l| r.to_physical(l.centre())).collect()
}

/// A first stage on its own training images.
#[derive(Clone, Debug)]
pub struct Mine {
    /// Weights of the segmenter.
    pub segmenter: PathBuf,
    /// How candidates are taken.
    pub candidates: Candidates,
    /// `auto`, `cpu`, `cuda`, `cuda:1`.
    pub device: String,
}

/// Writes `frame,x,y,s_seg` (pixels at 0.25 um/px) of every candidate on the training frames that is
/// further than the matching radius from every figure and outside the areas to be ignored, and of
/// those on images without labels. Gives their number and that of the images.
///
/// # Errors
/// Images or weights that cannot be read, a full disk.
pub fn mine(
    source: &Source,
    fold: &RegionFold<'_>,
    m: &Mine,
    out: &Path,
) -> Result<(usize, usize)> {
    let mut segmenter = TorchSegmenter::open(&m.segmenter, &m.device)?;
    let mut recipe = m.candidates.recipe(&segmenter.spec, None)?;
    // However near to each other, each is a place of its own to learn from.
    recipe.min_separation_um = None;
    let mut table = Writer::new(["frame", "x", "y", "s_seg"]);
    let (mut n, mut images) = (0, 0);
    for image in &fold.train {
        let labelled = is_frame(image, WORKING);
        if !labelled && (image.exhaustive || !image.labels.is_empty()) {
            continue;
        }
        images += 1;
        // No overlap: half the windows; what a seam cuts near a figure is left out anyway.
        let side = window(image, recipe.mpp);
        recipe.grid = Grid::new(side, side)?;
        let slide = source.set.open_image(image)?;
        let (truth, r, scale) = (truth(image), resolution(image), image.scale(WORKING));
        for d in detect(&slide, &recipe, &mut segmenter, None)? {
            let c = d.candidate.centroid;
            let at = r.to_physical(c);
            let near = |t: &Point<Physical>| (t.x - at.x).hypot(t.y - at.y) <= RADIUS.0;
            let ignored = || image.ignore.iter().any(|a| a.contains(c.x, c.y));
            let doubtful = !labelled && d.candidate.s_seg.get() >= DOUBTFUL;
            if doubtful || truth.iter().any(near) || ignored() {
                continue;
            }
            n += 1;
            table.push([
                image.name.clone(),
                format!("{:.1}", c.x * scale.0),
                format!("{:.1}", c.y * scale.1),
                d.candidate.s_seg.get().to_string(),
            ]);
        }
    }
    file::write(out, &table.into_bytes())?;
    Ok((n, images))
}

/// Side of the windows of a small image: no larger than it needs.
fn window(image: &Image, mpp: Mpp) -> u32 {
    let (fx, fy) = image.scale(mpp);
    let side = (f64::from(image.width) * fx).max(f64::from(image.height) * fy);
    (side.ceil() as u32).next_multiple_of(32).clamp(32, WINDOW)
}

/// Reads what [`mine`] wrote.
///
/// # Errors
/// A table that is not there or malformed.
pub fn read_mined(path: &Path) -> Result<Vec<Mined>> {
    let fail = |e: base::table::TableError| TrainingError::file(path, e);
    let table = Table::read(path, &Format { no_rows: true, ..Format::default() }).map_err(fail)?;
    let column = |name: &str| table.need(&[name]).map_err(fail);
    let (frame, x, y) = (column("frame")?, column("x")?, column("y")?);
    let mined = |row: usize| {
        Ok(Mined {
            frame: table.cell(row, frame).to_owned(),
            x: table.number(row, x).map_err(fail)? as f32,
            y: table.number(row, y).map_err(fail)? as f32,
        })
    };
    (0..table.len()).map(mined).collect()
}

/// One threshold pair over the held-out frames of all folds.
#[derive(Clone, Debug)]
pub struct Calibrate {
    /// Weights of the segmenters, one per fold.
    pub segmenters: Vec<PathBuf>,
    /// Weights of each second stage, one file per fold.
    pub classifiers: Vec<Named<Vec<PathBuf>>>,
    /// Folder that keeps the first stage's maps for a later call.
    pub cache: Option<PathBuf>,
    /// How candidates are taken.
    pub candidates: Candidates,
    /// The rule that thresholds are chosen by.
    pub rule: Rule,
    /// Side of the second stage's crops, px at 0.25 um/px.
    pub crop: u32,
    /// Flips and quarter turns of a crop whose probabilities are averaged.
    pub symmetries: u8,
    /// `auto`, `cpu`, `cuda`, `cuda:1`.
    pub device: String,
    /// Continue although weights were trained on held-out slides, or do not record what they were trained on.
    pub allow_seen: bool,
}

/// Refuses weights that were trained on slides or patients that fold `k` holds out: thresholds chosen on
/// what a model has learnt by heart are too high. Returns the notes for the report when this is allowed.
fn unseen(
    source: &Source,
    k: usize,
    path: &Path,
    spec: &Spec,
    allowed: bool,
) -> Result<Option<String>> {
    let path = path.to_path_buf();
    let Some(seen) = &spec.trained_on else {
        let refused = TrainingError::Unlisted { path: path.clone() };
        return if allowed { Ok(Some(refused.to_string())) } else { Err(refused) };
    };
    let [slides, patients] = [&seen.slides, &seen.patients].map(|n| n.iter().map(String::as_str));
    let mut leaked = source.folds.leaked(k, slides, patients);
    let held: Vec<Names> =
        source.fold(&source.folds.folds[k])?.validation.into_iter().map(Names::from).collect();
    if leaked.is_empty() {
        // By digest, or by the start of a name, as the cards of packages list what they were trained on.
        leaked = Seen::new(seen).slides(&held).into_iter().collect();
    }
    if leaked.is_empty() {
        return Ok(None);
    }
    let shown = shown(leaked.iter().copied());
    let (fold, count) = (source.folds.folds[k].clone(), leaked.len());
    let refused = TrainingError::Seen { path, fold, count, shown };
    if allowed { Ok(Some(refused.to_string())) } else { Err(refused) }
}

/// Takes every held-out frame through the models that never saw its slide, chooses one threshold pair
/// for all folds together, and writes the report into `out`. `listener` receives the progress.
///
/// # Errors
/// Images or weights that cannot be read, no figure to choose by, another run in `out`; weights that were
/// trained on what a fold holds out, or do not list what they were trained on.
pub fn calibrate(
    source: &Source,
    c: &Calibrate,
    out: &Path,
    listener: &mut dyn Listener,
) -> Result<Report> {
    std::fs::create_dir_all(out).map_err(TrainingError::io(out))?;
    let _lock = Lock::take(out)?;
    if let Some(dir) = &c.cache {
        std::fs::create_dir_all(dir).map_err(TrainingError::io(dir))?;
    }
    let names =
        std::iter::once(FIRST.to_owned()).chain(c.classifiers.iter().map(|s| s.name.clone()));
    let mut stages: Vec<Stage> =
        names.enumerate().map(|(i, name)| Stage { name, second: i > 0, folds: vec![] }).collect();
    let mut notes = vec![];
    for (k, fold) in source.folds.folds.iter().enumerate() {
        let weights = &c.segmenters[k];
        let bytes = file::read_whole(weights).map_err(TrainingError::io(weights))?;
        let inner = TorchSegmenter::open(weights, &c.device)?;
        notes.extend(unseen(source, k, weights, &inner.spec, c.allow_seen)?);
        let first = c.candidates.recipe(&inner.spec, None)?;
        let mut seconds = vec![];
        for Named { value: paths, .. } in &c.classifiers {
            let net = TorchClassifier::open(&paths[k], &c.device)?;
            notes.extend(unseen(source, k, &paths[k], &net.spec, c.allow_seen)?);
            let recipe = c
                .candidates
                .recipe(&inner.spec, Some(SecondStage { crop: c.crop, spec: &net.spec }))?;
            seconds.push((Symmetric::new(net, c.symmetries), recipe));
        }
        let digest = base::digest::sha256(&bytes).into_bytes();
        let mut segmenter = Remembering::new(inner, c.cache.clone(), digest);
        let mut cases: Vec<Vec<ImageCase>> = vec![vec![]; stages.len()];
        let held = source.fold(fold)?.validation;
        for image in held.into_iter().filter(|i| is_frame(i, WORKING)) {
            segmenter.forget();
            let slide = source.set.open_image(image)?;
            let case = |found| {
                let (name, truth) = (image.name.clone(), truth(image));
                let resolution = resolution(image);
                ImageCase { name, truth, resolution, found }.without(&image.ignore)
            };
            let found = detect(&slide, &first, &mut segmenter, None)?;
            listener.report(&format!("{}: {}", image.name, Many(found.len(), "candidate")));
            cases[0].push(case(found));
            for (i, (net, both)) in seconds.iter_mut().enumerate() {
                let net: &mut dyn Classifier = net;
                cases[i + 1].push(case(detect(&slide, both, &mut segmenter, Some(net))?));
            }
        }
        for (stage, cases) in stages.iter_mut().zip(cases) {
            stage.folds.push(Named { name: fold.clone(), value: cases });
        }
    }
    let settings =
        Settings { candidates: c.candidates, crop: c.crop, symmetries: c.symmetries, rule: c.rule };
    let mut report = report(&stages, &settings)?;
    report.note(notes);
    report.write(out)?;
    Ok(report)
}
