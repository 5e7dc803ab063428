//! `mithras train export`: final weights and a calibrated operating point to a model package.

use super::frames::{CandidateArgs, STRIDE, WINDOW};
use anyhow::{Context, Result};
use infer::card::{
    CandidateCard, CandidateMethod, ClassifierCard, ModelCard, SCHEMA, SegmenterCard,
};
use mithras::robustness::point::{Chosen, NamedPoint};
use mitosis::{Mpp, OperatingPoint, Score};
use net::onnx::{self, ExportOptions, WeightKind};
use std::collections::BTreeMap;
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
    /// What `mithras evaluate operating-point` wrote: its scale goes into the second stage's last
    /// layer, its points into the card [default: no scale, and a point that nothing was chosen by]
    #[arg(long, value_name = "JSON")]
    points: Option<PathBuf>,
    #[command(flatten)]
    candidates: CandidateArgs,
    /// Side of the second stage's crops, px at 0.25 um/px
    #[arg(long, default_value_t = 64)]
    crop: usize,
    /// Flips and quarter turns of a crop whose probabilities are averaged
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=8))]
    symmetries: u8,
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
    artifact::file::write(path, bytes)?;
    Ok(artifact::digest::sha256(bytes))
}

/// On what a point's figures rest.
fn provenance(chosen: &Chosen, p: &NamedPoint) -> String {
    format!(
        "chosen over the left-out slides {} and {} perturbations together: F1 {:.3} clean, {:.3} \
         mean, {:.3} worst ({}); rule midog, radius 7.5 um",
        chosen.folds.join(", "),
        chosen.perturbations.len() - 1,
        p.f1_clean,
        p.f1_mean,
        p.f1_worst,
        p.worst
    )
}

/// What was measured on left-out slides, for the card.
fn results(chosen: &Chosen) -> Result<toml::Table> {
    let left_out = toml::Table::try_from(&chosen.left_out)?;
    let mut scale = toml::Table::new();
    for (key, value) in [
        ("slope", chosen.slope),
        ("offset", chosen.offset),
        ("ece_before", chosen.ece_before),
        ("ece", chosen.ece_after),
        ("auc_clean", chosen.auc_clean),
    ] {
        scale.insert(key.into(), toml::Value::Float(value));
    }
    Ok(toml::Table::from_iter([
        ("left_out_slides".to_string(), toml::Value::Table(left_out)),
        ("calibration".to_string(), toml::Value::Table(scale)),
    ]))
}

pub fn run(args: Args) -> Result<()> {
    let chosen = match &args.points {
        Some(path) => Some(artifact::json::read::<Chosen>(path)?),
        None => None,
    };
    let segmenter = TorchSegmenter::open(&args.segmenter, "cpu")?;
    let mut classifier = TorchClassifier::open(&args.classifier, "cpu")?;
    if let Some(c) = &chosen {
        classifier = classifier.scaled(c.slope, c.offset)?;
    }
    let points: BTreeMap<String, infer::card::NamedPoint> = match &chosen {
        None => BTreeMap::new(),
        Some(c) => {
            let card = |p: &NamedPoint| -> Result<infer::card::NamedPoint> {
                Ok(infer::card::NamedPoint {
                    seg: Score::new(p.seg)?,
                    cls: Score::new(p.cls)?,
                    precision: p.precision,
                    recall: p.recall,
                    provenance: provenance(c, p),
                })
            };
            let all = c.points.iter().map(|(name, p)| Ok((name.clone(), card(p)?)));
            all.collect::<Result<_>>()?
        }
    };
    let point = match points.get("balanced") {
        Some(p) => OperatingPoint { seg: p.seg, cls: p.cls, provenance: p.provenance.clone() },
        None => OperatingPoint {
            seg: Score::new(0.3)?,
            cls: Score::new(0.5)?,
            provenance: "not chosen: for measuring a fold before the choice".into(),
        },
    };
    std::fs::create_dir_all(&args.out).with_context(|| args.out.display().to_string())?;
    let options = ExportOptions {
        weights: if args.f32 { WeightKind::F32 } else { WeightKind::F16 },
        metadata: vec![],
    };
    let (s, c) = (&segmenter.spec, &classifier.spec);
    let seg_hash = put(&args.out.join("segmenter.onnx"), &onnx::unet(segmenter.net(), &options))?;
    let bytes = onnx::classifier(classifier.net(), i64::from(c.input), &options)?;
    let cls_hash = put(&args.out.join("classifier.onnx"), &bytes)?;
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
    let results = chosen.as_ref().map(results).transpose()?;
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
            threshold: args.candidates.threshold,
            opening_radius: args.candidates.opening_radius,
            min_area_px: args.candidates.min_area,
            min_distance_px: None,
        }),
        classifier: Some(ClassifierCard {
            file: "classifier.onnx".into(),
            sha256: cls_hash,
            architecture: c.architecture.clone(),
            mpp: Mpp::new(c.mpp)?,
            crop: args.crop,
            input: c.input as usize,
            mean: c.mean,
            std: c.std,
            classes: c.classes.clone(),
            positive: train::finetune::CLASSES[1].into(),
            symmetries: args.symmetries,
            threshold: None,
        }),
        operating_point: Some(point),
        operating_points: points,
        training: Some(training),
        results,
    };
    put(&args.out.join("card.toml"), card.to_toml()?.as_bytes())?;
    infer::ModelPackage::open(&args.out)?;
    println!("{}", args.out.display());
    Ok(())
}
