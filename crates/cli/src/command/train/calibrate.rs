//! `mithras train calibrate`: one threshold pair over the left-out folds (D5), and what it reaches.

use super::frames::{CandidateArgs, Remembering, detect, image_of, resolution};
use super::learn::FOLDS;
use anyhow::{Context, Result};
use artifact::digest::{Digest, Sha256};
use artifact::file::Lock;
use corpus::crops::{MarkKind, Scene};
use corpus::fold::LeftOut;
use corpus::icpr::{APERIO_MPP, Icpr};
use mitosis::matching::{Case, Fold, Rule, Scored, Tally, calibrate};
use mitosis::{Classifier, Detection, Microns, Mpp, OperatingPoint, Point, Symmetric};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
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

/// Matching radius (D6): 30 px at 0.25 um/px.
const RADIUS: Microns = Microns(7.5);

fn scored(detections: &[Detection], second: bool) -> Vec<Scored> {
    detections
        .iter()
        .map(|d| Scored {
            at: resolution().to_physical(d.candidate.centroid),
            s_seg: d.candidate.s_seg,
            s_cls: d.s_cls.filter(|_| second),
        })
        .collect()
}

fn case(scene: &Scene, detections: &[Detection], second: bool) -> Case {
    // Marks are kept at 0.25 um/px.
    let um = |v: f32| f64::from(v) * Mpp::PAPER.get();
    let figures = scene.marks.iter().filter(|m| m.kind == MarkKind::Figure);
    Case {
        name: scene.name.clone(),
        truth: figures.map(|m| Point::new(um(m.x), um(m.y))).collect(),
        candidates: scored(detections, second),
    }
}

fn shares(t: &Tally) -> [f64; 3] {
    [t.f1(), t.precision(), t.recall()].map(|v| v.unwrap_or(0.0))
}

fn mean_sd(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let ss: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    (mean, if values.len() > 1 { (ss / (n - 1.0)).sqrt() } else { f64::NAN })
}

fn table(folds: &[Fold], point: &OperatingPoint, rule: Rule, md: &mut String) -> Result<Value> {
    let mut rows = vec![];
    for fold in folds {
        let mut tally = Tally::default();
        for case in &fold.cases {
            tally += case.tally(point, RADIUS, rule)?;
        }
        rows.push((fold.name.clone(), tally));
    }
    let pooled: Tally = rows.iter().map(|r| r.1).sum();
    writeln!(md, "\nMatching rule `{rule}`, radius {} um:\n", RADIUS.0)?;
    writeln!(
        md,
        "| left out | TP | FP | FN | F1 | precision | recall |\n|---|---|---|---|---|---|---|"
    )?;
    let mut list = vec![];
    for (name, t) in rows.iter().chain([&("pooled".to_string(), pooled)]) {
        let [f1, p, r] = shares(t);
        writeln!(md, "| {name} | {} | {} | {} | {f1:.3} | {p:.3} | {r:.3} |", t.tp, t.fp, t.fn_)?;
        list.push(json!({"left_out": name, "tp": t.tp, "fp": t.fp, "fn": t.fn_,
            "f1": f1, "precision": p, "recall": r}));
    }
    let each: Vec<[f64; 3]> = rows.iter().map(|r| shares(&r.1)).collect();
    let of = |i: usize| mean_sd(&each.iter().map(|e| e[i]).collect::<Vec<_>>());
    let [f1, p, r] = [of(0), of(1), of(2)];
    writeln!(
        md,
        "| mean (sample SD) | | | | {:.3} ({:.3}) | {:.3} ({:.3}) | {:.3} ({:.3}) |",
        f1.0, f1.1, p.0, p.1, r.0, r.1
    )?;
    Ok(json!({"folds": list, "f1_mean": f1.0, "f1_sd": f1.1, "precision_mean": p.0,
        "precision_sd": p.1, "recall_mean": r.0, "recall_sd": r.1}))
}

struct Stage {
    name: String,
    second: bool,
    /// Per fold, per frame.
    found: Vec<Vec<Vec<Detection>>>,
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
    let names =
        std::iter::once("segmentation only".to_string()).chain(seconds.iter().map(|s| s.0.clone()));
    let mut stages: Vec<Stage> =
        names.enumerate().map(|(i, name)| Stage { name, second: i > 0, found: vec![] }).collect();
    let mut scenes: Vec<Vec<Scene>> = vec![];
    for fold in FOLDS {
        let at = |template: &str| PathBuf::from(template.replace("{fold}", fold));
        let split = icpr.fold(&LeftOut::Source(fold.into()))?;
        let weights = at(&args.segmenter);
        let bytes = std::fs::read(&weights).with_context(|| weights.display().to_string())?;
        let inner = TorchSegmenter::open(&weights, &args.device)?;
        let mut segmenter =
            Remembering::new(inner, args.cache.clone(), Sha256::digest(&bytes).to_vec());
        let mut classifiers = seconds
            .iter()
            .map(|(_, path)| {
                let net = TorchClassifier::open(&at(path), &args.device)?;
                let recipe = args.candidates.recipe(Some((args.crop, net.spec.input)))?;
                Ok((Symmetric::new(net, args.symmetries), recipe))
            })
            .collect::<Result<Vec<_>>>()?;
        let mut found = vec![vec![]; stages.len()];
        for scene in &split.validation {
            let path = image_of(&args.data, scene);
            segmenter.forget();
            let first = args.candidates.recipe(None)?;
            found[0].push(detect(&path, &first, &mut segmenter, None)?);
            for (i, (c, both)) in classifiers.iter_mut().enumerate() {
                let c: &mut dyn Classifier = c;
                found[i + 1].push(detect(&path, both, &mut segmenter, Some(c))?);
            }
            eprintln!("{}: {} candidates", scene.name, found[0].last().map_or(0, Vec::len));
        }
        for (stage, found) in stages.iter_mut().zip(found) {
            stage.found.push(found);
        }
        scenes.push(split.validation);
    }
    report(&args, &stages, &scenes)
}

fn folds_of(stage: &Stage, scenes: &[Vec<Scene>]) -> Vec<Fold> {
    FOLDS
        .iter()
        .zip(scenes.iter().zip(&stage.found))
        .map(|(name, (scenes, found))| Fold {
            name: (*name).to_string(),
            cases: scenes.iter().zip(found).map(|(s, d)| case(s, d, stage.second)).collect(),
        })
        .collect()
}

fn write(path: &Path, text: &str) -> Result<()> {
    Ok(artifact::file::write(path, text.as_bytes())?)
}

fn report(args: &Args, stages: &[Stage], scenes: &[Vec<Scene>]) -> Result<()> {
    let mut md = String::new();
    let mut csv = String::from("stage,left_out,frame,x_px,y_px,s_seg,s_cls\n");
    let mut results = serde_json::Map::new();
    for stage in stages {
        let folds = folds_of(stage, scenes);
        let chosen = calibrate(&folds, RADIUS, args.rule)?;
        writeln!(
            md,
            "\n### {}\n\nThresholds: seg {:.4}, cls {:.4} ({}).",
            stage.name,
            chosen.point.seg.get(),
            chosen.point.cls.get(),
            chosen.point.provenance
        )?;
        let mut rules = serde_json::Map::new();
        for rule in [Rule::Midog, Rule::Optimal] {
            rules.insert(rule.to_string(), table(&folds, &chosen.point, rule, &mut md)?);
        }
        results
            .insert(stage.name.clone(), json!({"operating_point": chosen.point, "rules": rules}));
        for ((fold, scenes), found) in FOLDS.iter().zip(scenes).zip(&stage.found) {
            for (scene, detections) in scenes.iter().zip(found) {
                for d in detections {
                    let c = d.candidate.centroid;
                    let cls = d.s_cls.map(|s| s.get().to_string()).unwrap_or_default();
                    writeln!(
                        csv,
                        "{},{fold},{},{:.2},{:.2},{},{cls}",
                        stage.name,
                        scene.name,
                        c.x,
                        c.y,
                        d.candidate.s_seg.get()
                    )?;
                }
            }
        }
    }
    let json = json!({
        "candidates": {"method": "regions", "threshold": args.candidates.threshold,
            "opening_radius": args.candidates.opening_radius,
            "min_area_px": args.candidates.min_area},
        "crop": args.crop, "symmetries": args.symmetries, "rule": args.rule.to_string(), "radius_um": RADIUS.0,
        "frame_mpp": APERIO_MPP, "stages": results,
    });
    write(&args.out.join("calibration.json"), &serde_json::to_string_pretty(&json)?)?;
    write(&args.out.join("calibration.md"), &md)?;
    write(&args.out.join("candidates.csv"), &csv)?;
    println!("{md}");
    Ok(())
}
