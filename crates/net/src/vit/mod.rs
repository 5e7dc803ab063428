//! Vision transformer, equal to timm's `vit_*` with any of their switches ([`encoders::vit`]), with timm's
//! parameter names; CLIP's projection and CONCH's attentional pooling after it.

mod block;
mod pooler;

use tch::Tensor;
use tch::nn::{Init, Path};

pub use self::block::{Block, BlockShape, LayerScale};
pub use self::pooler::Pooler;
pub use encoders::vit::{AttentionPool, Mlp, Pool, Projection, Size, VitConfig};

use crate::error::Result;
use crate::layer::{LayerNorm, Linear};

/// Normal with deviation 0.02 (timm truncates at two, a hundred deviations away).
const NORMAL: Init = Init::Randn { mean: 0.0, stdev: 0.02 };

/// Class token and registers start next to zero.
const TOKEN: Init = Init::Randn { mean: 0.0, stdev: 1e-6 };

/// Vision transformer.
#[derive(Debug)]
pub struct Vit {
    pub(crate) patch_weight: Tensor,
    pub(crate) patch_bias: Option<Tensor>,
    pub(crate) cls_token: Option<Tensor>,
    pub(crate) reg_token: Option<Tensor>,
    pub(crate) pos_embed: Tensor,
    pub(crate) norm_pre: Option<LayerNorm>,
    pub(crate) blocks: Vec<Block>,
    /// `norm` over all tokens, absent with mean pooling.
    pub(crate) norm: Option<LayerNorm>,
    /// `fc_norm` of the mean-pooling model.
    pub(crate) fc_norm: Option<LayerNorm>,
    pub(crate) pooler: Option<Pooler>,
    pub(crate) projection: Option<Linear>,
    pub(crate) head: Option<Linear>,
    config: VitConfig,
}

impl Vit {
    /// Builds it under `p` with timm's names; the head starts at zero weights and a constant
    /// bias.
    ///
    /// # Errors
    /// [`NetError::Encoder`](crate::NetError::Encoder) for a setting out of range.
    pub fn new(p: &Path, config: &VitConfig) -> Result<Self> {
        config.check()?;
        let VitConfig { dim, depth, patch, eps, .. } = *config;
        let fan_in = (3 * patch * patch) as f64;
        let uniform = Init::Uniform { lo: -1.0 / fan_in.sqrt(), up: 1.0 / fan_in.sqrt() };
        let proj = p / "patch_embed" / "proj";
        let rows = config.grid() * config.grid() + config.embedded_prefix();
        let blocks = (0..depth)
            .map(|i| {
                let shape = BlockShape {
                    dim,
                    heads: config.heads,
                    hidden: config.hidden(),
                    mlp: config.mlp,
                    qkv_bias: config.qkv_bias,
                    layer_scale: config.layer_scale,
                    eps,
                    drop_path: config.drop_path * i as f64 / (depth - 1).max(1) as f64,
                    init: NORMAL,
                };
                Block::new(&(p / "blocks" / i), shape)
            })
            .collect();
        let norm = |name: &str| LayerNorm::new(&(p / name), dim, eps);
        let mean = config.pool == Pool::Mean;
        let registers = config.registers;
        Ok(Self {
            patch_weight: proj.var("weight", &[dim, 3, patch, patch], uniform),
            patch_bias: (!config.pre_norm).then(|| proj.var("bias", &[dim], uniform)),
            cls_token: config.class_token.then(|| p.var("cls_token", &[1, 1, dim], TOKEN)),
            reg_token: (registers > 0).then(|| p.var("reg_token", &[1, registers, dim], TOKEN)),
            pos_embed: p.var("pos_embed", &[1, rows, dim], NORMAL),
            norm_pre: config.pre_norm.then(|| norm("norm_pre")),
            blocks,
            norm: (!mean).then(|| norm("norm")),
            fc_norm: mean.then(|| norm("fc_norm")),
            pooler: config.attention.map(|a| Pooler::new(&(p / "attn_pool"), dim, a)),
            projection: config.projection.map(|o| {
                let std = (config.pooled() as f64).powf(-0.5);
                let init = Init::Randn { mean: 0.0, stdev: std };
                Linear::new(&(p / "projection"), config.pooled(), o.dim, false, init)
            }),
            head: (config.classes > 0).then(|| {
                Linear::head(&(p / "head"), config.width(), config.classes, config.head_bias)
            }),
            config: *config,
        })
    }

    /// Settings that it was built from.
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
        let bias = self.patch_bias.as_ref();
        let maps = x.conv2d(&self.patch_weight, bias, [p, p], [0, 0], [1, 1], 1);
        maps.flatten(2, 3).transpose(1, 2)
    }

    /// Class token and registers before the patches, positions added.
    fn embed_tokens(&self, patches: Tensor) -> Tensor {
        let n = patches.size()[0];
        let prefix = [&self.cls_token, &self.reg_token].into_iter().flatten();
        let mut all: Vec<Tensor> =
            prefix.map(|t| t.to_kind(patches.kind()).expand([n, -1, -1], false)).collect();
        if self.config.no_embed_class {
            all.push(patches + &self.pos_embed);
            Tensor::cat(&all, 1)
        } else if all.is_empty() {
            patches + &self.pos_embed
        } else {
            all.push(patches);
            Tensor::cat(&all, 1) + &self.pos_embed
        }
    }

    /// `[N, 3, S, S]` to all tokens `[N, T, D]` after the last norm, or before `fc_norm` (mean
    /// pooling): class token, registers, patches.
    pub fn forward_features(&self, x: &Tensor, train: bool) -> Tensor {
        let mut y = self.embed_tokens(self.patchify(x));
        if let Some(norm) = &self.norm_pre {
            y = norm.forward(&y);
        }
        for block in &self.blocks {
            y = block.forward(&y, train);
        }
        self.norm.as_ref().map_or_else(|| y.shallow_clone(), |n| n.forward(&y))
    }

    fn pool(&self, tokens: &Tensor) -> Tensor {
        let patches_mean = || {
            let patches = tokens.slice(1, self.config.prefix(), None, 1);
            patches.mean_dim([1i64].as_slice(), false, None)
        };
        match (self.config.pool, &self.pooler, &self.fc_norm) {
            (Pool::Attention, Some(pooler), _) => pooler.forward(tokens),
            (Pool::ClsMean, ..) => Tensor::cat(&[tokens.select(1, 0), patches_mean()], -1),
            (Pool::Mean, _, Some(norm)) => norm.forward(&patches_mean()),
            _ => tokens.select(1, 0),
        }
    }

    /// `[N, 3, S, S]` to one vector per image `[N, width]`, as the head sees it.
    pub fn embed(&self, x: &Tensor, train: bool) -> Tensor {
        let y = self.pool(&self.forward_features(x, train));
        let Some(projection) = &self.projection else { return y };
        let y = projection.forward(&y);
        if self.config.projection.is_some_and(|p| p.unit) {
            let norm = y.norm_scalaropt_dim(2.0, [-1i64].as_slice(), true);
            y / norm.clamp_min(1e-12)
        } else {
            y
        }
    }

    /// `[N, 3, S, S]` to logits `[N, classes]`, or to [`Self::embed`] without a head.
    pub fn forward(&self, x: &Tensor, train: bool) -> Tensor {
        let y = self.embed(x, train);
        self.head.as_ref().map_or_else(|| y.shallow_clone(), |h| h.forward(&y))
    }
}
