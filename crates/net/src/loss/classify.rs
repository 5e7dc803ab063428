//! Cross-entropy with label smoothing and class weights.

use serde::{Deserialize, Serialize};
use tch::{Kind, Reduction, Tensor};

/// Settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CrossEntropy {
    /// Share of the target spread evenly over all classes, [0, 1).
    #[serde(default)]
    pub smoothing: f64,
    /// One weight per class; empty means all one.
    #[serde(default)]
    pub class_weights: Vec<f64>,
}

impl CrossEntropy {
    /// `logits [N, C]`, `target [N]` of class indices (i64), to the mean loss; equal to
    /// `torch.nn.CrossEntropyLoss(weight, label_smoothing)`.
    ///
    /// # Panics
    /// When the number of weights is not `C`.
    pub fn forward(&self, logits: &Tensor, target: &Tensor) -> Tensor {
        let x = logits.to_kind(Kind::Float);
        let weight = (!self.class_weights.is_empty()).then(|| {
            let classes = x.size()[1];
            assert_eq!(self.class_weights.len() as i64, classes, "one weight per class");
            Tensor::from_slice(&self.class_weights).to_kind(Kind::Float).to_device(x.device())
        });
        x.cross_entropy_loss(target, weight.as_ref(), Reduction::Mean, -100, self.smoothing)
    }
}

/// Mean cross-entropy against soft targets `[N, C]` (mixup and the like).
pub fn cross_entropy(logits: &Tensor, soft_target: &Tensor) -> Tensor {
    let log_p = logits.to_kind(Kind::Float).log_softmax(-1, Kind::Float);
    -(log_p * soft_target).sum_dim_intlist([-1i64].as_slice(), false, Kind::Float).mean(Kind::Float)
}
