//! What fine-tuning and probing do alike.

use super::about::{About, Part};
use super::{about, items};
use crate::error::{Result, TrainError};
use crate::seen::Names;
use crate::start::describe;
use crate::text::write_text;
use net::checkpoint::{Spec, TrainedOn};
use net::encoder::{Encoder, EncoderConfig};
use regions::fold::Fold;
use regions::shortcuts;
use regions::task::{Folds, TrainingSet};
use std::path::Path;
use tch::nn::VarStore;

/// Predictions of the held-out items, in a fold's folder; stem of the file.
pub const PREDICTIONS: &str = "predictions";

/// Writes `protocol.json` and `items.csv`, or checks that the `protocol.json` that exists is of the same preset
/// and data.
pub(super) fn begin(run: &Path, about: &About, set: &TrainingSet) -> Result<()> {
    let path = run.join(about::FILE);
    if path.is_file() {
        let found = About::read(run)?;
        let older = found.init_sha256.is_none();
        let init_sha256 = if older { about.init_sha256.clone() } else { found.init_sha256.clone() };
        if (About { positive: found.positive(), init_sha256, ..found }) != *about {
            return Err(TrainError::run(
                &path,
                "was made with another preset, other data or other weights; give the same ones, or \
                 another folder",
            ));
        }
        return Ok(());
    }
    items::write(run, set)?;
    write_text(&path, &serde_json::to_string_pretty(about).expect("plain data"))
}

pub(super) fn describe_model(
    model: &EncoderConfig,
    set: &TrainingSet,
    folds: &Folds,
) -> Result<Spec> {
    let mut spec = describe(model)?;
    spec.classes = set.classes().to_vec();
    spec.corpus_digest = folds.digest().to_owned();
    Ok(spec)
}

/// Slides and patients of some items.
pub(super) fn list_trained_on(set: &TrainingSet, items: &[usize]) -> TrainedOn {
    let mut all = TrainedOn::default();
    for item in items.iter().map(|&i| &set.items()[i]) {
        all.slides.insert(item.slide.clone());
        all.patients.extend(item.patient.clone());
    }
    all
}

/// What some items may be listed by.
pub(super) fn names(set: &TrainingSet, items: &[usize]) -> Vec<Names> {
    items.iter().map(|&i| Names::from(&set.items()[i])).collect()
}

/// A model of a run, and what it learns from and is judged on.
pub(super) struct Sides {
    pub(super) part: Part,
    pub(super) fold: Fold,
}

/// Zero weights and a constant bias, whatever the starting weights brought.
pub(super) fn reset_head(vs: &VarStore, net: &dyn Encoder, bias: f64) {
    tch::no_grad(|| {
        for (name, mut t) in vs.variables() {
            if let Some(rest) = name.strip_prefix(net.head()) {
                let _ = t.fill_(if rest == "bias" { bias } else { 0.0 });
            }
        }
    });
}

/// Shortcuts that separate a class from the rest, one per line.
pub(super) fn shortcuts(set: &TrainingSet, members: &[usize]) -> Vec<String> {
    let (items, of) = shortcuts::of_task(set, members);
    shortcuts::class_warnings(&shortcuts::check_classes(&items, &of, set.classes()))
}
