//! Classification protocols: fine-tuning and probing over folds of whole slides,
//! and the test part, scored once.
//!
//! ```text
//! RUN/protocol.json          task, classes, crop, folds, digests
//! RUN/items.csv              the items, with the digests of their pixels
//! RUN/folds.json             which slide is held out by which fold
//! RUN/fold-K/...             a run directory (see `run`)
//! RUN/fold-K/predictions.csv the held-out items of the fold
//! RUN/fold-K/notes.json      for the reader of its metrics, where there are any
//! RUN/fold-K/predictions-ami-br.csv  of `ami-morph`: the same as typical or atypical
//! RUN/final/model.safetensors  of fine-tuning: trained on all items (`--fold none`)
//! RUN/shortcuts.json         probing: shortcuts that separate a class
//! RUN/features/...           probing: the frozen encoder's features
//! RUN/NAME/...               probing with `[probes]`: a run for each
//! ```
//!
//! Training takes a [`TrainingSet`]; [`test()`] alone takes a [`TestSet`].

mod about;
mod finetune;
mod items;
mod predict;
mod preset;
mod probe;
mod shared;
mod teacher;

use std::path::Path;

use net::encoder::EncoderConfig;
use regions::fold::Fold;
use regions::folds::FoldManifest;
use regions::task::{Folds, TestSet, TrainingSet};

use crate::error::{Result, TrainError};
use crate::port::TorchClassifier;
use crate::preset::Preset;
use crate::ranks;
use crate::run::{MODEL, RunOptions};

pub use about::{About, FINAL, Part, fold_dir, read_fold_notes};
pub use items::Items;
pub use predict::{Prediction, tables, write as write_predictions};
use preset::Described as _;
pub use preset::{Augment, CropsPreset, Epochs, ProtocolData, read_task};
pub use probe::{ProbeEpochs, ProbeKind, ProbePreset, Probed};
pub use shared::PREDICTIONS;
use shared::{Sides, begin};

const FOLDS: &str = "folds.json";
/// How many folds a run has: those of `data.folds_file` where one is named.
///
/// # Errors
/// A file of folds that cannot be read.
pub fn fold_count(data: &ProtocolData) -> Result<usize> {
    match &data.folds_file {
        Some(file) => Ok(FoldManifest::read(file)?.folds.len()),
        None => Ok(data.folds),
    }
}

/// Reads a preset; a file of folds given with it takes the place of its `data.folds_file`.
///
/// # Errors
/// A preset that cannot be used, and a path of folds that is not UTF-8.
pub fn load<P: Preset>(path: &Path, changes: &[String], folds: Option<&Path>) -> Result<P> {
    let mut changes = changes.to_vec();
    if let Some(file) = folds {
        let text = file.to_str().ok_or_else(|| TrainError::run(file, "is not UTF-8"))?;
        changes.push(format!("data.folds_file={}", toml::Value::String(text.into())));
    }
    Ok(P::load(path, &changes)?)
}

/// The models that a word asks for: those of `all` folds, of one by its number, or with `none` left out.
///
/// # Errors
/// [`TrainError::Preset`] for anything else.
pub fn list_folds(word: &str, folds: usize) -> Result<Vec<Part>> {
    match (word, word.parse()) {
        ("all", _) => Ok((0..folds).map(Part::Fold).collect()),
        (_, Ok(part)) if (0..folds).map(Part::Fold).chain([Part::Final]).any(|p| p == part) => {
            Ok(vec![part])
        }
        _ => Err(TrainError::Preset {
            path: "fold".into(),
            reason: format!(
                "`{word}` is neither `all` nor `none` nor a number from 0 to {}",
                folds - 1
            ),
        }),
    }
}

/// The fold of a probe that a word asks for; none for `all` of them.
///
/// # Errors
/// As [`list_folds`], and for `none`: a probe leaves a fold out.
pub fn probed_fold(word: &str, folds: usize) -> Result<Option<usize>> {
    match list_folds(word, folds)?[..] {
        [Part::Final] => Err(TrainError::Preset {
            path: "fold".into(),
            reason: "a probe leaves a fold out, so it takes the number of a fold or `all`".into(),
        }),
        [Part::Fold(k)] if word != "all" => Ok(Some(k)),
        _ => Ok(None),
    }
}

/// The folds of a run: read where they are, made and written where not.
fn folds(run: &Path, set: &TrainingSet, data: &ProtocolData) -> Result<Folds> {
    std::fs::create_dir_all(run).map_err(|e| TrainError::run(run, e))?;
    let path = data.folds_file.clone().unwrap_or_else(|| run.join(FOLDS));
    if path.is_file() {
        let read = Folds::read(&path, set)?;
        if data.folds_file.is_some() {
            // Next to the models, as if they were this run's own: readers of the run look for them there.
            read.manifest().write_once(&run.join(FOLDS))?;
        }
        return Ok(read);
    }
    if data.folds_file.is_some() {
        return Err(TrainError::run(&path, "data.folds_file is not there"));
    }
    let made = Folds::new(set, data.folds, data.split_seed)?;
    made.write(&path)?;
    Ok(made)
}

fn check_classes(model: &EncoderConfig, set: &TrainingSet, preset: &str) -> Result<()> {
    let n = set.classes().len();
    if model.classes != n as i64 {
        return Err(TrainError::Preset {
            path: "model.classes".into(),
            reason: format!("is {}, {preset} has {n} classes", model.classes),
        });
    }
    Ok(())
}

/// Fine-tunes one model of a run: weights in `RUN/fold-k/model.safetensors`, the held-out items'
/// predictions next to them; or, on all items with nothing held out, the last weights in
/// `RUN/final/model.safetensors`, whose quality the folds of the same run estimate.
/// `options.out` is RUN.
///
/// # Errors
/// [`TrainError`]: preset, folds, run directory, or a loss that is not finite.
pub fn finetune(
    preset: &CropsPreset,
    set: &TrainingSet,
    part: impl Into<Part>,
    options: &RunOptions,
) -> Result<()> {
    check_classes(&preset.model, set, "the task")?;
    let manifest = folds(&options.out, set, &preset.data)?;
    let init_sha256 = about::init_sha256(preset.init, options)?;
    let about = About { init_sha256, ..preset.about(set, &manifest)? };
    begin(&options.out, &about, set)?;
    let part = part.into();
    let fold = match part {
        Part::Fold(k) => manifest.fold(k)?,
        Part::Final => Fold { train: (0..set.items().len()).collect(), validation: vec![] },
    };
    let sides = Sides { part, fold };
    let own = options.clone().in_fold(&part.to_string());
    let own = RunOptions { out: part.dir(&options.out), ..own };
    finetune::fold(preset, set, about.positive.as_deref(), &manifest, &sides, &own)?;
    if part != Part::Final && ranks::is_first()? && own.out.join(MODEL).is_file() {
        held_out(set, &sides, preset.data.crop, preset.symmetries, &own)?;
    }
    Ok(())
}

/// Probes of every fold, or of one, on features that are computed once. They are stored in `cache`,
/// where several runs may share them, or in the run. Returns the runs: for a preset with `[probes]`
/// one for each probe in `options.out`, otherwise that folder itself.
///
/// # Errors
/// As [`finetune`], and more neighbours than a fold has images.
pub fn probe(
    preset: &ProbePreset,
    set: &TrainingSet,
    only: Option<usize>,
    cache: Option<&Path>,
    options: &RunOptions,
) -> Result<Vec<Probed>> {
    check_classes(&preset.model, set, "the task")?;
    let manifest = folds(&options.out, set, &preset.data)?;
    probe::run(preset, set, &manifest, only, cache, options)
}

fn classifier(path: &Path, device: &str) -> Result<TorchClassifier> {
    Ok(TorchClassifier::open(path, device)?.in_f32())
}

/// Predicts the held-out side with the weights that the fold hands on.
fn held_out(
    set: &TrainingSet,
    &Sides { part, ref fold }: &Sides,
    crop: usize,
    symmetries: u8,
    options: &RunOptions,
) -> Result<()> {
    let model = classifier(&options.out.join(MODEL), &options.device)?;
    let found = predict::all(model, set, &fold.validation, part, crop, symmetries)?;
    predict::write(&options.out, PREDICTIONS, set, &found)
}

/// Scores the fold models of a run on the test part: one list per fold, then their mean
/// probabilities (the ensemble) as the last; none of a run that has the model of all items alone.
///
/// # Errors
/// When a fold is not trained yet, or the test part cannot be read.
pub fn test(run: &Path, set: &TestSet, device: &str) -> Result<Vec<Vec<Prediction>>> {
    let about = About::read(run)?;
    let trained = |part: Part| part.dir(run).join(MODEL).is_file();
    if trained(Part::Final) && !(0..about.folds).any(|k| trained(Part::Fold(k))) {
        return Ok(vec![]);
    }
    let all: Vec<usize> = (0..set.items().len()).collect();
    let mut lists = vec![];
    for k in 0..about.folds {
        lists.push(scored(run, &about, Part::Fold(k), set, &all, device)?);
    }
    let mean = (0..all.len()).map(|i| {
        let parts: Vec<&Prediction> = lists.iter().map(|l: &Vec<Prediction>| &l[i]).collect();
        Prediction::mean(&parts)
    });
    let mean = mean.collect();
    lists.push(mean);
    Ok(lists)
}

/// Scores the model of a run that was trained on all items on the test part, if there is one.
///
/// # Errors
/// As [`test()`].
pub fn test_final(run: &Path, set: &TestSet, device: &str) -> Result<Option<Vec<Prediction>>> {
    let about = About::read(run)?;
    if !Part::Final.dir(run).join(MODEL).is_file() {
        return Ok(None);
    }
    let all: Vec<usize> = (0..set.items().len()).collect();
    scored(run, &about, Part::Final, set, &all, device).map(Some)
}

fn scored(
    run: &Path,
    about: &About,
    part: Part,
    set: &TestSet,
    items: &[usize],
    device: &str,
) -> Result<Vec<Prediction>> {
    let path = about.model(run, part)?;
    let model = classifier(&path, device)?;
    if model.spec.classes != set.classes() {
        return Err(TrainError::run(&path, "its classes are not those of the test part"));
    }
    predict::all(model, set, items, part, about.crop, about.symmetries)
}
