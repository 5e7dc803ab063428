//! Final weights and a calibrated operating point as a model package.

use super::calibrate::FIRST;
use super::frames::{Candidates, STRIDE, WINDOW};
use super::resolution::covered;
use super::{Result, TrainingError};
use base::{digest, file};
use evaluation::robustness::point::Chosen;
use evaluation::robustness::{Robustness, RobustnessError};
use infer::card::{CandidateCard, ClassifierCard, ModelCard, SegmenterCard};
use mitosis::{Mpp, OperatingPoint, Score};
use net::checkpoint::TrainedOn;
use net::onnx::{ExportOptions, WeightKind};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use train::port::{TorchClassifier, TorchSegmenter};

/// What goes into a package.
#[derive(Clone, Debug)]
pub struct Package {
    /// Weights of the final segmenter.
    pub segmenter: PathBuf,
    /// Weights of the final classifier.
    pub classifier: PathBuf,
    /// Further trainings of the classifier, whose weights are averaged with it
    /// ([`net::checkpoint::load_mean`]).
    pub averaged: Vec<PathBuf>,
    /// Where the operating point comes from.
    pub choice: Choice,
    /// The threshold of the first stage alone, where one was chosen ([`segmentation_point`]).
    pub segmentation: Option<OperatingPoint>,
    /// The card's entry about the training.
    pub training: toml::Table,
    /// Licence of the weights.
    pub license: String,
    /// Name of the package.
    pub name: String,
    /// Keep f32 weights instead of f16.
    pub f32: bool,
}

/// Where a package's operating point comes from.
#[derive(Clone, Debug)]
pub enum Choice {
    /// One pair over the folds' images as they are.
    Calibration {
        /// `calibration.json`.
        file: PathBuf,
        /// The second stage's name there.
        stage: String,
        /// Of candidates closer than this, um, only the likeliest is kept: for files of older versions, which do not
        /// record it.
        min_separation_um: Option<f64>,
    },
    /// Named points over folds and perturbations, on scores scaled in the network's last layer.
    Points {
        /// What was chosen; `None` for a fold's package that is to be measured first.
        chosen: Option<Box<Chosen>>,
        /// The scores of the networks, packaged without points, on the tissue that set the folds' scale.
        tissue: Option<Box<Robustness>>,
        /// How candidates are taken.
        candidates: Candidates,
        /// Side of the second stage's crops, px at 0.25 um/px.
        crop: usize,
        /// Flips and quarter turns that are averaged.
        symmetries: u8,
    },
    /// That of the package a training started from.
    Kept {
        /// The point, and why it was not chosen again.
        point: OperatingPoint,
        /// How candidates are taken.
        candidates: CandidateCard,
        /// Side of the second stage's crops, px at 0.25 um/px.
        crop: usize,
        /// Flips and quarter turns that are averaged.
        symmetries: u8,
    },
}

/// What a choice comes to.
struct Settled {
    platt: Option<(f64, f64)>,
    candidates: CandidateCard,
    crop: usize,
    symmetries: u8,
    point: OperatingPoint,
    points: BTreeMap<String, infer::card::NamedPoint>,
    results: Option<toml::Table>,
}

/// As a training takes them: in one place.
fn candidate_card(c: &Candidates) -> CandidateCard {
    CandidateCard {
        method: c.method(),
        threshold: c.threshold,
        opening_radius: c.opening_radius,
        min_area_px: c.min_area_px,
        min_distance_px: c.min_distance_px,
        min_separation_um: c.min_separation_um,
    }
}

/// The threshold that a `calibration.json` has for the first stage alone.
///
/// # Errors
/// A file that cannot be read, or without that stage.
pub fn segmentation_point(file: &Path) -> Result<OperatingPoint> {
    Ok(calibrated(file, FIRST, None)?.point)
}

fn calibrated(file: &Path, stage: &str, stated_um: Option<f64>) -> Result<Settled> {
    let bad = |reason: String| TrainingError::file(file, reason);
    let text = file::read_whole(file).map_err(TrainingError::io(file))?;
    let calibration: Value = base::json::parse(&text).map_err(|e| bad(e.to_string()))?;
    let point = calibration["stages"][stage]["operating_point"].clone();
    let point =
        serde_json::from_value(point).map_err(|e| bad(format!("has no stage `{stage}` ({e})")))?;
    let get = |keys: &[&str]| number(&calibration, file, keys);
    let own = &calibration["candidates"];
    // Earlier files have the earlier name; older ones do not record it.
    let recorded = own.get("min_separation_um").or_else(|| own.get("apart_um"));
    Ok(Settled {
        platt: None,
        candidates: candidate_card(&Candidates {
            min_distance_px: calibration["candidates"]["min_distance_px"]
                .as_u64()
                .and_then(|px| u32::try_from(px).ok()),
            threshold: get(&["candidates", "threshold"])? as f32,
            opening_radius: get(&["candidates", "opening_radius"])? as u32,
            min_area_px: get(&["candidates", "min_area_px"])? as u32,
            min_separation_um: match recorded {
                Some(recorded) => recorded.as_f64(),
                None => stated_um,
            },
        }),
        crop: get(&["crop"])? as usize,
        symmetries: get(&["symmetries"])? as u8,
        point,
        points: BTreeMap::new(),
        results: Some(results(&calibration, stage)),
    })
}

fn settle(choice: &Choice) -> Result<Settled> {
    match choice {
        Choice::Calibration { file, stage, min_separation_um } => {
            calibrated(file, stage, *min_separation_um)
        }
        Choice::Points { chosen, tissue, candidates, crop, symmetries } => {
            let invalid = |e: RobustnessError| TrainingError::Invalid(e.to_string());
            let scale = chosen.as_ref().map(|c| c.calibrated_scale(tissue.as_deref())).transpose();
            let scale = scale.map_err(invalid)?;
            let (points, results) = match chosen.as_ref().zip(scale.as_ref()) {
                Some((c, scale)) => {
                    c.for_card(scale).map(|(p, r)| (p, Some(r))).map_err(invalid)?
                }
                None => (BTreeMap::new(), None),
            };
            let point = match points.get("balanced") {
                Some(p) => {
                    OperatingPoint { seg: p.seg, cls: p.cls, provenance: p.provenance.clone() }
                }
                None => OperatingPoint {
                    seg: Score::literal(0.3),
                    cls: Score::literal(0.5),
                    provenance: "not chosen: for measuring a fold before the choice".into(),
                },
            };
            Ok(Settled {
                platt: scale.map(|s| (s.slope, s.offset)),
                candidates: candidate_card(candidates),
                crop: *crop,
                symmetries: *symmetries,
                point,
                points,
                results,
            })
        }
        Choice::Kept { point, candidates, crop, symmetries } => Ok(Settled {
            platt: None,
            candidates: candidates.clone(),
            crop: *crop,
            symmetries: *symmetries,
            point: point.clone(),
            points: BTreeMap::new(),
            results: None,
        }),
    }
}

fn put(path: &Path, bytes: &[u8]) -> Result<String> {
    file::write(path, bytes)?;
    Ok(digest::sha256(bytes))
}

/// A number of the calibration.
fn number(calibration: &Value, path: &Path, keys: &[&str]) -> Result<f64> {
    let found = keys.iter().fold(calibration, |v, k| &v[*k]);
    found.as_f64().ok_or_else(|| TrainingError::file(path, format!("has no {}", keys.join("."))))
}

/// Names the slides and patients that models were trained on, so that an evaluation on them is noticed.
pub fn note_slides(training: &mut toml::Table, specs: &[&net::checkpoint::Spec]) {
    let mut all = TrainedOn::default();
    specs.iter().filter_map(|s| s.trained_on.as_ref()).for_each(|list| all.extend(list));
    for (key, names) in [("slides", all.slides), ("patients", all.patients)] {
        if !names.is_empty() {
            let names = names.into_iter().map(toml::Value::String).collect();
            training.insert(key.into(), toml::Value::Array(names));
        }
    }
}

/// Records the weights that no file supplied, if a training loaded only a part of one, and the networks of a mean.
pub fn note_weights(training: &mut toml::Table, prefix: &str, spec: &net::checkpoint::Spec) {
    for key in [train::run::RANDOM, train::port::MEAN_OF] {
        let words = spec.notes[key].as_array().into_iter().flatten();
        let words: Vec<toml::Value> =
            words.filter_map(|n| Some(toml::Value::String(n.as_str()?.to_owned()))).collect();
        if !words.is_empty() {
            training.insert(format!("{prefix}{key}"), toml::Value::Array(words));
        }
    }
}

/// Writes a package into a folder: ONNX files and their card, which is read back.
///
/// # Errors
/// Weights, calibration or stage that are not there, or a card that would be refused.
pub fn package(p: &Package, out: &Path) -> Result<()> {
    let settled = settle(&p.choice)?;
    let segmenter = TorchSegmenter::open(&p.segmenter, "cpu")?;
    let mut classifier = TorchClassifier::open_mean(&p.classifier, &p.averaged, "cpu")?;
    if let Some((slope, offset)) = settled.platt {
        classifier = classifier.scaled(slope, offset)?;
    }
    std::fs::create_dir_all(out).map_err(TrainingError::io(out))?;
    let options = ExportOptions {
        weights: if p.f32 { WeightKind::F32 } else { WeightKind::F16 },
        metadata: vec![],
    };
    let (s, c) = (&segmenter.spec, &classifier.spec);
    let seg_hash = put(&out.join("segmenter.onnx"), &segmenter.onnx(&options)?)?;
    let cls_hash = put(&out.join("classifier.onnx"), &classifier.onnx(&options)?)?;
    let mut training = p.training.clone();
    let mut note = |key: &str, value: &str| {
        training.insert(key.into(), toml::Value::String(value.into()));
    };
    note("segmenter_preset_sha256", &s.preset_hash);
    note("segmenter_corpus_sha256", &s.corpus_digest);
    note("classifier_preset_sha256", &c.preset_hash);
    note("classifier_corpus_sha256", &c.corpus_digest);
    for (stage, spec) in [("segmenter", s), ("classifier", c)] {
        note_weights(&mut training, &format!("{stage}_"), spec);
    }
    note_slides(&mut training, &[s, c]);
    let mpp = |v: f64, file: &Path| Mpp::new(v).map_err(|e| TrainingError::file(file, e));
    let seconds = std::iter::once(&p.classifier).chain(&p.averaged);
    let stages: Vec<&Path> =
        std::iter::once(&p.segmenter).chain(seconds).map(PathBuf::as_path).collect();
    let card = ModelCard {
        segmenter: Some(SegmenterCard {
            file: "segmenter.onnx".into(),
            sha256: seg_hash,
            architecture: s.architecture.clone(),
            mpp: mpp(s.mpp, &p.segmenter)?,
            window: WINDOW as usize,
            stride: STRIDE as usize,
            mean: s.mean,
            std: s.std,
            boxes: None,
        }),
        candidates: Some(settled.candidates),
        classifier: Some(ClassifierCard {
            file: "classifier.onnx".into(),
            sha256: cls_hash,
            architecture: c.architecture.clone(),
            mpp: mpp(c.mpp, &p.classifier)?,
            crop: settled.crop,
            input: c.input as usize,
            interpolation: Default::default(),
            mean: c.mean,
            std: c.std,
            classes: c.classes.clone(),
            positive: c.classes.last().cloned().unwrap_or_default(),
            outputs: vec![],
            scale: None,
            folds: vec![],
            symmetries: settled.symmetries,
            symmetries_from: None,
            bf16: false,
            threshold: None,
        }),
        operating_point: Some(settled.point),
        segmentation_point: p.segmentation.clone(),
        operating_points: settled.points,
        resolution: Some(covered(&stages)?),
        training: Some(training),
        results: settled.results,
        ..ModelCard::new(&p.name, &p.license)
    };
    put(&out.join("card.toml"), card.to_toml()?.as_bytes())?;
    infer::ModelPackage::open(out)?;
    Ok(())
}

/// What both ways to detect reach, for the card.
fn results(calibration: &Value, wanted: &str) -> toml::Table {
    let mut results = toml::Table::new();
    for (name, stage) in calibration["stages"].as_object().into_iter().flatten() {
        if name != wanted && name != FIRST {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Named;
    use crate::calibrate::{ImageCase, Settings, Stage, report};
    use mitosis::matching::Rule;
    use mitosis::{Candidate, Detection, Physical, Point, Resolution, ResolutionSource};
    use regions::Area;

    /// A figure at (10, 10) and one under an area to be ignored, both at 0.25 um/px, the first found.
    fn case() -> ImageCase {
        let found = Detection {
            candidate: Candidate { centroid: Point::new(10.0, 10.0), s_seg: Score::literal(0.9) },
            s_cls: Some(Score::literal(0.8)),
        };
        let at = |v: f64| Point::<Physical>::new(v * 0.25, v * 0.25);
        ImageCase {
            name: "a".into(),
            truth: vec![at(10.0), at(400.0)],
            resolution: Resolution { x: Mpp::PAPER, y: Mpp::PAPER, source: ResolutionSource::User },
            found: vec![found],
        }
        .without(&[Area { x0: 390.0, y0: 390.0, x1: 410.0, y1: 410.0 }])
    }

    #[test]
    fn a_card_has_the_separation_that_the_calibration_was_made_with() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("calibration.json");
        let stages = [FIRST, "second"].map(|name| Stage {
            name: name.into(),
            second: name != FIRST,
            folds: vec![Named { name: "0".into(), value: vec![case()] }],
        });
        let settled = |made: Option<f64>, stated: Option<f64>| {
            let candidates = Candidates {
                min_distance_px: None,
                threshold: 0.2,
                opening_radius: 1,
                min_area_px: 20,
                min_separation_um: made,
            };
            let settings = Settings { candidates, crop: 64, symmetries: 4, rule: Rule::Midog };
            report(&stages, &settings).unwrap().write(dir.path()).unwrap();
            let choice = Choice::Calibration {
                file: file.clone(),
                stage: "second".into(),
                min_separation_um: stated,
            };
            settle(&choice).unwrap()
        };
        let apart = |made, stated| settled(made, stated).candidates.min_separation_um;
        assert_eq!((apart(Some(12.0), None), apart(None, Some(12.0))), (Some(12.0), None));
        // An earlier file calls it otherwise, and an older one does not record it.
        let mut older: Value = base::json::read(&file).unwrap();
        older["candidates"].as_object_mut().unwrap().remove("min_separation_um").unwrap();
        let separation = |file_as_it_is: &Value| {
            std::fs::write(&file, file_as_it_is.to_string()).unwrap();
            calibrated(&file, "second", Some(8.0)).unwrap().candidates.min_separation_um
        };
        let mut earlier = older.clone();
        earlier["candidates"]["apart_um"] = 12.0.into();
        assert_eq!((separation(&earlier), separation(&older)), (Some(12.0), Some(8.0)));
        // A figure under an area to be ignored is not missed.
        let rows = &older["stages"]["second"]["rules"]["midog"]["folds"];
        assert_eq!((&rows[0]["tp"], &rows[0]["fn"]), (&1.into(), &0.into()));
    }
}
