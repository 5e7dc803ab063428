//! A block of a vision transformer.

use tch::Tensor;
use tch::nn::{Init, Path};

use crate::layer::{LayerNorm, Linear, drop_path};
use encoders::vit::Mlp;

/// A factor per channel (LayerScale), timm's name `gamma`.
#[derive(Debug)]
pub struct LayerScale {
    /// `[D]`.
    pub gamma: Tensor,
}

impl LayerScale {
    /// All channels start at `value`.
    #[must_use]
    pub fn new(p: &Path, dim: i64, value: f64) -> Self {
        Self { gamma: p.var("gamma", &[dim], Init::Const(value)) }
    }
}

/// One pre-norm transformer block.
#[derive(Debug)]
pub struct Block {
    pub(crate) norm1: LayerNorm,
    pub(crate) qkv: Linear,
    pub(crate) proj: Linear,
    pub(crate) ls1: Option<LayerScale>,
    pub(crate) norm2: LayerNorm,
    pub(crate) fc1: Linear,
    pub(crate) fc2: Linear,
    pub(crate) ls2: Option<LayerScale>,
    pub(crate) heads: i64,
    pub(crate) mlp: Mlp,
    drop_path: f64,
}

/// Shape of a block.
#[derive(Clone, Copy, Debug)]
pub struct BlockShape {
    /// Token width.
    pub dim: i64,
    /// Of attention; they divide `dim`.
    pub heads: i64,
    /// Hidden width of the MLP, as `fc1` gives it.
    pub hidden: i64,
    /// Form of the MLP.
    pub mlp: Mlp,
    /// Bias of query, key, value.
    pub qkv_bias: bool,
    /// Start of LayerScale.
    pub layer_scale: Option<f64>,
    /// Of the norms.
    pub eps: f64,
    /// Stochastic depth.
    pub drop_path: f64,
    /// Start of the weight matrices.
    pub init: Init,
}

impl BlockShape {
    /// timm's plain block: hidden width 4 `dim`, GELU, all biases.
    #[must_use]
    pub fn plain(dim: i64, heads: i64, init: Init) -> Self {
        Self {
            dim,
            heads,
            hidden: 4 * dim,
            mlp: Mlp::Gelu,
            qkv_bias: true,
            layer_scale: None,
            eps: 1e-6,
            drop_path: 0.0,
            init,
        }
    }
}

impl Block {
    /// Builds it under `p` with timm's names.
    #[must_use]
    pub fn new(p: &Path, shape: BlockShape) -> Self {
        let BlockShape { dim, heads, hidden, init, .. } = shape;
        let (attn, mlp) = (p / "attn", p / "mlp");
        let inner = if shape.mlp == Mlp::SwiGlu { hidden / 2 } else { hidden };
        let scale = |name: &str| shape.layer_scale.map(|v| LayerScale::new(&(p / name), dim, v));
        Self {
            norm1: LayerNorm::new(&(p / "norm1"), dim, shape.eps),
            qkv: Linear::new(&(&attn / "qkv"), dim, 3 * dim, shape.qkv_bias, init),
            proj: Linear::new(&(&attn / "proj"), dim, dim, true, init),
            ls1: scale("ls1"),
            norm2: LayerNorm::new(&(p / "norm2"), dim, shape.eps),
            fc1: Linear::new(&(&mlp / "fc1"), dim, hidden, true, init),
            fc2: Linear::new(&(&mlp / "fc2"), inner, dim, true, init),
            ls2: scale("ls2"),
            heads,
            mlp: shape.mlp,
            drop_path: shape.drop_path,
        }
    }

    /// Query, key and value; projection; the MLP's two.
    pub(crate) fn linears(&mut self) -> [&mut Linear; 4] {
        [&mut self.qkv, &mut self.proj, &mut self.fc1, &mut self.fc2]
    }

    /// `[N, T, D]` to the same shape; fused attention.
    pub fn forward(&self, x: &Tensor, train: bool) -> Tensor {
        let scaled = |y: Tensor, scale: &Option<LayerScale>| match scale {
            Some(scale) => y * &scale.gamma,
            None => y,
        };
        let attended = scaled(self.attention(&self.norm1.forward(x)), &self.ls1);
        let x = x + drop_path(attended, self.drop_path, train);
        let changed = scaled(self.fc2.forward(&self.hidden(&self.norm2.forward(&x))), &self.ls2);
        &x + drop_path(changed, self.drop_path, train)
    }

    fn hidden(&self, x: &Tensor) -> Tensor {
        let y = self.fc1.forward(x);
        match self.mlp {
            Mlp::Gelu => y.gelu("none"),
            Mlp::QuickGelu => (&y * 1.702).sigmoid() * &y,
            Mlp::SwiGlu => {
                let parts = y.chunk(2, -1);
                parts[0].silu() * &parts[1]
            }
        }
    }

    fn attention(&self, x: &Tensor) -> Tensor {
        let (n, t, d) = x.size3().expect("[N, T, D]");
        let qkv = self
            .qkv
            .forward(x)
            .reshape([n, t, 3, self.heads, d / self.heads])
            .permute([2, 0, 3, 1, 4]);
        // One backward step for the three; three selects fill and add three whole gradients.
        let qkv = qkv.unbind(0);
        let y = attend(&qkv[0], &qkv[1], &qkv[2]);
        self.proj.forward(&y.transpose(1, 2).reshape([n, t, d]))
    }
}

/// Fused attention of `[N, heads, T, D]`, scaled by the root of D.
pub(super) fn attend(q: &Tensor, k: &Tensor, v: &Tensor) -> Tensor {
    Tensor::scaled_dot_product_attention(q, k, v, None::<Tensor>, 0.0, false, None, false)
}
