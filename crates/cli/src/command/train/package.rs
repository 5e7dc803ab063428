//! `mithras train package`: a fold's classifier as a model package.

use super::protocol::operating_point;
use anyhow::{Context, Result};
use infer::card::{ClassifierCard, ModelCard, SCHEMA};
use mitosis::Mpp;
use net::onnx::{self, ExportOptions, WeightKind};
use std::path::PathBuf;
use train::port::TorchClassifier;
use train::protocol::{About, PREDICTIONS, fold_dir, tables};
use train::run::MODEL;

/// Write a classifier package: ONNX with f16 weights, and its card
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Run of `mithras train finetune` or `probe` with a task
    #[arg(long, value_name = "RUN")]
    run: PathBuf,
    /// Whose weights
    #[arg(long, value_name = "K", default_value_t = 0)]
    fold: usize,
    /// Package the coarser task: of ami-morph, typical or atypical, as sums over the morphologies
    #[arg(long)]
    coarse: bool,
    /// The class that counts as positive [default: the last of two, else the first]
    #[arg(long, value_name = "CLASS")]
    positive: Option<String>,
    /// TOML file with what the card says about training and results ([training], [results])
    #[arg(long, value_name = "FILE")]
    about: Option<PathBuf>,
    /// Licence of the weights
    #[arg(long)]
    license: String,
    /// Name of the package
    #[arg(long)]
    name: String,
    /// Package folder
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Keep f32 weights
    #[arg(long)]
    f32: bool,
}

pub fn run(args: Args) -> Result<()> {
    let about = About::read(&args.run)?;
    let weights = fold_dir(&args.run, args.fold).join(MODEL);
    let model = TorchClassifier::open(&weights, "cpu")?;
    let spec = &model.spec;
    let options = ExportOptions {
        weights: if args.f32 { WeightKind::F32 } else { WeightKind::F16 },
        metadata: vec![],
    };
    let coarser = about.task.coarser().filter(|_| args.coarse);
    anyhow::ensure!(
        coarser.is_some() == args.coarse,
        "--coarse: the run's task has no coarser one"
    );
    let classes = match coarser {
        Some(c) => c.classes.iter().map(|c| (*c).to_string()).collect(),
        None => spec.classes.clone(),
    };
    let size = i64::from(spec.input);
    let bytes = onnx::summed_classifier(model.net(), size, coarser.map(|c| c.of), &options)?;
    std::fs::create_dir_all(&args.out).with_context(|| args.out.display().to_string())?;
    artifact::file::write(&args.out.join("classifier.onnx"), &bytes)?;
    let sha256 = artifact::digest::sha256(&bytes);
    let mut said = match &args.about {
        Some(path) => std::fs::read_to_string(path)
            .with_context(|| path.display().to_string())?
            .parse::<toml::Table>()?,
        None => toml::Table::new(),
    };
    let mut take = |key: &str| match said.remove(key) {
        Some(toml::Value::Table(t)) => t,
        _ => toml::Table::new(),
    };
    let (mut training, results) = (take("training"), take("results"));
    for (key, value) in [
        ("preset_sha256", &about.preset_sha256),
        ("set_sha256", &about.set_sha256),
        ("folds_sha256", &about.folds_sha256),
        ("fold", &args.fold.to_string()),
    ] {
        training.insert(key.into(), toml::Value::String(value.clone()));
    }
    let usual = if classes.len() == 2 { classes.last() } else { classes.first() };
    let positive = args.positive.clone().or(usual.cloned()).context("the model has no classes")?;
    let table = tables(about.task, PREDICTIONS).remove(usize::from(args.coarse));
    let threshold = operating_point(&args.run, &table)?
        .filter(|(chosen_for, _)| *chosen_for == positive)
        .map(|(_, threshold)| threshold as f32);
    let card = ModelCard {
        schema: SCHEMA,
        name: args.name.clone(),
        license: args.license.clone(),
        segmenter: None,
        candidates: None,
        classifier: Some(ClassifierCard {
            file: "classifier.onnx".into(),
            sha256,
            architecture: spec.architecture.clone(),
            mpp: Mpp::new(spec.mpp)?,
            crop: about.crop,
            input: spec.input as usize,
            mean: spec.mean,
            std: spec.std,
            classes,
            positive,
            symmetries: about.symmetries,
            threshold,
        }),
        operating_point: None,
        operating_points: Default::default(),
        resolution: None,
        training: Some(training),
        results: (!results.is_empty()).then_some(results),
    };
    artifact::file::write(&args.out.join("card.toml"), card.to_toml()?.as_bytes())?;
    infer::ModelPackage::open(&args.out)?;
    println!("{}", args.out.display());
    Ok(())
}
