//! Learning-rate schedules.

use serde::{Deserialize, Serialize};

use crate::error::{NetError, Result};

/// Linear warm-up from zero, then half a cosine down to `min_lr` (the MAE reference's
/// `adjust_learning_rate`, evaluated at a fractional epoch, so it changes with every step).
///
/// For epoch `e` (fractional): `lr e / warmup` while `e < warmup`, else
/// `min_lr + (lr - min_lr) (1 + cos(pi (e - warmup) / (epochs - warmup))) / 2`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WarmupCosine {
    /// Peak learning rate, absolute.
    pub lr: f64,
    /// Rate at the end.
    #[serde(default)]
    pub min_lr: f64,
    /// Warm-up epochs, fractional allowed.
    pub warmup_epochs: f64,
    /// All epochs, warm-up included.
    pub epochs: f64,
}

impl WarmupCosine {
    /// Checks ranges.
    ///
    /// # Errors
    /// [`NetError::Encoder`] with the key.
    pub fn check(&self) -> Result<()> {
        let Self { lr, min_lr, warmup_epochs, epochs } = *self;
        if !(lr.is_finite() && lr > 0.0) {
            return Err(NetError::config("lr", format!("{lr} is not a positive rate")));
        }
        if !(min_lr.is_finite() && (0.0..=lr).contains(&min_lr)) {
            return Err(NetError::config("min_lr", format!("{min_lr} is not in [0, lr]")));
        }
        if !(epochs.is_finite() && epochs > 0.0) {
            return Err(NetError::config("epochs", format!("{epochs} is not positive")));
        }
        if !(0.0..=epochs).contains(&warmup_epochs) {
            return Err(NetError::config("warmup_epochs", "not in [0, epochs]"));
        }
        Ok(())
    }

    /// The rate at a fractional epoch, e.g. `step / steps_per_epoch` before that step.
    #[must_use]
    pub fn at(&self, epoch: f64) -> f64 {
        if epoch < self.warmup_epochs {
            return self.lr * epoch / self.warmup_epochs;
        }
        let span = self.epochs - self.warmup_epochs;
        let t = if span > 0.0 { ((epoch - self.warmup_epochs) / span).min(1.0) } else { 1.0 };
        self.min_lr + (self.lr - self.min_lr) * 0.5 * (1.0 + (std::f64::consts::PI * t).cos())
    }
}

/// A rate stated per 256 samples (fine-tuning, probing): `base x batch / 256`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BaseLr(pub f64);

impl BaseLr {
    /// The absolute rate for an effective batch.
    #[must_use]
    pub fn scaled(self, effective_batch: usize) -> f64 {
        self.0 * effective_batch as f64 / 256.0
    }
}
