//! Presets of the protocols.

use std::path::{Path, PathBuf};

use net::device::{MemoryFormat, Precision};
use net::encoder::EncoderConfig;
use net::lora::Lora;
use net::schedule::BaseLr;
use pixels::Photometric;
use pixels::geometry::RandomPlacement;
use pixels::rand_augment::RandAugment;
use regions::task::{Folds, Task, TrainingSet};
use serde::{Deserialize, Serialize};

use super::about::{About, SCHEMA};
use crate::error::{Result, TrainError};
use crate::preset::{Fault, Init, Keep, Loop, Preset, Rates, check_lora, of_net};

/// The task of a preset, if it has one; presets of the detector's second stage have none.
///
/// # Errors
/// When the file is not TOML.
pub fn read_task(path: &Path) -> Result<Option<String>> {
    let bad = |reason: String| TrainError::Preset { path: path.to_path_buf(), reason };
    let text = base::file::read_string(path).map_err(|e| bad(e.to_string()))?;
    let table: toml::Table = text.parse().map_err(|e: toml::de::Error| bad(e.to_string()))?;
    Ok(table.get("task").and_then(|t| t.as_str()).map(str::to_string))
}

/// Crops and folds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProtocolData {
    /// Side of the centred square that is shown, pixels at 0.25 um/px.
    pub crop: usize,
    /// Folds of whole slides.
    pub folds: usize,
    /// Seed of the folds.
    pub split_seed: u64,
    /// A fold manifest to take instead of making one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folds_file: Option<PathBuf>,
}

/// What changes a training image.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Augment {
    /// E.g. `rand-m9-mstd0.5-inc1`; absent for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rand_augment: Option<RandAugment>,
    /// Probability of random erasing.
    pub erase: f32,
    /// The position of the square.
    pub placement: RandomPlacement,
    /// Stain, colour, blur, JPEG; absent for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub photometric: Option<Photometric>,
}

/// Length and optimiser, in epochs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Epochs {
    /// Seed of weights, order, augmentation and dropout.
    pub seed: u64,
    /// Samples per step; the last partial batch of an epoch is left out.
    pub batch: usize,
    /// Epochs.
    pub epochs: usize,
    /// Epochs of linear warm-up.
    pub warmup_epochs: f64,
    /// Peak rate per 256 samples.
    pub base_lr: f64,
    /// Rate at the end of the cosine, absolute.
    pub min_lr: f64,
    /// Decoupled weight decay.
    pub weight_decay: f64,
    /// Largest gradient norm; 0 clips nothing.
    pub clip: f64,
    /// Decay of the averaged weights, which are the ones kept; 0 keeps the plain weights.
    pub ema: f64,
    /// Which weights a fold hands on.
    pub keep: Keep,
    /// Arithmetic of the forward pass.
    pub precision: Precision,
    /// Layout of images and weights.
    pub memory_format: MemoryFormat,
}

impl Epochs {
    /// The loop for `n` training samples.
    #[must_use]
    pub fn plan(&self, n: usize) -> Loop {
        let epoch = (n / self.batch).max(1);
        Loop {
            seed: self.seed,
            batch: self.batch,
            steps: self.epochs * epoch,
            warmup: (self.warmup_epochs * epoch as f64).round() as usize,
            lr: BaseLr(self.base_lr).scaled(self.batch),
            min_lr: self.min_lr,
            weight_decay: self.weight_decay,
            clip: self.clip,
            ema: self.ema,
            epoch,
            save_every: epoch,
            keep: self.keep,
            precision: self.precision,
            memory_format: self.memory_format,
        }
    }

    fn check(&self) -> Checked {
        if self.batch == 0 || self.epochs == 0 {
            return Err(Fault::new("train", "batch and epochs must be at least 1"));
        }
        if !(0.0..=self.epochs as f64).contains(&self.warmup_epochs) {
            return Err(Fault::new("train.warmup_epochs", "is not in [0, train.epochs]"));
        }
        Rates {
            key: "train.base_lr",
            stated: self.base_lr,
            lr: BaseLr(self.base_lr).scaled(self.batch),
            min_lr: self.min_lr,
            weight_decay: self.weight_decay,
            clip: self.clip,
        }
        .check()?;
        if !(0.0..1.0).contains(&self.ema) {
            return Err(Fault::new("train.ema", format!("{} is not in [0, 1)", self.ema)));
        }
        Ok(())
    }
}

/// What the loss of a fine-tuning aims at. Validation and test always count the label.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Targets {
    /// The label.
    #[default]
    Label,
    /// The share of the experts that saw each class.
    Votes,
}

/// Predictions of other models, which the targets lean on (distillation).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Teaching {
    /// Tables of held-out items (`RUN/predictions.csv`), so that no model rates what it was trained on;
    /// of several the mean.
    pub predictions: Vec<PathBuf>,
    /// Their share of the targets; the rest is the label's or the votes'.
    pub share: f64,
}

fn none(weight: &f64) -> bool {
    *weight == 0.0
}

/// `mithras train finetune` on labelled crops.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CropsPreset {
    /// What is classified.
    pub task: Task,
    /// The positive class, for tasks that have none of their own (`folder`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub positive: Option<String>,
    /// Where the encoder starts; the head starts at zero weights and `model.head_bias`.
    pub init: Init,
    /// Adapters of low rank; the encoder's own weights stay as they start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lora: Option<Lora>,
    /// Layer-wise rate decay (1 = none).
    pub layer_decay: f64,
    /// Label smoothing.
    pub smoothing: f64,
    /// What the loss aims at.
    #[serde(default)]
    pub targets: Targets,
    /// Models that teach.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub teacher: Option<Teaching>,
    /// Weight of the loss on the coarser task's classes ([`Task::coarser`]), whose probabilities are
    /// sums over the classes, against the experts' labels there; 0 leaves it out.
    #[serde(default, skip_serializing_if = "none")]
    pub coarse: f64,
    /// How evenly classes are drawn: 0 as they are, 1 all equally often.
    pub balance: f64,
    /// Symmetric copies averaged when predicting: 1, 4 (flips) or 8 (flips and turns).
    pub symmetries: u8,
    /// The network; its `image` is the side crops are resized to.
    pub model: EncoderConfig,
    /// Crops and folds.
    pub data: ProtocolData,
    /// Augmentation.
    pub augment: Augment,
    /// Length and optimiser.
    pub train: Epochs,
}

pub(super) type Checked = std::result::Result<(), Fault>;

pub(super) fn common(data: &ProtocolData, model: &EncoderConfig) -> Checked {
    of_net(model.check().map_err(Into::into))?;
    if data.crop < 16 {
        return Err(Fault::new("data.crop", format!("{} px is too small", data.crop)));
    }
    Ok(())
}

pub(super) fn copies(key: &str, number: u8) -> Checked {
    if [1, 4, 8].contains(&number) {
        return Ok(());
    }
    Err(Fault::new(key, format!("{number} is not one of 1, 4, 8")))
}

impl Preset for CropsPreset {
    fn check(&self) -> Checked {
        common(&self.data, &self.model)?;
        copies("symmetries", self.symmetries)?;
        for (key, v) in [("balance", self.balance), ("layer_decay", self.layer_decay)] {
            if !(0.0..=1.0).contains(&v) {
                return Err(Fault::new(key, format!("{v} is not in [0, 1]")));
            }
        }
        if !(self.coarse >= 0.0 && self.coarse.is_finite()) {
            return Err(Fault::new("coarse", format!("{} is not a valid weight", self.coarse)));
        }
        if self.coarse > 0.0 && self.task.coarser().is_none() {
            return Err(Fault::new("coarse", "the task has no coarser one; leave the key out"));
        }
        if let Some(t) = &self.teacher {
            if t.predictions.is_empty() {
                return Err(Fault::new("teacher.predictions", "names no table"));
            }
            if !(0.0..=1.0).contains(&t.share) {
                return Err(Fault::new("teacher.share", format!("{} is not in [0, 1]", t.share)));
            }
        }
        if !(0.0..1.0).contains(&self.smoothing) {
            return Err(Fault::new("smoothing", format!("{} is not in [0, 1)", self.smoothing)));
        }
        check_lora(self.lora.as_ref(), &self.model, self.init)?;
        self.train.check()
    }
}

/// What both protocols' presets are about.
pub(super) trait Described: Preset {
    /// `finetune` or `probe`.
    const VERB: &'static str;

    /// Crops and folds, the copies averaged, and the positive class as stated.
    fn parts(&self) -> (&ProtocolData, u8, Option<&str>);

    /// What a run of it is about.
    fn about(&self, set: &TrainingSet, folds: &Folds) -> Result<About> {
        let (data, symmetries, stated) = self.parts();
        Ok(About {
            schema: SCHEMA.into(),
            verb: Self::VERB.into(),
            task: set.task(),
            classes: set.classes().to_vec(),
            positive: positive(set, stated)?,
            crop: data.crop,
            symmetries,
            probe: None,
            features_sha256: None,
            folds: folds.count(),
            preset_sha256: self.digest(),
            set_sha256: set.digest(),
            folds_sha256: folds.digest().to_owned(),
            init_sha256: None,
        })
    }
}

impl Described for CropsPreset {
    const VERB: &'static str = "finetune";

    fn parts(&self) -> (&ProtocolData, u8, Option<&str>) {
        (&self.data, self.symmetries, self.positive.as_deref())
    }
}

/// The positive class: as the preset states it, else the task's own.
///
/// # Errors
/// [`TrainError::Preset`] for an unknown class, and for two classes of which neither is stated.
fn positive(set: &TrainingSet, stated: Option<&str>) -> Result<Option<String>> {
    let classes = set.classes();
    let bad = |reason: String| Err(TrainError::Preset { path: "positive".into(), reason });
    let found = stated.or_else(|| set.task().positive());
    match found {
        Some(name) if !classes.iter().any(|c| c == name) => {
            bad(format!("`{name}` is not one of the classes {}", classes.join(", ")))
        }
        None if classes.len() == 2 => bad(format!(
            "state which class is the positive one, {}: the kept epoch, the metrics and the \
             threshold depend on it",
            classes.join(" or ")
        )),
        found => Ok(found.map(str::to_owned)),
    }
}
