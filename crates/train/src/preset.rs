//! Presets: everything that changes a number, in one TOML file per experiment.
//!
//! Unknown keys are errors that name the path and the nearest key. `--set key=value` goes through
//! the same deserialiser.

use std::path::Path;

use corpus::ami::Part;
use corpus::augment::{ImageFolder, Photometric, PoolShare, SegmentShares, Spatial};
use net::device::{MemoryFormat, Precision};
use net::encoder::EncoderConfig;
use net::loss::SegmentLoss;
use net::unet::UnetConfig;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::error::{Result, TrainError};

/// Length and optimiser of a run; the same words for every loop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Loop {
    /// Seed of weights, samples and dropout.
    pub seed: u64,
    /// Samples per step.
    pub batch: usize,
    /// Optimiser steps.
    pub steps: usize,
    /// Steps of linear warm-up.
    pub warmup: usize,
    /// Peak learning rate, absolute.
    pub lr: f64,
    /// Rate at the end of the cosine.
    pub min_lr: f64,
    /// Decoupled weight decay.
    pub weight_decay: f64,
    /// Largest gradient norm.
    pub clip: f64,
    /// Decay of the averaged weights, which are the ones kept; 0 keeps the last weights.
    pub ema: f64,
    /// Validate every this many steps (an epoch).
    pub epoch: usize,
    /// Write the state for `--resume` every this many steps.
    pub save_every: usize,
    /// Which weights a run hands on.
    pub keep: Keep,
    /// Arithmetic of the forward pass.
    pub precision: Precision,
    /// Layout of images and weights.
    pub memory_format: MemoryFormat,
}

/// Which weights a run hands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Keep {
    /// Those with the lowest validation loss.
    Best,
    /// Those with the highest validation metric.
    Metric,
    /// The last: nothing is chosen by the validation fold.
    Last,
}

/// Starting weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Init {
    /// Drawn from the seed.
    Scratch,
    /// EfficientNet-Lite0's ImageNet weights (`--init FILE`), as far as names and shapes fit.
    Lite0,
    /// A checkpoint of this project or in timm's names (`--init FILE`), as far as it fits.
    Checkpoint,
}

/// Data of the segmenter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SegmentData {
    /// Side of a patch, pixels at 0.25 um/px.
    pub patch: usize,
    /// Radius of the disc that stands for a figure, pixels.
    pub radius: f32,
    /// Pixels between `radius` and this are ignored.
    pub ring: f32,
    /// The AMi-Br part to add; `MIDOG21` is the only one that training accepts.
    pub ami: Option<Part>,
    /// At most this many of its patches.
    pub ami_most: usize,
    /// Validation patches.
    pub validation: usize,
    /// Other tissue, without figures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<ImageFolder>,
}

/// `mithras train segment`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SegmentPreset {
    /// The network.
    pub model: UnetConfig,
    /// Where its trunk starts.
    pub init: Init,
    /// Rate of the trunk relative to the decoder.
    pub encoder_lr: f64,
    /// Training images.
    pub data: SegmentData,
    /// What is drawn.
    pub shares: SegmentShares,
    /// Geometric augmentation.
    pub spatial: Spatial,
    /// Photometric augmentation.
    pub photometric: Photometric,
    /// Loss weights.
    pub loss: SegmentLoss,
    /// Length and optimiser.
    pub train: Loop,
}

/// Data of the classifier.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FinetuneData {
    /// Side of a crop, pixels at 0.25 um/px.
    pub crop: usize,
    /// The AMi-Br part to add; `MIDOG21` is the only one that training accepts.
    pub ami: Option<Part>,
    /// At most this many of its patches.
    pub ami_most: usize,
    /// Validation: dark nuclei per figure.
    pub validation_ratio: usize,
    /// Other tissue, whose dark nuclei are taken for no figures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<ImageFolder>,
}

/// Rounds of hard negatives: the network scores places without a figure and is shown the worst.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mining {
    /// Step of the first round.
    pub first: usize,
    /// Steps from one round to the next.
    pub every: usize,
    /// Places scored in a round.
    pub scored: usize,
    /// The highest are kept.
    pub keep: usize,
    /// Share of all later crops that comes from them.
    pub share: f32,
    /// Of unlabelled images this share of the places scored, the very highest, is passed over: a
    /// figure without a label may stand there.
    pub doubtful: f32,
}

/// `mithras train finetune`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FinetunePreset {
    /// The network; its `image` is the side crops are resized to.
    pub model: EncoderConfig,
    /// Where it starts.
    pub init: Init,
    /// Layer-wise rate decay (1 = none).
    pub layer_decay: f64,
    /// Label smoothing.
    pub smoothing: f64,
    /// Training images.
    pub data: FinetuneData,
    /// What is drawn.
    pub pools: Vec<PoolShare>,
    /// Hard negatives, if any rounds are made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mining: Option<Mining>,
    /// Geometric augmentation.
    pub spatial: Spatial,
    /// Photometric augmentation.
    pub photometric: Photometric,
    /// Length and optimiser.
    pub train: Loop,
}

/// Checks that the deserialiser cannot make.
pub trait Preset: Serialize + DeserializeOwned {
    /// The loop's settings.
    fn train(&self) -> &Loop;

    /// Further checks: `(key, reason)` of the first value out of range.
    ///
    /// # Errors
    /// As said.
    fn check(&self) -> std::result::Result<(), (&'static str, String)>;

    /// The resolved preset as TOML.
    fn to_toml(&self) -> String {
        toml::to_string(self).expect("a preset is plain data")
    }

    /// SHA-256 of the resolved preset.
    fn hash(&self) -> String {
        hex(&Sha256::digest(self.to_toml().as_bytes()))
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

type Checked = std::result::Result<(), (&'static str, String)>;

impl Loop {
    fn check(&self) -> Checked {
        for (key, n) in [
            ("train.batch", self.batch),
            ("train.steps", self.steps),
            ("train.epoch", self.epoch),
            ("train.save_every", self.save_every),
        ] {
            if n == 0 {
                return Err((key, "must be at least 1".into()));
            }
        }
        if !(self.lr > 0.0 && self.lr.is_finite()) {
            return Err(("train.lr", format!("{} is not a positive rate", self.lr)));
        }
        if !(0.0..1.0).contains(&self.ema) {
            return Err(("train.ema", format!("{} is not in [0, 1)", self.ema)));
        }
        if self.warmup > self.steps {
            return Err(("train.warmup", "is longer than train.steps".into()));
        }
        Ok(())
    }

    /// The learning rate before step `step`.
    #[must_use]
    pub fn rate(&self, step: usize) -> f64 {
        net::schedule::WarmupCosine {
            lr: self.lr,
            min_lr: self.min_lr,
            warmup_epochs: self.warmup as f64,
            epochs: self.steps as f64,
        }
        .at(step as f64 + 0.5)
    }
}

fn scanner(photometric: &Photometric) -> Checked {
    let checked = photometric.scanner.as_ref().map_or(Ok(()), |s| s.check());
    checked.map_err(|(key, reason)| ("photometric.scanner", format!("{key} {reason}")))
}

impl Preset for SegmentPreset {
    fn train(&self) -> &Loop {
        &self.train
    }

    fn check(&self) -> Checked {
        if self.data.patch == 0 || !self.data.patch.is_multiple_of(32) {
            return Err(("data.patch", format!("{} is no multiple of 32", self.data.patch)));
        }
        scanner(&self.photometric)?;
        if self.data.ring < self.data.radius {
            return Err(("data.ring", "is smaller than data.radius".into()));
        }
        self.train.check()
    }
}

impl Preset for FinetunePreset {
    fn train(&self) -> &Loop {
        &self.train
    }

    fn check(&self) -> Checked {
        if self.data.crop < 16 {
            return Err(("data.crop", format!("{} px is too small", self.data.crop)));
        }
        scanner(&self.photometric)?;
        let known = |name: &str| {
            name == "icpr"
                || name == "ami"
                || crate::data::REGION_DOMAINS.contains(&name)
                || self.data.images.iter().any(|i| i.name == name)
        };
        if let Some(p) = self.pools.iter().find(|p| !known(&p.domain)) {
            return Err(("pools", format!("name `{}`, which data.images does not", p.domain)));
        }
        if let Some(m) = &self.mining
            && (m.every == 0 || !(0.0..1.0).contains(&m.share))
        {
            return Err(("mining", "needs `every` above 0 and `share` in [0, 1)".into()));
        }
        if self.model.classes != 2 {
            return Err(("model.classes", "must be 2 (non_mitotic, mitotic)".into()));
        }
        self.train.check()
    }
}

/// Reads a preset and applies `key=value` overrides.
///
/// # Errors
/// [`TrainError::Preset`] with the file, the key's path, and for unknown keys the nearest one.
pub fn load<P: Preset>(path: &Path, set: &[String]) -> Result<P> {
    load_with(path, set, |p: &P| p.check().map_err(|(key, reason)| format!("{key} {reason}")))
}

/// [`load`] for anything that can be checked.
///
/// # Errors
/// As there; `check` gives the reason alone.
pub fn load_with<P: DeserializeOwned>(
    path: &Path,
    set: &[String],
    check: impl Fn(&P) -> std::result::Result<(), String>,
) -> Result<P> {
    let bad = |reason: String| TrainError::Preset { path: path.to_path_buf(), reason };
    let text = std::fs::read_to_string(path).map_err(|e| bad(e.to_string()))?;
    let mut table: toml::Table = text.parse().map_err(|e: toml::de::Error| bad(e.to_string()))?;
    for item in set {
        let (key, value) = item
            .split_once('=')
            .ok_or_else(|| bad(format!("--set {item}: write key=value, e.g. train.lr=1e-4")))?;
        let value = format!("v = {value}")
            .parse::<toml::Table>()
            .ok()
            .and_then(|mut t| t.remove("v"))
            .unwrap_or_else(|| toml::Value::String(value.to_string()));
        let mut at = &mut table;
        let (folders, leaf) = key.rsplit_once('.').map_or((None, key), |(f, l)| (Some(f), l));
        for part in folders.into_iter().flat_map(|f| f.split('.')) {
            at = at
                .entry(part)
                .or_insert_with(|| toml::Value::Table(toml::Table::new()))
                .as_table_mut()
                .ok_or_else(|| bad(format!("--set {key}: `{part}` is no table")))?;
        }
        at.insert(leaf.to_string(), value);
    }
    let preset: P = serde_path_to_error::deserialize(toml::Value::Table(table)).map_err(|e| {
        let at = e.path().to_string();
        let reason = e.into_inner().to_string().trim().to_string();
        let hint = nearest(&reason).map(|n| format!("; did you mean `{n}`?")).unwrap_or_default();
        bad(format!("{at}: {reason}{hint}"))
    })?;
    check(&preset).map_err(bad)?;
    Ok(preset)
}

/// The expected key nearest to the unknown one, out of serde's message.
fn nearest(message: &str) -> Option<String> {
    let rest = message.strip_prefix("unknown field ")?;
    let mut names = rest.split('`').skip(1).step_by(2);
    let unknown = names.next()?;
    names.min_by_key(|n| edits(unknown, n)).map(str::to_string)
}

fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let change = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = change.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}
