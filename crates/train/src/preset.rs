//! Presets of the detector's two stages, and what the loops' presets have in common.

use mitosis::Mpp;
use net::device::{MemoryFormat, Precision};
use net::encoder::EncoderConfig;
use net::lora::Lora;
use net::loss::SegmentLoss;
use net::unet::UnetConfig;
use regions::augment::{CellShares, Photometric, PoolShare, SegmentShares, Spatial};
use serde::{Deserialize, Serialize};

use crate::data::DOMAINS;

pub use base::preset::{Fault, Preset, PresetError};

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
    /// Largest gradient norm; 0 clips nothing.
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

fn paper() -> Mpp {
    Mpp::PAPER
}

fn is_paper(mpp: &Mpp) -> bool {
    *mpp == Mpp::PAPER
}

/// Data of the segmenter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SegmentData {
    /// Resolution of the patches and of the network, um/px: 0.25 or a whole multiple of it.
    #[serde(default = "paper", skip_serializing_if = "is_paper")]
    pub mpp: Mpp,
    /// Side of a patch, pixels at `mpp`.
    pub patch: usize,
    /// Radius of the disc that marks a figure, pixels at 0.25 um/px.
    pub radius: f32,
    /// Pixels between `radius` and this are ignored.
    pub ring: f32,
    /// Validation patches.
    pub validation: usize,
    /// At most this share of the figures drawn from frames comes from one slide; absent: every figure
    /// is drawn alike.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_slide_share: Option<f32>,
}

/// `mithras train segment`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SegmentPreset {
    /// Settings of the network.
    pub model: UnetConfig,
    /// Where its trunk starts.
    pub init: Init,
    /// Rate of the trunk relative to the decoder.
    pub encoder_lr: f64,
    /// Training images.
    pub data: SegmentData,
    /// What is drawn.
    pub shares: SegmentShares,
    /// What mosaics are made of.
    pub cells: CellShares,
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
    /// Validation: dark nuclei per figure.
    pub validation_ratio: usize,
    /// Validation: the labelled look-alikes of the held-out frames, too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub validate_on_lookalikes: bool,
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
    /// Of unlabelled images this share of the places scored, the very highest, is skipped: it
    /// may contain figures without a label.
    pub doubtful: f32,
    /// The same of labelled images, whose labels miss figures, too; such places are not shown
    /// again. 0 trusts the labels.
    #[serde(default)]
    pub doubtful_labelled: f32,
}

/// `mithras train finetune`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FinetunePreset {
    /// The network; its `image` is the side crops are resized to.
    pub model: EncoderConfig,
    /// Where it starts.
    pub init: Init,
    /// Adapters of low rank; the encoder's own weights stay as they start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lora: Option<Lora>,
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

type Checked = Result<(), Fault>;

/// The network's check of its settings, reported by keys of the preset.
pub(crate) fn of_net(checked: net::Result<()>) -> Checked {
    checked.map_err(|e| match e {
        net::NetError::Encoder(encoders::EncoderError::Config { key, reason }) => {
            Fault::new(key, reason)
        }
        other => Fault::new("model", other),
    })
}

/// Adapters need an encoder that takes them, and weights that are worth keeping.
pub(crate) fn check_lora(lora: Option<&Lora>, model: &EncoderConfig, init: Init) -> Checked {
    let Some(lora) = lora else { return Ok(()) };
    if init == Init::Scratch {
        return Err(Fault::new("lora", "adapts the weights of a file, but `init` is `scratch`"));
    }
    of_net(lora.check(&model.name))
}

/// Settings of an optimiser that every loop has.
pub(crate) struct Rates {
    /// Key of the peak rate in the preset.
    pub key: &'static str,
    /// Its value there.
    pub stated: f64,
    /// The rate itself.
    pub lr: f64,
    pub min_lr: f64,
    pub weight_decay: f64,
    pub clip: f64,
}

impl Rates {
    /// Below 0, decay and clipping would turn the steps round.
    pub fn check(&self) -> Checked {
        if !(self.stated > 0.0 && self.stated.is_finite()) {
            return Err(Fault::new(self.key, format!("{} is not a positive rate", self.stated)));
        }
        for (key, v) in [("train.weight_decay", self.weight_decay), ("train.clip", self.clip)] {
            if !(v >= 0.0 && v.is_finite()) {
                return Err(Fault::new(key, format!("{v} is not a finite number from 0 up")));
            }
        }
        if !(0.0..=self.lr).contains(&self.min_lr) {
            let reason = format!("{} is not from 0 to the peak rate, {}", self.min_lr, self.lr);
            return Err(Fault::new("train.min_lr", reason));
        }
        Ok(())
    }
}

impl Loop {
    fn check(&self) -> Checked {
        for (key, n) in [
            ("train.batch", self.batch),
            ("train.steps", self.steps),
            ("train.epoch", self.epoch),
            ("train.save_every", self.save_every),
        ] {
            if n == 0 {
                return Err(Fault::new(key, "must be at least 1"));
            }
        }
        Rates {
            key: "train.lr",
            stated: self.lr,
            lr: self.lr,
            min_lr: self.min_lr,
            weight_decay: self.weight_decay,
            clip: self.clip,
        }
        .check()?;
        if !(0.0..1.0).contains(&self.ema) {
            return Err(Fault::new("train.ema", format!("{} is not in [0, 1)", self.ema)));
        }
        if self.warmup > self.steps {
            return Err(Fault::new("train.warmup", "is longer than train.steps"));
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
    checked.map_err(|(key, reason)| Fault::new(format!("photometric.scanner.{key}"), reason))
}

impl SegmentData {
    /// Pixels at 0.25 um/px, which images are kept at, to one of the network's.
    #[must_use]
    pub fn reduction(&self) -> usize {
        Mpp::PAPER.ratio(self.mpp).round() as usize
    }
}

impl Preset for SegmentPreset {
    fn check(&self) -> Checked {
        let factor = Mpp::PAPER.ratio(self.data.mpp);
        if factor < 1.0 || (factor - factor.round()).abs() > 1e-6 {
            let reason = format!("{} is not a whole multiple of {}", self.data.mpp, Mpp::PAPER);
            return Err(Fault::new("data.mpp", reason));
        }
        if self.data.patch == 0 || !self.data.patch.is_multiple_of(32) {
            return Err(Fault::new(
                "data.patch",
                format!("{} is not a multiple of 32", self.data.patch),
            ));
        }
        scanner(&self.photometric)?;
        if self.data.max_slide_share.is_some_and(|s| !(s > 0.0 && s <= 1.0)) {
            return Err(Fault::new("data.max_slide_share", "must be above 0 and at most 1"));
        }
        if self.data.ring < self.data.radius {
            return Err(Fault::new("data.ring", "is smaller than data.radius"));
        }
        self.train.check()
    }
}

impl Preset for FinetunePreset {
    fn check(&self) -> Checked {
        if self.data.crop < 16 {
            return Err(Fault::new("data.crop", format!("{} px is too small", self.data.crop)));
        }
        if let Some(p) = self.pools.iter().find(|p| !DOMAINS.contains(&&*p.domain)) {
            let known = DOMAINS.join(", ");
            return Err(Fault::new(
                "pools",
                format!("name `{}`, which is not one of {known}", p.domain),
            ));
        }
        let cap = |p: &PoolShare| p.max_slide_share.is_none_or(|s| s > 0.0 && s <= 1.0);
        if !self.pools.iter().all(cap) {
            return Err(Fault::new("pools", "`max_slide_share` must be above 0 and at most 1"));
        }
        if let Some(m) = &self.mining {
            if m.every == 0 || !(0.0..1.0).contains(&m.share) {
                return Err(Fault::new("mining", "needs `every` above 0 and `share` in [0, 1)"));
            }
            if ![m.doubtful, m.doubtful_labelled].iter().all(|s| (0.0..0.5).contains(s)) {
                return Err(Fault::new("mining.doubtful", "needs shares in [0, 0.5)"));
            }
        }
        if self.model.classes != 2 {
            return Err(Fault::new("model.classes", "must be 2 (other, figure)"));
        }
        of_net(self.model.check().map_err(Into::into))?;
        check_lora(self.lora.as_ref(), &self.model, self.init)?;
        self.train.check()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pretrain::PretrainPreset;
    use crate::protocol::CropsPreset;

    fn refused<P: Preset + std::fmt::Debug>(name: &str, change: &str) -> String {
        let file = testkit::workspace().join("presets").join(format!("{name}.toml"));
        P::load(&file, &[]).unwrap();
        P::load(&file, &[change.to_owned()]).unwrap_err().to_string()
    }

    #[test]
    fn settings_that_would_turn_an_optimiser_round_are_refused_in_every_preset() {
        for (change, key) in [
            ("train.clip=-1.0", "train.clip"),
            ("train.clip=nan", "train.clip"),
            ("train.clip=inf", "train.clip"),
            ("train.weight_decay=-0.05", "train.weight_decay"),
            ("train.min_lr=-1e-6", "train.min_lr"),
            ("train.min_lr=1.0", "train.min_lr"),
        ] {
            for text in [
                refused::<SegmentPreset>("segment-smoke", change),
                refused::<FinetunePreset>("finetune-smoke", change),
                refused::<CropsPreset>("finetune-ami-br-vit-tiny", change),
                refused::<PretrainPreset>("pretrain-smoke", change),
            ] {
                assert!(text.contains(key), "{change}: {text}");
            }
        }
    }
}
