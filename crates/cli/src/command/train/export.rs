//! `mithras train export`: final weights and a calibrated operating point to a model package.

use super::frames::{STRIDE, WINDOW};
use anyhow::{Context, Result};
use infer::card::{
    CandidateCard, CandidateMethod, ClassifierCard, ModelCard, SCHEMA, SegmenterCard,
};
use mitosis::{Mpp, OperatingPoint};
use net::onnx::{self, ExportOptions, WeightKind};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use train::port::{TorchClassifier, TorchSegmenter};

/// Write a model package: ONNX files with f16 weights, and their card
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Weights of the final segmenter (model.safetensors)
    #[arg(long, value_name = "FILE")]
    segmenter: PathBuf,
    /// Weights of the final classifier
    #[arg(long, value_name = "FILE")]
    classifier: PathBuf,
    /// calibration.json of `mithras train calibrate`
    #[arg(long, value_name = "FILE")]
    calibration: PathBuf,
    /// The second stage's NAME there
    #[arg(long, value_name = "NAME")]
    stage: String,
    /// TOML file with what the card says about its training ([training])
    #[arg(long, value_name = "FILE")]
    training: Option<PathBuf>,
    /// Licence of the weights
    #[arg(long)]
    license: String,
    /// Name of the package
    #[arg(long, default_value = "mithras-tiny")]
    name: String,
    /// Package folder
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Keep f32 weights
    #[arg(long)]
    f32: bool,
}

fn put(path: &Path, bytes: &[u8]) -> Result<String> {
    mithras::file::write(path, bytes)?;
    Ok(Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect())
}

pub fn run(args: Args) -> Result<()> {
    let text = std::fs::read_to_string(&args.calibration)
        .with_context(|| args.calibration.display().to_string())?;
    let calibration: Value = serde_json::from_str(&text)?;
    let stage = &calibration["stages"][&args.stage];
    let point: OperatingPoint = serde_json::from_value(stage["operating_point"].clone())
        .with_context(|| format!("{} has no stage `{}`", args.calibration.display(), args.stage))?;
    let segmenter = TorchSegmenter::open(&args.segmenter, "cpu")?;
    let classifier = TorchClassifier::open(&args.classifier, "cpu")?;
    std::fs::create_dir_all(&args.out).with_context(|| args.out.display().to_string())?;
    let options = ExportOptions {
        weights: if args.f32 { WeightKind::F32 } else { WeightKind::F16 },
        metadata: vec![],
    };
    let (s, c) = (&segmenter.spec, &classifier.spec);
    let seg_hash = put(&args.out.join("segmenter.onnx"), &onnx::unet(segmenter.net(), &options))?;
    let bytes = onnx::classifier(classifier.net(), i64::from(c.input), &options)?;
    let cls_hash = put(&args.out.join("classifier.onnx"), &bytes)?;
    let number = |key: &str| {
        calibration["candidates"][key].as_f64().with_context(|| format!("candidates.{key}"))
    };
    let mut training = match &args.training {
        Some(path) => std::fs::read_to_string(path)
            .with_context(|| path.display().to_string())?
            .parse::<toml::Table>()?,
        None => toml::Table::new(),
    };
    let mut note = |key: &str, value: &str| {
        training.insert(key.into(), toml::Value::String(value.into()));
    };
    note("segmenter_preset_sha256", &s.preset_hash);
    note("segmenter_corpus_sha256", &s.corpus_digest);
    note("classifier_preset_sha256", &c.preset_hash);
    note("classifier_corpus_sha256", &c.corpus_digest);
    let mut results = toml::Table::new();
    for (name, stage) in calibration["stages"].as_object().into_iter().flatten() {
        if *name != args.stage && name != "segmentation only" {
            continue;
        }
        for (rule, figures) in stage["rules"].as_object().into_iter().flatten() {
            let pooled = figures["folds"].as_array().and_then(|f| f.last()).cloned();
            let pooled = pooled.unwrap_or_default();
            let mut t = toml::Table::new();
            for key in ["f1", "precision", "recall"] {
                let all = pooled[key].as_f64().unwrap_or(f64::NAN);
                t.insert(format!("{key}_pooled"), toml::Value::Float(all));
                for part in ["mean", "sd"] {
                    let key = format!("{key}_{part}");
                    let value = figures[&key].as_f64().unwrap_or(f64::NAN);
                    t.insert(key, toml::Value::Float(value));
                }
            }
            let key = if *name == args.stage { "two_stage" } else { "segmentation_only" };
            results.insert(format!("{key}_{rule}"), toml::Value::Table(t));
        }
    }
    let card = ModelCard {
        schema: SCHEMA,
        name: args.name.clone(),
        license: args.license.clone(),
        segmenter: Some(SegmenterCard {
            file: "segmenter.onnx".into(),
            sha256: seg_hash,
            architecture: s.architecture.clone(),
            mpp: Mpp::new(s.mpp)?,
            window: WINDOW as usize,
            stride: STRIDE as usize,
            mean: s.mean,
            std: s.std,
        }),
        candidates: Some(CandidateCard {
            method: CandidateMethod::Regions,
            threshold: number("threshold")? as f32,
            opening_radius: number("opening_radius")? as u32,
            min_area_px: number("min_area_px")? as u32,
            min_distance_px: None,
        }),
        classifier: Some(ClassifierCard {
            file: "classifier.onnx".into(),
            sha256: cls_hash,
            architecture: c.architecture.clone(),
            mpp: Mpp::new(c.mpp)?,
            crop: calibration["crop"].as_u64().context("crop")? as usize,
            input: c.input as usize,
            mean: c.mean,
            std: c.std,
            classes: c.classes.clone(),
            positive: train::finetune::CLASSES[1].into(),
            symmetries: calibration["symmetries"].as_u64().context("symmetries")? as u8,
            threshold: None,
        }),
        operating_point: Some(point),
        resolution: None,
        training: Some(training),
        results: Some(results),
    };
    put(&args.out.join("card.toml"), card.to_toml()?.as_bytes())?;
    infer::ModelPackage::open(&args.out)?;
    println!("{}", args.out.display());
    Ok(())
}
