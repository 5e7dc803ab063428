//! Linear probing: affine-free batch norm and a linear layer on frozen features.

use tch::nn::Path;
use tch::{Kind, Tensor};

use crate::layer::{BatchNorm, Linear};

/// The probe's head.
#[derive(Debug)]
pub struct Probe {
    norm: BatchNorm,
    head: Linear,
}

impl Probe {
    /// Names `norm.*`, `head.*`. eps 1e-6 as in the MAE reference. `weight` `[C, D]` is where the
    /// head starts, with a constant bias. Under LARS a weight of zero hardly moves: each update is
    /// a share of the weight's own norm ([`crate::optim::Lars`]).
    #[must_use]
    pub fn new(p: &Path, weight: &Tensor, head_bias: f64) -> Self {
        let (classes, dim) = weight.size2().expect("a matrix [classes, dim]");
        let mut norm = BatchNorm::affine_free(&(p / "norm"), dim);
        norm.eps = 1e-6;
        let mut head = Linear::head(&(p / "head"), dim, classes, head_bias);
        tch::no_grad(|| head.weight.copy_(weight));
        Self { norm, head }
    }

    /// Features `[N, D]` (of [`crate::encoder::Encoder::embed`]) to logits `[N, C]`.
    pub fn forward(&self, features: &Tensor, train: bool) -> Tensor {
        self.head.forward(&self.norm.forward(&features.to_kind(Kind::Float), train))
    }

    /// Weight `[C, D]` and bias `[C]` of the one linear layer that equals this head at inference;
    /// copied into an encoder's own head it makes probe and encoder one classifier to export.
    pub fn folded(&self) -> (Tensor, Tensor) {
        tch::no_grad(|| {
            let double = |t: &Tensor| t.detach().to_kind(Kind::Double);
            let scale = (double(&self.norm.running_var) + self.norm.eps).rsqrt();
            let weight = double(&self.head.weight) * scale.unsqueeze(0);
            let shift = weight.mv(&double(&self.norm.running_mean));
            let bias = self.head.bias.as_ref().map_or_else(|| shift.zeros_like(), double) - shift;
            (weight.to_kind(Kind::Float), bias.to_kind(Kind::Float))
        })
    }
}
