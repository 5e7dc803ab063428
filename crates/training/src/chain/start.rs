//! The package that a chain starts from: a detector to train on corrections, or a classifier of a task.

use super::super::export::Choice;
use super::super::{Result, TrainingError};
use super::preset::DetectorPreset;
use infer::ModelPackage;
use mitosis::Mpp;
use pixels::input::{MEAN, STD};
use std::fmt::Display;
use std::path::{Path, PathBuf};

/// Without folds nothing is left out to choose an operating point on.
pub(super) fn no_point() -> TrainingError {
    let why = "`folds.count` = 1 leaves no slide out to choose an operating point on; start from a package, \
               whose point is kept, or make two folds";
    TrainingError::Invalid(why.into())
}

/// What a package adds to the digest of a run. Refuses one whose networks see the slide otherwise than the
/// preset's would.
pub(super) fn digests(package: &ModelPackage, preset: &DetectorPreset) -> Result<[String; 2]> {
    let card = &package.card;
    let (Some(segmenter), Some(classifier)) = (&card.segmenter, &card.classifier) else {
        return Err(refused(package, "has not both stages of a detector"));
    };
    let agrees = |what: &str, own: &dyn Display, key: &str, asked: &dyn Display| {
        let (own, asked) = (own.to_string(), asked.to_string());
        let why = || format!("has {what} of {own}, and the preset `{key}` of {asked}");
        (own == asked).then_some(()).ok_or_else(|| refused(package, why()))
    };
    let (first, second) = (&preset.segment.data, preset.second());
    agrees("a first stage at um/px", &segmenter.mpp.get(), "segment.data.mpp", &first.mpp.get())?;
    agrees("crops", &classifier.crop, "finetune.data.crop", &second.crop())?;
    agrees("inputs", &classifier.input, "finetune.model.image", &second.model().image)?;
    if classifier.mpp != Mpp::PAPER {
        return Err(refused(package, "has a second stage that is not at 0.25 um/px"));
    }
    let fed = [(segmenter.mean, segmenter.std), (classifier.mean, classifier.std)];
    if fed != [(MEAN, STD), (second.model().mean, second.model().std)] {
        return Err(refused(package, "normalises its input otherwise than training does"));
    }
    match &classifier.classes[..] {
        [_, figure] if *figure == classifier.positive => {}
        classes => {
            let why = format!("has the classes {classes:?}; training knows two, the figure last");
            return Err(refused(package, why));
        }
    }
    Ok([segmenter.sha256.clone(), classifier.sha256.clone()])
}

fn refused(package: &ModelPackage, why: impl Display) -> TrainingError {
    TrainingError::Invalid(format!("{}: {why}", package.origin))
}

/// The path of a stage's network in a run that starts from a package.
pub(super) fn network(run: &Path, stage: &str) -> PathBuf {
    run.join("start").join(format!("{stage}.onnx"))
}

/// Writes both networks into the run: a bundled package has no folder.
pub(super) fn unpack(package: &ModelPackage, run: &Path) -> Result<()> {
    for stage in ["segmenter", "classifier"] {
        put(package, run, stage)?;
    }
    Ok(())
}

fn put(package: &ModelPackage, run: &Path, stage: &str) -> Result<PathBuf> {
    let bytes = match stage {
        "segmenter" => package.segmenter(),
        _ => package.classifier(),
    };
    let bytes = bytes.ok_or_else(|| refused(package, format!("has no {stage}")))?;
    let path = network(run, stage);
    let folder = run.join("start");
    std::fs::create_dir_all(&folder).map_err(TrainingError::io(&folder))?;
    base::file::write(&path, bytes)?;
    // With it, training knows what the network was trained on before.
    base::file::write(&folder.join("card.toml"), package.card.to_toml()?.as_bytes())?;
    Ok(path)
}

/// Starting weights of a classifier: a file, or one for each fold, as it is, else the classifier of a package, put into
/// the run.
///
/// # Errors
/// Neither a file nor a package with a classifier.
pub fn classifier(init: &Path, run: &Path) -> Result<PathBuf> {
    if init.is_file() || init.to_string_lossy().contains(train::run::FOLD) {
        return Ok(init.to_path_buf());
    }
    let package = ModelPackage::find(Some(init))
        .map_err(|e| TrainingError::Invalid(format!("no such file of weights, and {e}")))?;
    put(&package, run, "classifier")
}

/// The package's own point and way to take candidates, for a run that left nothing out to choose on.
pub(super) fn kept(package: &ModelPackage) -> Result<Choice> {
    let card = &package.card;
    match (&card.operating_point, &card.candidates, &card.classifier) {
        (Some(point), Some(candidates), Some(classifier)) => Ok(Choice::Kept {
            point: mitosis::OperatingPoint {
                provenance: format!(
                    "of {}, not chosen again: trained further from there with nothing left out; there: {}",
                    card.name, point.provenance
                ),
                ..point.clone()
            },
            candidates: candidates.clone(),
            crop: classifier.crop,
            symmetries: classifier.symmetries,
        }),
        _ => Err(refused(package, "has no operating point to keep")),
    }
}
