//! Vision transformer, equal to timm's `vit_*_patch16_224`, with timm's parameter names.

use serde::{Deserialize, Serialize};
use tch::Tensor;
use tch::nn::{Init, Path};

use crate::error::{NetError, Result};
use crate::layer::{LayerNorm, Linear, drop_path};

/// How tokens become one vector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pool {
    /// The class token after the last norm.
    #[default]
    Cls,
    /// Mean of the patch tokens, then a norm (`fc_norm`), as timm's `global_pool="avg"`.
    Mean,
}

/// Widths and depths by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Size {
    /// 192 wide, 12 deep, 3 heads.
    Tiny,
    /// 384, 12, 6.
    Small,
    /// 768, 12, 12.
    Base,
    /// 1024, 24, 16.
    Large,
    /// 1280, 32, 16, patch 14.
    Huge,
}

impl Size {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Tiny, Self::Small, Self::Base, Self::Large, Self::Huge];

    /// (width, depth, heads, patch).
    #[must_use]
    pub fn shape(self) -> (i64, i64, i64, i64) {
        match self {
            Self::Tiny => (192, 12, 3, 16),
            Self::Small => (384, 12, 6, 16),
            Self::Base => (768, 12, 12, 16),
            Self::Large => (1024, 24, 16, 16),
            Self::Huge => (1280, 32, 16, 14),
        }
    }

    /// timm's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Tiny => "vit_tiny_patch16_224",
            Self::Small => "vit_small_patch16_224",
            Self::Base => "vit_base_patch16_224",
            Self::Large => "vit_large_patch16_224",
            Self::Huge => "vit_huge_patch14_224",
        }
    }
}

/// How to build one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VitConfig {
    /// Width of a token.
    pub dim: i64,
    /// Blocks.
    pub depth: i64,
    /// Attention heads; divides `dim`.
    pub heads: i64,
    /// Patch side in pixels.
    pub patch: i64,
    /// Image side in pixels, a multiple of `patch`.
    pub image: i64,
    /// Hidden width of the MLP over `dim`.
    #[serde(default = "VitConfig::default_mlp_ratio")]
    pub mlp_ratio: f64,
    /// Bias of the query, key and value projection.
    #[serde(default = "VitConfig::default_true")]
    pub qkv_bias: bool,
    /// With a class token.
    #[serde(default = "VitConfig::default_true")]
    pub class_token: bool,
    /// How tokens become one vector.
    #[serde(default)]
    pub pool: Pool,
    /// Stochastic depth at the last block, growing linearly from 0, [0, 1).
    #[serde(default)]
    pub drop_path: f64,
    /// Classes of the head; 0 leaves it out.
    pub classes: i64,
    /// Constant bias of the head.
    #[serde(default)]
    pub head_bias: f64,
}

impl VitConfig {
    fn default_mlp_ratio() -> f64 {
        4.0
    }

    fn default_true() -> bool {
        true
    }

    /// timm's model of this size at 224 px.
    #[must_use]
    pub fn new(size: Size, classes: i64) -> Self {
        let (dim, depth, heads, patch) = size.shape();
        Self {
            dim,
            depth,
            heads,
            patch,
            image: 224,
            mlp_ratio: 4.0,
            qkv_bias: true,
            class_token: true,
            pool: Pool::Cls,
            drop_path: 0.0,
            classes,
            head_bias: 0.0,
        }
    }

    /// Tokens per side.
    #[must_use]
    pub fn grid(&self) -> i64 {
        self.image / self.patch
    }

    /// Checks ranges.
    ///
    /// # Errors
    /// [`NetError::Config`] with the key.
    pub fn check(&self) -> Result<()> {
        let bad = |key: &str, why: String| Err(NetError::config(key, why));
        if self.dim < 1 || self.heads < 1 || self.dim % self.heads != 0 {
            return bad("heads", format!("{} heads do not divide width {}", self.heads, self.dim));
        }
        if self.patch < 1 || self.image < self.patch || self.image % self.patch != 0 {
            return bad("image", format!("{} is no multiple of {}", self.image, self.patch));
        }
        if self.depth < 1 || self.classes < 0 {
            return bad("depth", "depth must be positive and classes not negative".into());
        }
        if !(0.0..1.0).contains(&self.drop_path) {
            return bad("drop_path", format!("{} is not in [0, 1)", self.drop_path));
        }
        if !(self.mlp_ratio.is_finite() && self.mlp_ratio > 0.0) {
            return bad("mlp_ratio", format!("{} is not positive", self.mlp_ratio));
        }
        if self.pool == Pool::Cls && !self.class_token {
            return bad("pool", "`cls` needs `class_token = true`".into());
        }
        Ok(())
    }
}

/// Normal with deviation 0.02 (timm truncates at two, a hundred deviations away).
const NORMAL: Init = Init::Randn { mean: 0.0, stdev: 0.02 };

/// One pre-norm transformer block.
#[derive(Debug)]
pub struct Block {
    pub(crate) norm1: LayerNorm,
    pub(crate) qkv: Linear,
    pub(crate) proj: Linear,
    pub(crate) norm2: LayerNorm,
    pub(crate) fc1: Linear,
    pub(crate) fc2: Linear,
    pub(crate) heads: i64,
    drop_path: f64,
}

/// Shape of a block.
#[derive(Clone, Copy, Debug)]
pub struct BlockShape {
    /// Token width.
    pub dim: i64,
    /// Heads.
    pub heads: i64,
    /// Hidden width of the MLP.
    pub hidden: i64,
    /// Bias of query, key, value.
    pub qkv_bias: bool,
    /// Stochastic depth.
    pub drop_path: f64,
    /// Start of the weight matrices.
    pub init: Init,
}

impl Block {
    /// Builds it under `p` with timm's names.
    #[must_use]
    pub fn new(p: &Path, shape: BlockShape) -> Self {
        let BlockShape { dim, heads, hidden, qkv_bias, drop_path, init } = shape;
        let (attn, mlp) = (p / "attn", p / "mlp");
        Self {
            norm1: LayerNorm::new(&(p / "norm1"), dim, 1e-6),
            qkv: Linear::new(&(&attn / "qkv"), dim, 3 * dim, qkv_bias, init),
            proj: Linear::new(&(&attn / "proj"), dim, dim, true, init),
            norm2: LayerNorm::new(&(p / "norm2"), dim, 1e-6),
            fc1: Linear::new(&(&mlp / "fc1"), dim, hidden, true, init),
            fc2: Linear::new(&(&mlp / "fc2"), hidden, dim, true, init),
            heads,
            drop_path,
        }
    }

    /// `[N, T, D]` to the same shape; fused attention.
    pub fn forward(&self, x: &Tensor, train: bool) -> Tensor {
        let x = x + drop_path(self.attention(&self.norm1.forward(x)), self.drop_path, train);
        let hidden = self.fc1.forward(&self.norm2.forward(&x)).gelu("none");
        &x + drop_path(self.fc2.forward(&hidden), self.drop_path, train)
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
        let y = Tensor::scaled_dot_product_attention(
            &qkv[0],
            &qkv[1],
            &qkv[2],
            None::<&Tensor>,
            0.0,
            false,
            None,
            false,
        );
        self.proj.forward(&y.transpose(1, 2).reshape([n, t, d]))
    }
}

/// Vision transformer.
#[derive(Debug)]
pub struct Vit {
    pub(crate) patch_weight: Tensor,
    pub(crate) patch_bias: Tensor,
    pub(crate) cls_token: Option<Tensor>,
    pub(crate) pos_embed: Tensor,
    pub(crate) blocks: Vec<Block>,
    /// `norm` of the class-token model, absent with mean pooling.
    pub(crate) norm: Option<LayerNorm>,
    /// `fc_norm` of the mean-pooling model.
    pub(crate) fc_norm: Option<LayerNorm>,
    pub(crate) head: Option<Linear>,
    config: VitConfig,
}

impl Vit {
    /// Builds it under `p` with timm's names; the head starts at zero weights and a constant
    /// bias.
    ///
    /// # Errors
    /// [`NetError::Config`] for a setting out of range.
    pub fn new(p: &Path, config: &VitConfig) -> Result<Self> {
        config.check()?;
        let VitConfig { dim, depth, patch, .. } = *config;
        let fan_in = (3 * patch * patch) as f64;
        let uniform = Init::Uniform { lo: -1.0 / fan_in.sqrt(), up: 1.0 / fan_in.sqrt() };
        let proj = p / "patch_embed" / "proj";
        let tokens = config.grid() * config.grid() + i64::from(config.class_token);
        let blocks = (0..depth)
            .map(|i| {
                let rate = config.drop_path * i as f64 / (depth - 1).max(1) as f64;
                let shape = BlockShape {
                    dim,
                    heads: config.heads,
                    hidden: (dim as f64 * config.mlp_ratio) as i64,
                    qkv_bias: config.qkv_bias,
                    drop_path: rate,
                    init: NORMAL,
                };
                Block::new(&(p / "blocks" / i), shape)
            })
            .collect();
        let norm = |name: &str| LayerNorm::new(&(p / name), dim, 1e-6);
        let mean = config.pool == Pool::Mean;
        Ok(Self {
            patch_weight: proj.var("weight", &[dim, 3, patch, patch], uniform),
            patch_bias: proj.var("bias", &[dim], uniform),
            cls_token: config
                .class_token
                .then(|| p.var("cls_token", &[1, 1, dim], Init::Randn { mean: 0.0, stdev: 1e-6 })),
            pos_embed: p.var("pos_embed", &[1, tokens, dim], NORMAL),
            blocks,
            norm: (!mean).then(|| norm("norm")),
            fc_norm: mean.then(|| norm("fc_norm")),
            head: (config.classes > 0)
                .then(|| Linear::head(&(p / "head"), dim, config.classes, config.head_bias)),
            config: config.clone(),
        })
    }

    /// The settings.
    #[must_use]
    pub fn config(&self) -> &VitConfig {
        &self.config
    }

    /// `[N, 3, S, S]` to patch tokens `[N, (S / patch)^2, D]`, no position added, row-major.
    ///
    /// # Panics
    /// When the image is not of the configured size.
    pub fn patchify(&self, x: &Tensor) -> Tensor {
        let (s, p) = (self.config.image, self.config.patch);
        let size = x.size();
        assert!(size.len() == 4 && size[1..] == [3, s, s], "takes [N, 3, {s}, {s}], got {size:?}");
        let maps = x.conv2d(&self.patch_weight, Some(&self.patch_bias), [p, p], [0, 0], [1, 1], 1);
        maps.flatten(2, 3).transpose(1, 2)
    }

    /// `[N, 3, S, S]` to all tokens `[N, T, D]` after the last norm (class-token model) or before
    /// `fc_norm` (mean pooling), class token first.
    pub fn forward_features(&self, x: &Tensor, train: bool) -> Tensor {
        let tokens = self.patchify(x);
        let tokens = match &self.cls_token {
            Some(cls) => {
                let cls = cls.to_kind(tokens.kind()).expand([x.size()[0], -1, -1], false);
                Tensor::cat(&[&cls, &tokens], 1)
            }
            None => tokens,
        };
        let mut y = tokens + &self.pos_embed;
        for block in &self.blocks {
            y = block.forward(&y, train);
        }
        self.norm.as_ref().map_or_else(|| y.shallow_clone(), |n| n.forward(&y))
    }

    /// `[N, 3, S, S]` to one vector per image `[N, D]`, as the head sees it.
    pub fn embed(&self, x: &Tensor, train: bool) -> Tensor {
        let tokens = self.forward_features(x, train);
        match &self.fc_norm {
            None => tokens.select(1, 0),
            Some(norm) => {
                let first = i64::from(self.config.class_token);
                let patches = tokens.slice(1, first, None, 1);
                norm.forward(&patches.mean_dim([1i64].as_slice(), false, None))
            }
        }
    }

    /// `[N, 3, S, S]` to logits `[N, classes]`, or to [`Self::embed`] without a head.
    pub fn forward(&self, x: &Tensor, train: bool) -> Tensor {
        let y = self.embed(x, train);
        self.head.as_ref().map_or_else(|| y.shallow_clone(), |h| h.forward(&y))
    }
}
