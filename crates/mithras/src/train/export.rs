//! Final weights and a calibrated operating point as a model package.

use super::frames::{STRIDE, WINDOW};
use super::{DetectorError, Result};
use artifact::{digest, file};
use infer::card::{
    CandidateCard, CandidateMethod, ClassifierCard, ModelCard, SCHEMA, SegmenterCard,
};
use mitosis::{Mpp, OperatingPoint};
use net::onnx::{self, ExportOptions, WeightKind};
use serde_json::Value;
use std::path::{Path, PathBuf};
use train::port::{TorchClassifier, TorchSegmenter};

/// What goes into a package.
#[derive(Clone, Debug)]
pub struct Package {
    /// Weights of the final segmenter.
    pub segmenter: PathBuf,
    /// Weights of the final classifier.
    pub classifier: PathBuf,
    /// `calibration.json`.
    pub calibration: PathBuf,
    /// The second stage's name there.
    pub stage: String,
    /// What the card says about the training.
    pub training: toml::Table,
    /// Licence of the weights.
    pub license: String,
    /// Name of the package.
    pub name: String,
    /// Keep f32 weights instead of f16.
    pub f32: bool,
}

fn put(path: &Path, bytes: &[u8]) -> Result<String> {
    file::write(path, bytes)?;
    Ok(digest::sha256(bytes))
}

/// A number of the calibration.
fn number(calibration: &Value, path: &Path, keys: &[&str]) -> Result<f64> {
    let found = keys.iter().fold(calibration, |v, k| &v[*k]);
    found.as_f64().ok_or_else(|| DetectorError::file(path, format!("has no {}", keys.join("."))))
}

/// Writes a package into a folder: ONNX files and their card, which is read back.
///
/// # Errors
/// Weights, calibration or stage that are not there, or a card that would be refused.
pub fn package(p: &Package, out: &Path) -> Result<()> {
    let bad = |reason: String| DetectorError::file(&p.calibration, reason);
    let text = std::fs::read(&p.calibration).map_err(DetectorError::io(&p.calibration))?;
    let calibration: Value = serde_json::from_slice(&text).map_err(|e| bad(e.to_string()))?;
    let stage = &calibration["stages"][&p.stage];
    let point: OperatingPoint = serde_json::from_value(stage["operating_point"].clone())
        .map_err(|e| bad(format!("has no stage `{}` ({e})", p.stage)))?;
    let segmenter = TorchSegmenter::open(&p.segmenter, "cpu")?;
    let classifier = TorchClassifier::open(&p.classifier, "cpu")?;
    std::fs::create_dir_all(out).map_err(DetectorError::io(out))?;
    let options = ExportOptions {
        weights: if p.f32 { WeightKind::F32 } else { WeightKind::F16 },
        metadata: vec![],
    };
    let (s, c) = (&segmenter.spec, &classifier.spec);
    let seg_hash = put(&out.join("segmenter.onnx"), &onnx::unet(segmenter.net(), &options))?;
    let bytes = onnx::classifier(classifier.net(), i64::from(c.input), &options)?;
    let cls_hash = put(&out.join("classifier.onnx"), &bytes)?;
    let get = |keys: &[&str]| number(&calibration, &p.calibration, keys);
    let mut training = p.training.clone();
    let mut note = |key: &str, value: &str| {
        training.insert(key.into(), toml::Value::String(value.into()));
    };
    note("segmenter_preset_sha256", &s.preset_hash);
    note("segmenter_corpus_sha256", &s.corpus_digest);
    note("classifier_preset_sha256", &c.preset_hash);
    note("classifier_corpus_sha256", &c.corpus_digest);
    let mpp = |v: f64, file: &Path| Mpp::new(v).map_err(|e| DetectorError::file(file, e));
    let card = ModelCard {
        schema: SCHEMA,
        name: p.name.clone(),
        license: p.license.clone(),
        segmenter: Some(SegmenterCard {
            file: "segmenter.onnx".into(),
            sha256: seg_hash,
            architecture: s.architecture.clone(),
            mpp: mpp(s.mpp, &p.segmenter)?,
            window: WINDOW as usize,
            stride: STRIDE as usize,
            mean: s.mean,
            std: s.std,
        }),
        candidates: Some(CandidateCard {
            method: CandidateMethod::Regions,
            threshold: get(&["candidates", "threshold"])? as f32,
            opening_radius: get(&["candidates", "opening_radius"])? as u32,
            min_area_px: get(&["candidates", "min_area_px"])? as u32,
            min_distance_px: None,
        }),
        classifier: Some(ClassifierCard {
            file: "classifier.onnx".into(),
            sha256: cls_hash,
            architecture: c.architecture.clone(),
            mpp: mpp(c.mpp, &p.classifier)?,
            crop: get(&["crop"])? as usize,
            input: c.input as usize,
            mean: c.mean,
            std: c.std,
            classes: c.classes.clone(),
            positive: train::finetune::CLASSES[1].into(),
            symmetries: get(&["symmetries"])? as u8,
            threshold: None,
        }),
        operating_point: Some(point),
        training: Some(training),
        results: Some(results(&calibration, &p.stage)),
    };
    put(&out.join("card.toml"), card.to_toml()?.as_bytes())?;
    infer::ModelPackage::open(out)?;
    Ok(())
}

/// What both ways to detect reach, for the card.
fn results(calibration: &Value, wanted: &str) -> toml::Table {
    let mut results = toml::Table::new();
    for (name, stage) in calibration["stages"].as_object().into_iter().flatten() {
        if name != wanted && name != super::calibrate::FIRST {
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
            let key = if name == wanted { "two_stage" } else { "segmentation_only" };
            results.insert(format!("{key}_{rule}"), toml::Value::Table(t));
        }
    }
    results
}
