//! Layers with timm's parameter names. Own structs, so that export and folding see every field.

pub use encoders::layer::{Act, ConvNormShape, ConvShape};
use tch::nn::{Init, Path};
use tch::{Kind, Tensor};

/// 2-D convolution, bias optional. Weight `[out, in / groups, k, k]`.
#[derive(Debug)]
pub struct Conv2d {
    /// `[out, in / groups, k, k]`.
    pub weight: Tensor,
    /// `[out]`.
    pub bias: Option<Tensor>,
    /// Stride, both axes.
    pub stride: i64,
    /// Zero padding, both axes and sides.
    pub padding: i64,
    /// Channels are divided into so many.
    pub groups: i64,
}

impl Conv2d {
    /// Padding keeps the size at stride 1 (`k / 2` on every side, as timm's default). Weights are
    /// normal with variance 2 / fan-out (timm's EfficientNet rule), bias zero.
    #[must_use]
    pub fn new(p: &Path, shape: ConvShape) -> Self {
        let ConvShape { output, kernel, stride, groups, bias, .. } = shape;
        let fan_out = (kernel * kernel * output / groups) as f64;
        let init = Init::Randn { mean: 0.0, stdev: (2.0 / fan_out).sqrt() };
        Self {
            weight: p.var("weight", &shape.dims(), init),
            bias: bias.then(|| p.var("bias", &[output], Init::Const(0.0))),
            stride,
            padding: kernel / 2,
            groups,
        }
    }

    /// `[N, in, H, W]` to `[N, out, H', W']`.
    pub fn forward(&self, x: &Tensor) -> Tensor {
        let s = [self.stride, self.stride];
        let p = [self.padding, self.padding];
        x.conv2d(&self.weight, self.bias.as_ref(), s, p, [1, 1], self.groups)
    }
}

/// Batch norm over `[N, C, H, W]` or `[N, C]`; eps 1e-5 and momentum 0.1 unless stated.
#[derive(Debug)]
pub struct BatchNorm {
    /// Scale `[C]`; absent when affine-free.
    pub weight: Option<Tensor>,
    /// Shift `[C]`; absent when affine-free.
    pub bias: Option<Tensor>,
    /// Running mean `[C]`.
    pub running_mean: Tensor,
    /// Running variance `[C]` (unbiased, as torch keeps it).
    pub running_var: Tensor,
    /// Added to the variance.
    pub eps: f64,
    /// Share of the new statistics.
    pub momentum: f64,
}

impl BatchNorm {
    /// Scale one, shift zero.
    #[must_use]
    pub fn new(p: &Path, channels: i64) -> Self {
        Self {
            weight: Some(p.var("weight", &[channels], Init::Const(1.0))),
            bias: Some(p.var("bias", &[channels], Init::Const(0.0))),
            ..Self::affine_free(p, channels)
        }
    }

    /// Without scale and shift (linear probing).
    #[must_use]
    pub fn affine_free(p: &Path, channels: i64) -> Self {
        Self {
            weight: None,
            bias: None,
            running_mean: p.zeros_no_train("running_mean", &[channels]),
            running_var: p.ones_no_train("running_var", &[channels]),
            eps: 1e-5,
            momentum: 0.1,
        }
    }

    /// With `train`, batch statistics are used and the running ones updated.
    pub fn forward(&self, x: &Tensor, train: bool) -> Tensor {
        x.batch_norm(
            self.weight.as_ref(),
            self.bias.as_ref(),
            Some(&self.running_mean),
            Some(&self.running_var),
            train,
            self.momentum,
            self.eps,
            true,
        )
    }
}

/// `y = x W^T + b`, weight `[out, in]`; while fine-tuning perhaps with an adapter next to the weight.
#[derive(Debug)]
pub struct Linear {
    /// `[out, in]`.
    pub weight: Tensor,
    /// `[out]`.
    pub bias: Option<Tensor>,
    /// Of low rank, added to what the weight gives.
    pub(crate) adapter: Option<Adapter>,
}

impl Linear {
    /// Weights as `init` states, bias zero.
    #[must_use]
    pub fn new(p: &Path, input: i64, output: i64, bias: bool, init: Init) -> Self {
        Self {
            weight: p.var("weight", &[output, input], init),
            bias: bias.then(|| p.var("bias", &[output], Init::Const(0.0))),
            adapter: None,
        }
    }

    /// A head with zero weights and a constant bias.
    #[must_use]
    pub fn head(p: &Path, input: i64, output: i64, bias: f64) -> Self {
        Self {
            weight: p.var("weight", &[output, input], Init::Const(0.0)),
            bias: Some(p.var("bias", &[output], Init::Const(bias))),
            adapter: None,
        }
    }

    /// `[..., in]` to `[..., out]`.
    pub fn forward(&self, x: &Tensor) -> Tensor {
        let y = x.linear(&self.weight, self.bias.as_ref());
        match &self.adapter {
            Some(adapter) => y + adapter.forward(x),
            None => y,
        }
    }
}

/// What is learnt next to a linear layer while its weight stays (`lora`).
#[derive(Debug)]
pub(crate) struct Adapter {
    /// `[rank, in]`.
    pub a: Tensor,
    /// `[out, rank]`.
    pub b: Tensor,
    /// Of their product.
    pub scaling: f64,
}

impl Adapter {
    /// `[..., in]` to `[..., out]`.
    fn forward(&self, x: &Tensor) -> Tensor {
        x.linear(&self.a, None::<&Tensor>).linear(&self.b, None::<&Tensor>) * self.scaling
    }
}

/// Layer norm over the last axis.
#[derive(Debug)]
pub struct LayerNorm {
    /// `[D]`.
    pub weight: Tensor,
    /// `[D]`.
    pub bias: Tensor,
    /// Added to the variance.
    pub eps: f64,
}

impl LayerNorm {
    /// Scale one, shift zero.
    #[must_use]
    pub fn new(p: &Path, dim: i64, eps: f64) -> Self {
        Self {
            weight: p.var("weight", &[dim], Init::Const(1.0)),
            bias: p.var("bias", &[dim], Init::Const(0.0)),
            eps,
        }
    }

    /// `[..., D]` to the same shape.
    pub fn forward(&self, x: &Tensor) -> Tensor {
        let dim = self.weight.size();
        x.layer_norm(&dim, Some(&self.weight), Some(&self.bias), self.eps, true)
    }
}

/// Stochastic depth per sample (timm's `DropPath`): while training, a residual branch `[N, ...]`
/// is dropped with probability `p` and scaled by `1 / (1 - p)` otherwise.
pub fn drop_path(x: Tensor, p: f64, train: bool) -> Tensor {
    if p == 0.0 || !train {
        return x;
    }
    let keep = 1.0 - p;
    let mut shape = vec![1; x.dim()];
    shape[0] = x.size()[0];
    let mask = Tensor::empty(&shape, (Kind::Float, x.device())).bernoulli_float_(keep) / keep;
    &x * mask.to_kind(x.kind())
}

/// What an activation computes.
pub trait Activation {
    /// Applies it.
    fn forward(self, x: &Tensor) -> Tensor;
}

impl Activation for Act {
    fn forward(self, x: &Tensor) -> Tensor {
        match self {
            Self::Silu => x.silu(),
            Self::Relu6 => x.relu6(),
            Self::Relu => x.relu(),
        }
    }
}
