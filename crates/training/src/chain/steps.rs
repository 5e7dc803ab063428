//! What each step of a chain does.

use super::super::export::{self, Package};
use super::super::folds::{self, Calibrate, Mine, WORKING, read_mined};
use super::super::frames::WINDOW;
use super::super::{Result, TrainingError, parity};
use super::inputs::{CLASSIFIER, part};
use super::plan::StepKind;
use super::{Chain, PlannedStep, Second, first, points, start};
use crate::Named;
use base::file;
use base::progress::{Listener, Silent};
use mitosis::{Mpp, Rect, RgbTile};
use regions::folds::is_frame;
use regions::task::TrainingSet;
use std::path::PathBuf;
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
pub(super) fn run(
    chain: &Chain<'_>,
    step: &PlannedStep,
    listener: &mut dyn Listener,
) -> Result<Vec<PathBuf>> {
    let folder = chain.folder(step.fold);
    match step.kind {
        StepKind::Folds => {
            let path = chain.options.out.join("folds.json");
            chain.source.folds.write(&path)?;
            Ok(vec![path])
        }
        StepKind::Segment if let Some(run) = &chain.options.first_stage => {
            Ok(vec![first::copy_network(run, chain, step.fold)?])
        }
        StepKind::Segment => {
            let data = data(chain, step)?;
            let options = options(chain, folder.join("segment"), "segmenter");
            segment::train_on(&chain.preset.segment, &data, &options)?;
            Ok(vec![options.out.join(MODEL)])
        }
        StepKind::Mine => {
            let what = Mine {
                segmenter: folder.join("segment").join(MODEL),
                candidates: chain.preset.candidates,
                device: chain.options.device.clone(),
            };
            let path = folder.join("mined.csv");
            if let Some(run) = &chain.options.first_stage
                && first::copy_mined(run, &path, step.fold)?
            {
                return Ok(vec![path]);
            }
            folds::mine(&chain.source, &chain.fold(step.fold)?, &what, &path)?;
            Ok(vec![path])
        }
        StepKind::Finetune if chain.preset.crops.is_some() => on_crops(chain, step),
        StepKind::Finetune => {
            let data = data(chain, step)?;
            let mined = read_mined(&folder.join("mined.csv"))?;
            second_stage(chain, &data, &mined, folder.join("finetune"))
        }
        StepKind::Calibrate => calibrate(chain, listener),
        StepKind::Package => package(chain),
    }
}

fn data(chain: &Chain<'_>, step: &PlannedStep) -> Result<Data> {
    Ok(Data::read(&chain.source.set, &chain.fold(step.fold)?, WORKING)?)
}

/// A second stage; of several seeds each in a folder of its own, and the mean of their weights.
fn second_stage(
    chain: &Chain<'_>,
    data: &Data,
    mined: &[Mined],
    out: PathBuf,
) -> Result<Vec<PathBuf>> {
    let Second::Pools(preset) = chain.preset.second() else {
        return Err(TrainingError::Invalid("[crops] has no pools".into()));
    };
    let seeds = chain.preset.seeds();
    let model = out.join(MODEL);
    if let [_] = seeds[..] {
        finetune::train_on(preset, data, mined, &options(chain, out, "classifier"))?;
        return Ok(vec![model]);
    }
    let mut trained = vec![];
    for seed in seeds {
        let mut preset = preset.clone();
        preset.train.seed = seed;
        let options = options(chain, out.join(format!("seed-{seed}")), "classifier");
        finetune::train_on(&preset, data, mined, &options)?;
        trained.push(options.out.join(MODEL));
    }
    TorchClassifier::open_mean(&trained[0], &trained[1..], "cpu")?.save(&model)?;
    // Next to the weights, as every training leaves it: it records the covered resolutions.
    file::write(&model.with_file_name("preset.toml"), preset.to_toml().as_bytes())?;
    Ok(vec![model])
}

/// A second stage on crops around the labels, as a run over the chain's folds.
fn on_crops(chain: &Chain<'_>, step: &PlannedStep) -> Result<Vec<PathBuf>> {
    let Second::Crops(preset) = chain.preset.second() else {
        return Err(TrainingError::Invalid("[finetune] has pools".into()));
    };
    let out = chain.options.out.join(CLASSIFIER);
    std::fs::create_dir_all(&out).map_err(TrainingError::io(&out))?;
    chain.source.folds.write_once(&out.join("folds.json"))?;
    let set = TrainingSet::of_regions(&chain.source.set, preset.data.crop as u32, WORKING);
    let set = set.map_err(train::TrainError::from)?;
    let options = options(chain, out, "classifier");
    train::protocol::finetune(preset, &set, part(step.fold), &options)?;
    Ok(vec![chain.second_model(step.fold)])
}

/// The options of a training loop that resumes where a killed one stopped.
fn options(chain: &Chain<'_>, out: PathBuf, stage: &str) -> RunOptions {
    let given = match stage {
        "segmenter" => &chain.options.segment_init,
        _ => &chain.options.finetune_init,
    };
    let from_package =
        || chain.options.package.as_ref().map(|_| start::network(&chain.options.out, stage));
    RunOptions {
        out,
        resume: true,
        device: chain.options.device.clone(),
        init: given.clone().or_else(from_package),
        allow_partial: chain.options.allow_partial,
        stop_after: 0,
        reporter: Default::default(),
    }
}

/// One threshold pair over every held-out frame.
fn calibrate(chain: &Chain<'_>, listener: &mut dyn Listener) -> Result<Vec<PathBuf>> {
    let p = chain.preset;
    let folds = || 0..chain.source.folds.folds.len();
    let what = Calibrate {
        segmenters: folds().map(|k| chain.folder(Some(k)).join("segment").join(MODEL)).collect(),
        classifiers: vec![Named {
            name: SECOND.into(),
            value: folds().map(|k| chain.second_model(Some(k))).collect(),
        }],
        cache: None,
        candidates: p.candidates,
        rule: p.rule().map_err(|e| TrainingError::Invalid(e.to_string()))?,
        crop: p.second().crop() as u32,
        symmetries: p.calibrate.symmetries,
        device: chain.options.device.clone(),
        // Its folds are its own; the initial weights may have been trained on them, and the report then notes it.
        allow_seen: true,
    };
    let folder = chain.options.out.join("calibration");
    let report = folds::calibrate(&chain.source, &what, &folder, &mut Silent)?;
    report.calibration.seen.iter().for_each(|note| listener.note(note));
    let mut files = vec![folder.join("calibration.json"), folder.join("candidates.csv")];
    if let Some(grid) = p.calibrate.grid {
        files.push(points::choose(chain, grid)?);
    }
    Ok(files)
}

fn package(chain: &Chain<'_>) -> Result<Vec<PathBuf>> {
    let (p, out) = (chain.preset, chain.options.out.join("package"));
    let last = chain.folder(None);
    let mut training = toml::Table::new();
    let counts = chain.source.set.training().counts();
    for (key, value) in [
        ("dataset", chain.source.set.name().to_owned()),
        ("dataset_sha256", chain.source.set.digest().to_owned()),
        ("folds_sha256", chain.source.folds.digest.clone()),
        ("preset_sha256", p.digest()),
        ("positive_class", chain.source.set.positive().to_owned()),
        ("images", counts.images.to_string()),
        ("slide_count", counts.slides.to_string()),
    ] {
        training.insert(key.into(), toml::Value::String(value));
    }
    let mut license = p.package.license.clone();
    if let Some(from) = &chain.options.package {
        let name = toml::Value::String(from.card.name.clone());
        training.insert("went_on_from".into(), name);
        license = format!("{license}; continued from {}: {}", from.card.name, from.card.license);
    }
    let what = Package {
        segmenter: last.join("segment").join(MODEL),
        classifier: chain.second_model(None),
        averaged: vec![],
        segmentation: match &chain.options.package {
            Some(package) if chain.source.folds.folds.is_empty() => {
                package.card.segmentation_point.clone()
            }
            _ => Some(export::segmentation_point(
                &chain.options.out.join("calibration").join("calibration.json"),
            )?),
        },
        choice: match &chain.options.package {
            Some(package) if chain.source.folds.folds.is_empty() => start::kept(package)?,
            _ if p.calibrate.grid.is_some() => points::choice(chain)?,
            _ => export::Choice::Calibration {
                file: chain.options.out.join("calibration").join("calibration.json"),
                stage: SECOND.into(),
                min_separation_um: p.candidates.min_separation_um,
            },
        },
        training,
        license,
        name: p.package.name.clone(),
        f32: p.package.f32,
    };
    export::package(&what, &out)?;
    let mut segmenter = TorchSegmenter::open(&what.segmenter, "cpu")?;
    let mut classifier = TorchClassifier::open(&what.classifier, "cpu")?;
    if let export::Choice::Points { chosen: Some(c), tissue, .. } = &what.choice {
        let scale = c.calibrated_scale(tissue.as_deref())?;
        classifier = classifier.scaled(scale.slope, scale.offset)?;
    }
    let (windows, crops) = sample(chain, classifier.spec.input)?;
    let found = parity::check(&out, &mut segmenter, classifier, &windows, &crops)?;
    let parity = chain.options.out.join("parity.json");
    base::json::write(&parity, &found)?;
    let files = ["card.toml", "segmenter.onnx", "classifier.onnx"].map(|f| out.join(f));
    Ok(files.into_iter().chain([parity]).collect())
}

/// Windows and crops around the first figures, one image each.
fn sample(chain: &Chain<'_>, input: u32) -> Result<(Vec<RgbTile>, Vec<RgbTile>)> {
    let crop = chain.preset.second().crop();
    let (crop_mpp, side) = infer::preprocess::sampling(WORKING, crop, input as usize);
    let (mut windows, mut crops) = (vec![], vec![]);
    let part = chain.source.set.training();
    let with = part.images().iter().filter(|i| is_frame(i, WORKING) && i.figures().count() > 0);
    for image in with.take(SAMPLE) {
        let Some(figure) = image.figures().next() else { continue };
        let slide = chain.source.set.open_image(image)?;
        let cut = |mpp: Mpp, side: usize| {
            let (fx, fy) = image.scale(mpp);
            let corner = |c: f64| (c - side as f64 / 2.0).round() as i64;
            slide.read_at(mpp, Rect::new(corner(figure.x * fx), corner(figure.y * fy), side, side))
        };
        let fail = |e: slide::SlideError| TrainingError::Regions(e.into());
        windows.push(cut(chain.preset.segment.data.mpp, WINDOW as usize).map_err(fail)?);
        crops.push(cut(crop_mpp, side).map_err(fail)?);
    }
    Ok((windows, crops))
}
