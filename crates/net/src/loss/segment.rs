//! Segmentation loss: weighted binary cross-entropy plus soft Dice, with an ignore mask.

use serde::{Deserialize, Serialize};
use tch::{Kind, Tensor};

/// Weights of the terms.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SegmentLoss {
    /// Weight of the cross-entropy.
    pub bce: f64,
    /// Weight of the Dice term.
    pub dice: f64,
    /// Factor of positive pixels in the cross-entropy.
    pub pos_weight: f64,
    /// Added to both sides of the Dice fraction, in pixels.
    pub smooth: f64,
}

impl Default for SegmentLoss {
    fn default() -> Self {
        Self { bce: 1.0, dice: 1.0, pos_weight: 1.0, smooth: 1.0 }
    }
}

/// The loss and its parts, scalars.
#[derive(Debug)]
pub struct SegmentTerms {
    /// Weighted sum; call `backward` on it.
    pub total: Tensor,
    /// Mean binary cross-entropy over kept pixels.
    pub bce: Tensor,
    /// One minus the soft Dice coefficient over the batch.
    pub dice: Tensor,
}

impl SegmentLoss {
    /// `logits` and `target` `[N, 1, H, W]` (target in [0, 1]); `keep`, of the same shape, is one
    /// where a pixel counts and zero where its label is unknown.
    ///
    /// With `p = sigmoid(logits)` and sums over kept pixels of the batch:
    /// `bce = sum(keep (w t softplus(-x) + (1 - t) softplus(x))) / sum(keep)`,
    /// `dice = 1 - (2 sum(p t) + s) / (sum(p) + sum(t) + s)`. An all-ignored batch gives zero bce.
    ///
    /// # Panics
    /// When the shapes differ.
    #[must_use]
    pub fn forward(&self, logits: &Tensor, target: &Tensor, keep: Option<&Tensor>) -> SegmentTerms {
        assert_eq!(logits.size(), target.size(), "logits and target differ in shape");
        let x = logits.to_kind(Kind::Float);
        let t = target.to_kind(Kind::Float);
        let keep = match keep {
            Some(k) => {
                assert_eq!(k.size(), t.size(), "mask and target differ in shape");
                k.to_kind(Kind::Float)
            }
            None => t.ones_like(),
        };
        let t = &t * &keep;
        let positive = (-&x).softplus() * &t * self.pos_weight;
        let negative = x.softplus() * (1.0 - &t);
        let pixels: Tensor = (positive + negative) * &keep;
        let bce = pixels.sum(Kind::Float) / keep.sum(Kind::Float).clamp_min(1.0);
        let p = x.sigmoid() * &keep;
        let overlap = (&p * &t).sum(Kind::Float) * 2.0 + self.smooth;
        let dice = 1.0 - overlap / (p.sum(Kind::Float) + t.sum(Kind::Float) + self.smooth);
        SegmentTerms { total: &bce * self.bce + &dice * self.dice, bce, dice }
    }
}
