//! What each step of a chain does.

use super::super::calibrate::{self, ImageCase, RADIUS, Settings, Stage};
use super::super::export::{self, Package};
use super::super::frames::{WINDOW, detect};
use super::super::{DetectorError, Result, parity};
use super::plan::StepKind;
use super::{Chain, PlannedStep, WORKING};
use ::detect::Grid;
use artifact::file;
use artifact::table::{Format, Table, Writer};
use corpus::folds::is_frame;
use corpus::regions::Image;
use mitosis::{Mpp, Physical, Point, Resolution, ResolutionSource, RgbTile, Symmetric};
use std::path::{Path, PathBuf};
use train::data::Data;
use train::finetune::{self, Mined};
use train::port::{TorchClassifier, TorchSegmenter};
use train::preset::Preset as _;
use train::run::{MODEL, RunOptions};
use train::segment;

/// Name of the second stage in the calibration.
const SECOND: &str = "two stages";
/// Windows and crops that an exported package is checked on, at most.
const SAMPLE: usize = 4;

/// Runs a step; gives the files it left.
pub(super) fn run(chain: &Chain<'_>, step: &PlannedStep) -> Result<Vec<PathBuf>> {
    let folder = chain.folder(step.fold);
    match step.kind {
        StepKind::Folds => {
            let path = chain.options.out.join("folds.json");
            chain.folds.write(&path)?;
            Ok(vec![path])
        }
        StepKind::Segment => {
            let data = data(chain, step)?;
            let options = options(chain, folder.join("segment"), &chain.options.segment_init);
            segment::on(&chain.preset.segment, &data, &options)?;
            Ok(vec![options.out.join(MODEL)])
        }
        StepKind::Mine => mine(chain, step),
        StepKind::Finetune => {
            let data = data(chain, step)?;
            let mined = read_mined(&folder.join("mined.csv"))?;
            let options = options(chain, folder.join("finetune"), &chain.options.finetune_init);
            finetune::on(&chain.preset.finetune, &data, &mined, &options)?;
            Ok(vec![options.out.join(MODEL)])
        }
        StepKind::Calibrate => calibrate(chain),
        StepKind::Package => package(chain),
    }
}

fn data(chain: &Chain<'_>, step: &PlannedStep) -> Result<Data> {
    Ok(Data::of_regions(chain.set, &chain.fold(step.fold)?, WORKING)?)
}

/// A training loop that goes on where a killed one stopped.
fn options(chain: &Chain<'_>, out: PathBuf, init: &Option<PathBuf>) -> RunOptions {
    RunOptions {
        out,
        resume: true,
        device: chain.options.device.clone(),
        init: init.clone(),
        allow_partial: chain.options.allow_partial,
        stop_after: 0,
        progress: false,
    }
}

fn resolution(image: &Image) -> Resolution {
    Resolution { x: image.mpp.x, y: image.mpp.y, source: ResolutionSource::User }
}

fn truth(image: &Image) -> Vec<Point<Physical>> {
    let r = resolution(image);
    image.figures().map(|l| r.to_physical(l.centre())).collect()
}

/// From this `s_seg` on a candidate of an image without labels is passed over: it may be a figure.
const DOUBTFUL: f32 = 0.6;

/// Candidates of the fold's own segmenter on its training frames, further than the matching radius
/// from every figure and outside the areas to be ignored, and on tissue without labels.
fn mine(chain: &Chain<'_>, step: &PlannedStep) -> Result<Vec<PathBuf>> {
    let folder = chain.folder(step.fold);
    let weights = folder.join("segment").join(MODEL);
    let mut segmenter = TorchSegmenter::open(&weights, &chain.options.device)?;
    // No overlap: half the windows; what a seam cuts near a figure is left out anyway.
    let mut recipe = chain.preset.candidates.recipe(&segmenter.spec, None)?;
    recipe.grid = Grid::new(WINDOW, WINDOW)?;
    let mut table = Writer::new(["frame", "x", "y", "s_seg"]);
    for image in chain.fold(step.fold)?.train {
        let labelled = is_frame(image, WORKING);
        if !labelled && (image.exhaustive || !image.labels.is_empty()) {
            continue;
        }
        let slide = chain.set.open_image(image)?;
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
            table.push([
                image.name.clone(),
                format!("{:.1}", c.x * scale.0),
                format!("{:.1}", c.y * scale.1),
                d.candidate.s_seg.get().to_string(),
            ]);
        }
    }
    let path = folder.join("mined.csv");
    file::write(&path, &table.into_bytes())?;
    Ok(vec![path])
}

fn read_mined(path: &Path) -> Result<Vec<Mined>> {
    let fail = |e: artifact::table::TableError| DetectorError::file(path, e);
    let table = Table::read(path, &Format { no_rows: true, ..Format::default() }).map_err(fail)?;
    let column = |name: &str| table.need(&[name]).map_err(fail);
    let (frame, x, y) = (column("frame")?, column("x")?, column("y")?);
    let of = |row: usize| {
        Ok(Mined {
            frame: table.cell(row, frame).to_owned(),
            x: table.number(row, x).map_err(fail)? as f32,
            y: table.number(row, y).map_err(fail)? as f32,
        })
    };
    (0..table.len()).map(of).collect()
}

/// Both networks of a fold.
fn models(chain: &Chain<'_>, fold: Option<usize>) -> Result<(TorchSegmenter, TorchClassifier)> {
    let (folder, device) = (chain.folder(fold), &chain.options.device);
    let segmenter = TorchSegmenter::open(&folder.join("segment").join(MODEL), device)?;
    let classifier = TorchClassifier::open(&folder.join("finetune").join(MODEL), device)?;
    Ok((segmenter, classifier))
}

/// Every held-out image through the models that never saw its slide, and one threshold pair.
fn calibrate(chain: &Chain<'_>) -> Result<Vec<PathBuf>> {
    let p = chain.preset;
    let rule = p.rule().map_err(|e| DetectorError::Invalid(e.to_string()))?;
    let crop = p.finetune.data.crop as u32;
    let mut folds = vec![];
    for (k, name) in chain.folds.folds.iter().enumerate() {
        let (mut segmenter, classifier) = models(chain, Some(k))?;
        let recipe = p.candidates.recipe(&segmenter.spec, Some((crop, &classifier.spec)))?;
        let mut classifier = Symmetric::new(classifier, p.calibrate.symmetries);
        let mut cases = vec![];
        for image in chain.fold(Some(k))?.validation {
            let slide = chain.set.open_image(image)?;
            let found = detect(&slide, &recipe, &mut segmenter, Some(&mut classifier))?;
            let case = ImageCase {
                name: image.name.clone(),
                truth: truth(image),
                resolution: resolution(image),
                found,
            };
            cases.push(case.without(&image.ignore));
        }
        folds.push((name.clone(), cases));
    }
    let stages = [(calibrate::FIRST, false), (SECOND, true)];
    let stages =
        stages.map(|(name, second)| Stage { name: name.into(), second, folds: folds.clone() });
    let settings = Settings {
        candidates: p.candidates,
        crop,
        symmetries: p.calibrate.symmetries,
        rule,
        frame_mpp: None,
    };
    let folder = chain.options.out.join("calibration");
    std::fs::create_dir_all(&folder).map_err(DetectorError::io(&folder))?;
    calibrate::report(&stages, &settings)?.write(&folder)?;
    Ok(vec![folder.join("calibration.json"), folder.join("candidates.csv")])
}

fn package(chain: &Chain<'_>) -> Result<Vec<PathBuf>> {
    let (p, out) = (chain.preset, chain.options.out.join("package"));
    let last = chain.folder(None);
    let mut training = toml::Table::new();
    let counts = chain.set.training().counts();
    for (key, value) in [
        ("dataset", chain.set.name().to_owned()),
        ("dataset_sha256", chain.set.digest().to_owned()),
        ("folds_sha256", chain.folds.digest.clone()),
        ("preset_sha256", p.digest()),
        ("positive_class", chain.set.positive().to_owned()),
        ("images", counts.images.to_string()),
        ("slides", counts.slides.to_string()),
    ] {
        training.insert(key.into(), toml::Value::String(value));
    }
    let what = Package {
        segmenter: last.join("segment").join(MODEL),
        classifier: last.join("finetune").join(MODEL),
        choice: export::Choice::Calibration {
            file: chain.options.out.join("calibration").join("calibration.json"),
            stage: SECOND.into(),
        },
        training,
        license: p.package.license.clone(),
        name: p.package.name.clone(),
        f32: p.package.f32,
    };
    export::package(&what, &out)?;
    let mut segmenter = TorchSegmenter::open(&what.segmenter, "cpu")?;
    let mut classifier = TorchClassifier::open(&what.classifier, "cpu")?;
    let (windows, crops) = sample(chain, classifier.spec.input)?;
    let found = parity::check(&out, &mut segmenter, &mut classifier, &windows, &crops)?;
    let parity = chain.options.out.join("parity.json");
    artifact::json::write(&parity, &found)?;
    let files = ["card.toml", "segmenter.onnx", "classifier.onnx"].map(|f| out.join(f));
    Ok(files.into_iter().chain([parity]).collect())
}

/// Windows and crops around the first figures, one image each.
fn sample(chain: &Chain<'_>, input: u32) -> Result<(Vec<RgbTile>, Vec<RgbTile>)> {
    let crop = chain.preset.finetune.data.crop;
    let (crop_mpp, side) = infer::preprocess::sampling(WORKING, crop, input as usize);
    let (mut windows, mut crops) = (vec![], vec![]);
    let part = chain.part();
    let with = part.images().iter().filter(|i| is_frame(i, WORKING) && i.figures().count() > 0);
    for image in with.take(SAMPLE) {
        let Some(figure) = image.figures().next() else { continue };
        let slide = chain.set.open_image(image)?;
        let cut = |mpp: Mpp, side: usize| {
            let (fx, fy) = image.scale(mpp);
            let corner = |c: f64| (c - side as f64 / 2.0).round() as i64;
            slide.read_at(mpp, corner(figure.x * fx), corner(figure.y * fy), side, side)
        };
        let fail = |e: slide::SlideError| DetectorError::Regions(e.into());
        windows.push(cut(chain.preset.segment.data.mpp, WINDOW as usize).map_err(fail)?);
        crops.push(cut(crop_mpp, side).map_err(fail)?);
    }
    Ok((windows, crops))
}
