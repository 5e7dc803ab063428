//! `mithras train calibrate`: one threshold pair over the left-out folds, and what it reaches.

use super::images::{CandidateArgs, detect, image_of, resolution};
use super::learn::FOLDS;
use anyhow::{Context, Result};
use artifact::file::Lock;
use corpus::crops::{MarkKind, Scene};
use corpus::fold::LeftOut;
use corpus::icpr::{APERIO_MPP, Icpr};
use mithras::train::calibrate::{self, ImageCase, Settings, Stage};
use mithras::train::frames::Remembering;
use mitosis::matching::Rule;
use mitosis::{Classifier, Detection, Mpp, Point, Symmetric};
use std::path::PathBuf;
use train::port::{TorchClassifier, TorchSegmenter};

/// Choose the operating point over the left-out folds and report what it reaches
///
/// Every frame of a slide goes through the models that never saw that slide. One threshold pair is
/// chosen for all folds together by the largest F1, for segmentation alone and for each second
/// stage. Writes calibration.json, calibration.md and candidates.csv.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Weights of the segmenters; {fold} stands for the slide left out
    #[arg(long, value_name = "FILE")]
    segmenter: String,
    /// NAME=FILE: weights of the second stage, with {fold}; may be given several times
    #[arg(long, value_name = "NAME=FILE")]
    classifier: Vec<String>,
    /// Folder with icpr2012/
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Keep the first stage's maps in this folder, for a later call with another second stage
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
    /// Folder for the results
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    #[command(flatten)]
    candidates: CandidateArgs,
    /// Rule that the thresholds are chosen by; both are reported
    #[arg(long, default_value = "midog")]
    rule: Rule,
    /// Side of the second stage's crops, px at 0.25 um/px
    #[arg(long, default_value_t = 128)]
    crop: u32,
    /// Flips and quarter turns of a crop whose probabilities are averaged
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=8))]
    symmetries: u8,
    /// auto, cpu, cuda, cuda:N
    #[arg(long, default_value = "auto")]
    device: String,
    /// Threads of libtorch; 0 = all cores
    #[arg(long, default_value_t = 0)]
    threads: usize,
}

/// A frame with what was found on it.
fn case(scene: &Scene, found: Vec<Detection>) -> ImageCase {
    // Marks are kept at 0.25 um/px.
    let um = |v: f32| f64::from(v) * Mpp::PAPER.get();
    let figures = scene.marks.iter().filter(|m| m.kind == MarkKind::Figure);
    ImageCase {
        name: scene.name.clone(),
        truth: figures.map(|m| Point::new(um(m.x), um(m.y))).collect(),
        resolution: resolution(),
        found,
    }
}

pub fn run(args: Args) -> Result<()> {
    let _lock = Lock::take(&args.out)?;
    train::set_up(args.threads);
    if let Some(dir) = &args.cache {
        std::fs::create_dir_all(dir).with_context(|| dir.display().to_string())?;
    }
    let icpr = Icpr::open(&args.data.join("icpr2012"), Mpp::PAPER)?;
    let seconds: Vec<(String, String)> = args
        .classifier
        .iter()
        .map(|c| {
            let (name, path) = c.split_once('=').context("--classifier: write NAME=FILE")?;
            Ok((name.to_string(), path.to_string()))
        })
        .collect::<Result<_>>()?;
    let candidates = args.candidates.resolved();
    let names =
        std::iter::once(calibrate::FIRST.to_string()).chain(seconds.iter().map(|s| s.0.clone()));
    let mut stages: Vec<Stage> =
        names.enumerate().map(|(i, name)| Stage { name, second: i > 0, folds: vec![] }).collect();
    for fold in FOLDS {
        let at = |template: &str| PathBuf::from(template.replace("{fold}", fold));
        let split = icpr.fold(&LeftOut::Source(fold.into()))?;
        let weights = at(&args.segmenter);
        let bytes = std::fs::read(&weights).with_context(|| weights.display().to_string())?;
        let inner = TorchSegmenter::open(&weights, &args.device)?;
        let mut segmenter = Remembering::new(
            inner,
            args.cache.clone(),
            artifact::digest::sha256(&bytes).into_bytes(),
        );
        let mut classifiers = seconds
            .iter()
            .map(|(_, path)| {
                let net = TorchClassifier::open(&at(path), &args.device)?;
                let recipe = candidates.recipe(Some((args.crop, net.spec.input)))?;
                Ok((Symmetric::new(net, args.symmetries), recipe))
            })
            .collect::<Result<Vec<_>>>()?;
        let mut cases: Vec<Vec<ImageCase>> = vec![vec![]; stages.len()];
        for scene in &split.validation {
            let path = image_of(&args.data, scene);
            segmenter.forget();
            let first = candidates.recipe(None)?;
            let found = detect(&path, &first, &mut segmenter, None)?;
            eprintln!("{}: {} candidates", scene.name, found.len());
            cases[0].push(case(scene, found));
            for (i, (c, both)) in classifiers.iter_mut().enumerate() {
                let c: &mut dyn Classifier = c;
                let found = detect(&path, both, &mut segmenter, Some(c))?;
                cases[i + 1].push(case(scene, found));
            }
        }
        for (stage, cases) in stages.iter_mut().zip(cases) {
            stage.folds.push((fold.to_string(), cases));
        }
    }
    let settings = Settings {
        candidates,
        crop: args.crop,
        symmetries: args.symmetries,
        rule: args.rule,
        frame_mpp: Some(APERIO_MPP),
    };
    let report = calibrate::report(&stages, &settings)?;
    report.write(&args.out)?;
    println!("{}", report.markdown);
    Ok(())
}
