//! Presets of pretraining.

use std::ops::Range;

use net::device::{MemoryFormat, Precision};
use net::loss::{Objective, Scl};
use net::mae::MaeConfig;
use net::vit::Size;
use pixels::view::Views;
use serde::{Deserialize, Serialize};

use crate::error::{Result, TrainError};
pub use crate::preset::{Fault, Preset};
use crate::preset::{Keep, Loop, Rates};

/// What is trained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MethodKind {
    /// Masked reconstruction and contrast, weighted by `[objective]` (MAE: reconstruction alone).
    Mithras,
    /// Cross-entropy on the class token of whole views.
    Supervised,
    /// Masked reconstruction and cross-entropy on the visible tokens.
    Supmae,
    /// Contrastive masked autoencoder: reconstruction and InfoNCE against an averaged encoder.
    Cmae,
}

impl MethodKind {
    /// The word in presets.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.method().name
    }
}

/// The network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// tiny, small, base, large, huge.
    pub size: Size,
    /// Encoder blocks, where not the size's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depth: Option<i64>,
    /// Side of a view, pixels.
    pub image: i64,
    /// Decoder width.
    pub decoder_dim: i64,
    /// Decoder blocks.
    pub decoder_depth: i64,
    /// Of attention; they divide the decoder's width.
    pub decoder_heads: i64,
    /// Width of the projections.
    pub projection: i64,
    /// Share of tiles masked, (0, 1).
    pub mask_ratio: f64,
}

impl Model {
    /// The masked autoencoder's settings.
    #[must_use]
    pub fn mae(&self) -> MaeConfig {
        let plain = MaeConfig::new(self.size);
        MaeConfig {
            depth: self.depth.unwrap_or(plain.depth),
            image: self.image,
            decoder_dim: self.decoder_dim,
            decoder_depth: self.decoder_depth,
            decoder_heads: self.decoder_heads,
            projection: self.projection,
            mask_ratio: self.mask_ratio,
            ..plain
        }
    }
}

/// Constants of the baselines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    /// SupMAE: weight of the cross-entropy. CMAE: weight of the contrast.
    pub weight: f64,
    /// CMAE: temperature of InfoNCE.
    pub temperature: f64,
    /// CMAE: decay of the target encoder's average.
    pub momentum: f64,
    /// CMAE: blocks of the feature decoder.
    pub feature_depth: i64,
}

/// Length and optimiser.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// Seed of weights, order, views and masks.
    pub seed: u64,
    /// Crops per optimiser step, over all ranks and micro-batches; contrasted together.
    pub batch: usize,
    /// Crops per forward pass; 0 = the rank's whole share.
    pub micro_batch: usize,
    /// Passes over the corpus.
    pub epochs: usize,
    /// Linear warm-up, in epochs (may be a fraction).
    pub warmup_epochs: f64,
    /// Peak learning rate, absolute.
    pub lr: f64,
    /// Rate at the end of the cosine.
    pub min_lr: f64,
    /// AdamW's decays.
    pub betas: [f64; 2],
    /// Decoupled weight decay.
    pub weight_decay: f64,
    /// Largest gradient norm; 0 clips nothing.
    pub clip: f64,
    /// Decay of the averaged weights, which are the ones handed on; 0 = none.
    pub ema: f64,
    /// A row of `terms.csv` every this many steps.
    pub log_every: usize,
    /// The state for `--resume` every this many steps.
    pub save_every: usize,
    /// Arithmetic of the forward pass; losses are always f32.
    pub precision: Precision,
}

/// `mithras train pretrain`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PretrainPreset {
    /// What is trained.
    pub method: MethodKind,
    /// Settings of the network.
    pub model: Model,
    /// Weights of the terms; with `mithras` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objective: Option<Objective>,
    /// Constants of Eq. 1.
    #[serde(default)]
    pub scl: Scl,
    /// Constants of SupMAE and CMAE.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Baseline>,
    /// The two views.
    pub views: Views,
    /// Length and optimiser.
    pub train: Recipe,
}

/// How a batch is shared out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Samples of one rank.
    pub rank: usize,
    /// Samples of one forward pass.
    pub micro: usize,
}

impl Share {
    /// The samples of a step that rank `rank` takes.
    #[must_use]
    pub fn part(&self, rank: usize) -> Range<usize> {
        rank * self.rank..(rank + 1) * self.rank
    }
}

impl PretrainPreset {
    /// Whether crops need labels.
    #[must_use]
    pub fn needs_labels(&self) -> bool {
        (self.method.method().needs_labels)(self)
    }

    /// Cuts a batch for `world` ranks.
    ///
    /// # Errors
    /// [`TrainError::Preset`] where it does not divide evenly.
    pub fn share(&self, world: usize) -> Result<Share> {
        let bad = |reason: String| TrainError::Preset { path: "train.batch".into(), reason };
        let t = &self.train;
        if !t.batch.is_multiple_of(world) {
            return Err(bad(format!("{} does not divide by {world} ranks", t.batch)));
        }
        let rank = t.batch / world;
        let micro = if t.micro_batch == 0 { rank } else { t.micro_batch.min(rank) };
        if !rank.is_multiple_of(micro) {
            return Err(bad(format!(
                "{rank} crops of a rank do not divide by train.micro_batch = {micro}"
            )));
        }
        Ok(Share { rank, micro })
    }

    /// The loop's settings for a corpus of this many whole steps per epoch.
    #[must_use]
    pub fn resolve(&self, steps_per_epoch: usize) -> Loop {
        let t = &self.train;
        Loop {
            seed: t.seed,
            batch: t.batch,
            steps: t.epochs * steps_per_epoch,
            warmup: ((t.warmup_epochs * steps_per_epoch as f64).round() as usize)
                .min(t.epochs * steps_per_epoch),
            lr: t.lr,
            min_lr: t.min_lr,
            weight_decay: t.weight_decay,
            clip: t.clip,
            ema: t.ema,
            epoch: steps_per_epoch,
            save_every: t.save_every,
            keep: Keep::Last,
            precision: t.precision,
            memory_format: MemoryFormat::Contiguous,
        }
    }
}

impl Preset for PretrainPreset {
    fn check(&self) -> std::result::Result<(), Fault> {
        let bad = |key: &str, reason: String| Err(Fault::new(key, reason));
        self.model.mae().check().map_err(|e| Fault::new("model", e))?;
        if let Err((key, reason)) = self.views.check() {
            return bad(&key, reason);
        }
        (self.method.method().check)(self)?;
        if let Some(b) = &self.baseline {
            let ok = b.weight > 0.0 && b.temperature > 0.0 && (0.0..1.0).contains(&b.momentum);
            if !ok || b.feature_depth < 1 {
                return bad("baseline", format!("{b:?} is out of range"));
            }
        }
        let t = &self.train;
        for (key, n) in [
            ("train.batch", t.batch),
            ("train.epochs", t.epochs),
            ("train.log_every", t.log_every),
            ("train.save_every", t.save_every),
        ] {
            if n == 0 {
                return bad(key, "must be at least 1".into());
            }
        }
        Rates {
            key: "train.lr",
            stated: t.lr,
            lr: t.lr,
            min_lr: t.min_lr,
            weight_decay: t.weight_decay,
            clip: t.clip,
        }
        .check()?;
        if !(t.warmup_epochs >= 0.0 && t.warmup_epochs <= t.epochs as f64) {
            return bad("train.warmup_epochs", "is not within the epochs".into());
        }
        if !(0.0..1.0).contains(&t.ema) || !t.betas.iter().all(|b| (0.0..1.0).contains(b)) {
            return bad("train.ema", "averages and betas are in [0, 1)".into());
        }
        let tau = self.scl.temperature;
        if !(tau >= 0.01 && tau.is_finite()) || self.scl.block < 1 {
            return bad("scl", "temperature is at least 0.01 and block positive".into());
        }
        Ok(())
    }
}
