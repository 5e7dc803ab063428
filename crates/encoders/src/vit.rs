//! Vision transformer, equal to timm's `vit_*` with any of their switches, with timm's parameter
//! names; CLIP's projection and CONCH's attentional pooling after it.
//!
//! | switch | [`VitConfig`] | where |
//! |---|---|---|
//! | LayerScale | `layer_scale` | DINOv2, UNI |
//! | registers; no position for class token and registers | `registers`, `no_embed_class` | DINOv2 reg4, Virchow2 |
//! | packed SwiGLU | `mlp`, `mlp_ratio` | Virchow, DINOv2's giant |
//! | norm before the blocks | `pre_norm` | CLIP |
//! | epsilon of the norms | `eps` | CLIP |
//! | QuickGELU | `mlp` | CLIP |
//! | another image size than the file's | `image`, [`resample`](crate::foreign::resample) | all |
//! | pooling | `pool`, `attention`, `projection` | Virchow, CONCH, CLIP |

use serde::{Deserialize, Serialize};

use crate::error::{EncoderError, Result};

/// How tokens become one vector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pool {
    /// The class token after the last norm.
    #[default]
    Cls,
    /// Mean of the patch tokens, then a norm (`fc_norm`), as timm's `global_pool="avg"`.
    Mean,
    /// The class token and the mean of the patch tokens, both after the last norm, one after the
    /// other: twice the width. Registers are not patches.
    ClsMean,
    /// A learned query that attends to all tokens after the last norm ([`AttentionPool`]).
    Attention,
}

impl std::fmt::Display for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Cls => "class token",
            Self::Mean => "mean of the patches",
            Self::ClsMean => "class token and mean of the patches",
            Self::Attention => "attention by one query",
        })
    }
}

/// The part of a block after its attention.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mlp {
    /// `fc2(gelu(fc1(x)))`, exact GELU.
    #[default]
    Gelu,
    /// The same with `x sigmoid(1.702 x)`, as OpenAI's CLIP.
    QuickGelu,
    /// `fc2(silu(a) * b)` where `fc1` gives `a` and `b` one after the other (timm's
    /// `SwiGLUPacked`): `mlp_ratio` is the width of both together.
    SwiGlu,
}

/// Attentional pooling with one query, then a norm (eps 1e-5), as CONCH's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttentionPool {
    /// Width of the query and of the result.
    pub dim: i64,
    /// Heads; divides `dim`.
    pub heads: i64,
}

/// A matrix after the pooling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Projection {
    /// Width of the result.
    pub dim: i64,
    /// The result is scaled to length one.
    #[serde(default)]
    pub unit: bool,
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
    /// 1536, 40, 24, patch 14: DINOv2's giant.
    Giant,
}

impl Size {
    /// Those that timm has a plain model of.
    pub const ALL: [Self; 5] = [Self::Tiny, Self::Small, Self::Base, Self::Large, Self::Huge];

    /// (width, depth, heads, patch).
    #[must_use]
    pub const fn shape(self) -> (i64, i64, i64, i64) {
        match self {
            Self::Tiny => (192, 12, 3, 16),
            Self::Small => (384, 12, 6, 16),
            Self::Base => (768, 12, 12, 16),
            Self::Large => (1024, 24, 16, 16),
            Self::Huge => (1280, 32, 16, 14),
            Self::Giant => (1536, 40, 24, 14),
        }
    }

    /// timm's name; the giant's is that of DINOv2's.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tiny => "vit_tiny_patch16_224",
            Self::Small => "vit_small_patch16_224",
            Self::Base => "vit_base_patch16_224",
            Self::Large => "vit_large_patch16_224",
            Self::Huge => "vit_huge_patch14_224",
            Self::Giant => "vit_giant_patch14_dinov2",
        }
    }
}

/// How to build one. What is absent in a file is as in timm's plain model.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
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
    /// Form of the MLP.
    #[serde(default)]
    pub mlp: Mlp,
    /// Bias of the query, key and value projection.
    #[serde(default = "VitConfig::default_true")]
    pub qkv_bias: bool,
    /// With a class token.
    #[serde(default = "VitConfig::default_true")]
    pub class_token: bool,
    /// Register tokens, after the class token.
    #[serde(default)]
    pub registers: i64,
    /// The position table holds patches alone, no class token and no registers.
    #[serde(default)]
    pub no_embed_class: bool,
    /// Each branch of a block is scaled per channel, from this value on (LayerScale); absent:
    /// not scaled.
    #[serde(default)]
    pub layer_scale: Option<f64>,
    /// A norm before the first block, and no bias in the patch embedding (CLIP).
    #[serde(default)]
    pub pre_norm: bool,
    /// Added to the variance in layer norms.
    #[serde(default = "VitConfig::default_eps")]
    pub eps: f64,
    /// How tokens become one vector.
    #[serde(default)]
    pub pool: Pool,
    /// The pooling query of [`Pool::Attention`].
    #[serde(default)]
    pub attention: Option<AttentionPool>,
    /// A matrix after the pooling.
    #[serde(default)]
    pub projection: Option<Projection>,
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

    fn default_eps() -> f64 {
        1e-6
    }

    /// timm's model of this size at 224 px.
    #[must_use]
    pub const fn new(size: Size, classes: i64) -> Self {
        let (dim, depth, heads, patch) = size.shape();
        Self {
            dim,
            depth,
            heads,
            patch,
            image: 224,
            mlp_ratio: 4.0,
            mlp: Mlp::Gelu,
            qkv_bias: true,
            class_token: true,
            registers: 0,
            no_embed_class: false,
            layer_scale: None,
            pre_norm: false,
            eps: 1e-6,
            pool: Pool::Cls,
            attention: None,
            projection: None,
            drop_path: 0.0,
            classes,
            head_bias: 0.0,
        }
    }

    /// Patches per side.
    #[must_use]
    pub fn grid(&self) -> i64 {
        self.image / self.patch
    }

    /// Tokens before the patches: class token and registers.
    #[must_use]
    pub fn prefix(&self) -> i64 {
        i64::from(self.class_token) + self.registers
    }

    /// Rows of the position table before those of the patches.
    #[must_use]
    pub fn embedded_prefix(&self) -> i64 {
        if self.no_embed_class { 0 } else { self.prefix() }
    }

    /// Hidden width of the MLP, as `fc1` gives it.
    #[must_use]
    pub fn hidden(&self) -> i64 {
        (self.dim as f64 * self.mlp_ratio) as i64
    }

    /// Width that comes back from the MLP's form: half of SwiGLU's packed one.
    #[must_use]
    pub fn inner(&self) -> i64 {
        if self.mlp == Mlp::SwiGlu { self.hidden() / 2 } else { self.hidden() }
    }

    /// Width of the pooled vector.
    #[must_use]
    pub const fn pooled(&self) -> i64 {
        match (self.pool, self.attention) {
            (Pool::ClsMean, _) => 2 * self.dim,
            (Pool::Attention, Some(a)) => a.dim,
            _ => self.dim,
        }
    }

    /// Width of an image's vector: what the head takes.
    #[must_use]
    pub const fn width(&self) -> i64 {
        match self.projection {
            Some(p) => p.dim,
            None => self.pooled(),
        }
    }

    /// Checks ranges.
    ///
    /// # Errors
    /// [`EncoderError::Config`] with the key.
    pub fn check(&self) -> Result<()> {
        let bad = |key: &str, why: String| Err(EncoderError::config(key, why));
        if self.dim < 1 || self.heads < 1 || self.dim % self.heads != 0 {
            return bad("heads", format!("{} heads do not divide width {}", self.heads, self.dim));
        }
        if self.patch < 1 || self.image < self.patch || self.image % self.patch != 0 {
            return bad("image", format!("{} is not a multiple of {}", self.image, self.patch));
        }
        if self.depth < 1 || self.classes < 0 {
            return bad("depth", "depth must be positive and classes not negative".into());
        }
        if !(0.0..1.0).contains(&self.drop_path) {
            return bad("drop_path", format!("{} is not in [0, 1)", self.drop_path));
        }
        let positive = |v: f64| v.is_finite() && v > 0.0;
        if !positive(self.mlp_ratio) || self.hidden() < 1 {
            return bad("mlp_ratio", format!("{} gives no hidden layer", self.mlp_ratio));
        }
        if self.mlp == Mlp::SwiGlu && self.hidden() % 2 != 0 {
            return bad("mlp_ratio", format!("SwiGLU cannot halve a width of {}", self.hidden()));
        }
        if !positive(self.eps) {
            return bad("eps", format!("{} is not positive", self.eps));
        }
        if self.layer_scale.is_some_and(|v| !v.is_finite()) {
            return bad("layer_scale", "not finite".into());
        }
        if self.registers < 0 {
            return bad("registers", format!("{} is negative", self.registers));
        }
        if matches!(self.pool, Pool::Cls | Pool::ClsMean) && !self.class_token {
            return bad("pool", "this pooling needs `class_token = true`".into());
        }
        match (self.pool, self.attention) {
            (Pool::Attention, Some(a)) if a.heads < 1 || a.dim < 1 || a.dim % a.heads != 0 => {
                bad("attention", format!("{} heads do not divide width {}", a.heads, a.dim))
            }
            (Pool::Attention, None) => bad("attention", "`pool = \"attention\"` needs it".into()),
            (Pool::Cls | Pool::Mean | Pool::ClsMean, Some(_)) => {
                bad("attention", "belongs to `pool = \"attention\"`".into())
            }
            _ if self.projection.is_some_and(|p| p.dim < 1) => {
                bad("projection", "has no width".into())
            }
            _ => Ok(()),
        }
    }
}
