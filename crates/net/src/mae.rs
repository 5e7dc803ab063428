//! Masked autoencoder with projection heads: the MAE reference's network on timm's blocks,
//! and one head each for the image (class token) and for the visible tokens.

use serde::{Deserialize, Serialize};
use tch::nn::{Init, Path};
use tch::{Kind, Tensor};

use crate::error::{NetError, Result};
use crate::layer::{BatchNorm, LayerNorm, Linear};
use crate::vit::{Block, BlockShape, Size};

/// How to build one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MaeConfig {
    /// Encoder width D_E.
    pub dim: i64,
    /// Encoder blocks.
    pub depth: i64,
    /// Encoder heads.
    pub heads: i64,
    /// Patch side, pixels.
    pub patch: i64,
    /// Image side, pixels.
    pub image: i64,
    /// Decoder width.
    #[serde(default = "MaeConfig::default_decoder_dim")]
    pub decoder_dim: i64,
    /// Decoder blocks.
    #[serde(default = "MaeConfig::default_decoder_depth")]
    pub decoder_depth: i64,
    /// Of attention; they divide the decoder's width.
    #[serde(default = "MaeConfig::default_decoder_heads")]
    pub decoder_heads: i64,
    /// Width D_P of the projections.
    #[serde(default = "MaeConfig::default_projection")]
    pub projection: i64,
    /// Share of tiles masked, (0, 1).
    #[serde(default = "MaeConfig::default_mask_ratio")]
    pub mask_ratio: f64,
}

impl MaeConfig {
    fn default_decoder_dim() -> i64 {
        512
    }

    fn default_decoder_depth() -> i64 {
        8
    }

    fn default_decoder_heads() -> i64 {
        16
    }

    fn default_projection() -> i64 {
        512
    }

    fn default_mask_ratio() -> f64 {
        0.75
    }

    /// The paper's decoder (8 x 512, 16 heads), projections to 512 and masking 0.75 on an encoder
    /// of this size at 224 px.
    #[must_use]
    pub fn new(size: Size) -> Self {
        let (dim, depth, heads, patch) = size.shape();
        Self {
            dim,
            depth,
            heads,
            patch,
            image: 224,
            decoder_dim: 512,
            decoder_depth: 8,
            decoder_heads: 16,
            projection: 512,
            mask_ratio: 0.75,
        }
    }

    /// Tiles per side.
    #[must_use]
    pub fn grid(&self) -> i64 {
        self.image / self.patch
    }

    /// Tiles per image, T.
    #[must_use]
    pub fn tiles(&self) -> i64 {
        self.grid() * self.grid()
    }

    /// Visible tiles per image, V (49 of 196 in the paper).
    #[must_use]
    pub fn visible(&self) -> i64 {
        (self.tiles() as f64 * (1.0 - self.mask_ratio)) as i64
    }

    /// Checks ranges.
    ///
    /// # Errors
    /// [`NetError::Encoder`] with the key.
    pub fn check(&self) -> Result<()> {
        let bad = |key: &str, why: &str| Err(NetError::config(key, why));
        if self.image < self.patch || self.patch < 1 || self.image % self.patch != 0 {
            return bad("image", "no multiple of the patch");
        }
        if self.heads < 1 || self.dim % self.heads != 0 || self.dim % 4 != 0 || self.dim < 4 {
            return bad("dim", "must be a multiple of 4 and of the heads");
        }
        let (d, h) = (self.decoder_dim, self.decoder_heads);
        if h < 1 || d % h != 0 || d % 4 != 0 || d < 4 {
            return bad("decoder_dim", "must be a multiple of 4 and of the heads");
        }
        if self.depth < 1 || self.decoder_depth < 1 || self.projection < 1 {
            return bad("depth", "depths and the projection are positive");
        }
        if self.visible() < 1 || self.visible() >= self.tiles() {
            return bad("mask_ratio", "leaves no visible or no masked tile");
        }
        Ok(())
    }
}

/// Which tiles are seen.
#[derive(Debug)]
pub struct Masking {
    /// Indices of the visible tiles `[N, V]`, i64, in the order the encoder sees them.
    pub keep: Tensor,
    /// Undoes the shuffle `[N, T]`, i64.
    pub restore: Tensor,
    /// One where masked, `[N, T]`, f32.
    pub mask: Tensor,
}

impl Masking {
    /// Keeps the `visible` tiles of smallest noise `[N, T]` (the MAE reference's rule).
    #[must_use]
    pub fn from_noise(noise: &Tensor, visible: i64) -> Self {
        let shuffle = noise.argsort_stable(true, 1, false);
        let restore = shuffle.argsort_stable(true, 1, false);
        let mask = restore.ge(visible).to_kind(Kind::Float);
        Self { keep: shuffle.narrow(1, 0, visible), restore, mask }
    }

    /// The entries of a per-tile table `[N, T]` at the visible tiles, `[N, V]`: token labels.
    pub fn select_visible(&self, per_tile: &Tensor) -> Tensor {
        per_tile.gather(1, &self.keep, false)
    }
}

/// The fixed sine-cosine table `[1, (1 +) grid^2, dim]` of the MAE reference: the first half of the
/// width encodes the column, the second the row; the class token's row is zero.
pub fn sincos_positions(dim: i64, grid: i64, class_token: bool) -> Tensor {
    let axis = |position: f64, out: &mut Vec<f32>| {
        let half = dim / 4;
        let angle = |i: i64| position / 10000f64.powf(i as f64 / half as f64);
        out.extend((0..half).map(|i| angle(i).sin() as f32));
        out.extend((0..half).map(|i| angle(i).cos() as f32));
    };
    let mut values = Vec::new();
    if class_token {
        values.resize(dim as usize, 0.0);
    }
    for row in 0..grid {
        for column in 0..grid {
            axis(column as f64, &mut values);
            axis(row as f64, &mut values);
        }
    }
    Tensor::from_slice(&values).reshape([1, -1, dim])
}

/// Xavier-uniform of a `[out, in]` matrix.
fn xavier(input: i64, output: i64) -> Init {
    let r = (6.0 / (input + output) as f64).sqrt();
    Init::Uniform { lo: -r, up: r }
}

fn xavier_linear(p: &Path, input: i64, output: i64) -> Linear {
    Linear::new(p, input, output, true, xavier(input, output))
}

/// Blocks whose matrices each start Xavier-uniform over their own shape.
fn xavier_block(p: &Path, dim: i64, heads: i64) -> Block {
    let shape = BlockShape::plain(dim, heads, xavier(dim, dim));
    let block = Block::new(p, shape);
    tch::no_grad(|| {
        for linear in [&block.qkv, &block.fc1, &block.fc2] {
            let size = linear.weight.size();
            let r = (6.0 / (size[0] + size[1]) as f64).sqrt();
            let _ = linear.weight.shallow_clone().uniform_(-r, r);
        }
    });
    block
}

/// The network. The encoder's names are timm's ViT's, so its weights load into
/// [`crate::vit::Vit`]; the rest is `decoder_embed`, `mask_token`, `decoder_blocks`,
/// `decoder_norm`, `decoder_pred`, `head_image`, `head_token`.
#[derive(Debug)]
pub struct Mae {
    patch_weight: Tensor,
    patch_bias: Tensor,
    cls_token: Tensor,
    pos_embed: Tensor,
    blocks: Vec<Block>,
    norm: LayerNorm,
    decoder_embed: Linear,
    mask_token: Tensor,
    decoder_pos_embed: Tensor,
    decoder_blocks: Vec<Block>,
    decoder_norm: LayerNorm,
    decoder_pred: Linear,
    head_image: Linear,
    head_token: Linear,
    config: MaeConfig,
}

impl Mae {
    /// Builds it under `p`.
    ///
    /// # Errors
    /// [`NetError::Encoder`] for a setting out of range.
    pub fn new(p: &Path, config: &MaeConfig) -> Result<Self> {
        config.check()?;
        let MaeConfig { dim, patch, decoder_dim, .. } = *config;
        let pixels = patch * patch * 3;
        let proj = p / "patch_embed" / "proj";
        let token = Init::Randn { mean: 0.0, stdev: 0.02 };
        let fixed = |name: &str, dim: i64| {
            let mut t = p.zeros_no_train(name, &[1, 1 + config.tiles(), dim]);
            tch::no_grad(|| t.copy_(&sincos_positions(dim, config.grid(), true)));
            t
        };
        Ok(Self {
            patch_weight: proj.var("weight", &[dim, 3, patch, patch], xavier(pixels, dim)),
            patch_bias: proj.var("bias", &[dim], Init::Const(0.0)),
            cls_token: p.var("cls_token", &[1, 1, dim], token),
            pos_embed: fixed("pos_embed", dim),
            blocks: (0..config.depth)
                .map(|i| xavier_block(&(p / "blocks" / i), dim, config.heads))
                .collect(),
            norm: LayerNorm::new(&(p / "norm"), dim, 1e-6),
            decoder_embed: xavier_linear(&(p / "decoder_embed"), dim, decoder_dim),
            mask_token: p.var("mask_token", &[1, 1, decoder_dim], token),
            decoder_pos_embed: fixed("decoder_pos_embed", decoder_dim),
            decoder_blocks: (0..config.decoder_depth)
                .map(|i| {
                    xavier_block(&(p / "decoder_blocks" / i), decoder_dim, config.decoder_heads)
                })
                .collect(),
            decoder_norm: LayerNorm::new(&(p / "decoder_norm"), decoder_dim, 1e-6),
            decoder_pred: xavier_linear(&(p / "decoder_pred"), decoder_dim, pixels),
            head_image: xavier_linear(&(p / "head_image"), dim, config.projection),
            head_token: xavier_linear(&(p / "head_token"), dim, config.projection),
            config: config.clone(),
        })
    }

    /// Settings that it was built from.
    #[must_use]
    pub fn config(&self) -> &MaeConfig {
        &self.config
    }

    /// Whether weight decay leaves a parameter alone next to the one-dimensional ones. The MAE
    /// reference decays `cls_token` and `mask_token` (three-dimensional), so none.
    #[must_use]
    pub fn no_decay(_name: &str) -> bool {
        false
    }

    /// Uniform noise `[n, T]` from torch's generator, for [`Masking::from_noise`].
    pub fn noise(&self, n: i64) -> Tensor {
        Tensor::rand([n, self.config.tiles()], (Kind::Float, self.cls_token.device()))
    }

    /// Visible tiles of `x [N, 3, S, S]` to latents `[N, 1 + V, D_E]`, class token first.
    ///
    /// # Panics
    /// When the image is not of the configured size.
    pub fn encode(&self, x: &Tensor, masking: &Masking, train: bool) -> Tensor {
        let MaeConfig { image: s, patch: p, dim, .. } = self.config;
        let size = x.size();
        assert!(size.len() == 4 && size[1..] == [3, s, s], "takes [N, 3, {s}, {s}], got {size:?}");
        let maps = x.conv2d(&self.patch_weight, Some(&self.patch_bias), [p, p], [0, 0], [1, 1], 1);
        let tokens = maps.flatten(2, 3).transpose(1, 2) + self.pos_embed.slice(1, 1, None, 1);
        let index = masking.keep.unsqueeze(-1).expand([-1, -1, dim], false);
        let tokens = tokens.gather(1, &index, false);
        let cls = (&self.cls_token + self.pos_embed.narrow(1, 0, 1)).to_kind(tokens.kind());
        let mut y = Tensor::cat(&[&cls.expand([size[0], -1, -1], false), &tokens], 1);
        for block in &self.blocks {
            y = block.forward(&y, train);
        }
        self.norm.forward(&y)
    }

    /// Latents to predicted tiles `[N, T, p p 3]`.
    pub fn decode(&self, latent: &Tensor, masking: &Masking, train: bool) -> Tensor {
        let x = self.decoder_embed.forward(latent);
        let (n, seen, d) = x.size3().expect("[N, 1 + V, D]");
        let hidden = self.config.tiles() + 1 - seen;
        let blanks = self.mask_token.to_kind(x.kind()).expand([n, hidden, -1], false);
        let shuffled = Tensor::cat(&[&x.slice(1, 1, None, 1), &blanks], 1);
        let index = masking.restore.unsqueeze(-1).expand([-1, -1, d], false);
        let tokens = shuffled.gather(1, &index, false);
        let mut y = Tensor::cat(&[&x.narrow(1, 0, 1), &tokens], 1) + &self.decoder_pos_embed;
        for block in &self.decoder_blocks {
            y = block.forward(&y, train);
        }
        self.decoder_pred.forward(&self.decoder_norm.forward(&y)).slice(1, 1, None, 1)
    }

    /// Latents to unit vectors of the class token `[N, 512]`, f32.
    pub fn project_image(&self, latent: &Tensor) -> Tensor {
        unit(&self.head_image.forward(&latent.select(1, 0)))
    }

    /// Latents to unit vectors of the visible tokens `[N, V, 512]`, f32.
    pub fn project_tokens(&self, latent: &Tensor) -> Tensor {
        unit(&self.head_token.forward(&latent.slice(1, 1, None, 1)))
    }
}

/// SupMAE's classifier of the visible tokens' mean, as its authors publish it: linear to four times the
/// width (3072 of ViT-base), batch norm, ReLU, linear.
#[derive(Debug)]
pub struct ClassHead {
    fc1: Linear,
    norm: BatchNorm,
    fc2: Linear,
}

impl ClassHead {
    /// Names `fc1.*`, `norm.*`, `fc2.*` over latents of width `dim`.
    #[must_use]
    pub fn new(p: &Path, dim: i64, classes: i64) -> Self {
        let hidden = 4 * dim;
        Self {
            fc1: xavier_linear(&(p / "fc1"), dim, hidden),
            norm: BatchNorm::new(&(p / "norm"), hidden),
            fc2: xavier_linear(&(p / "fc2"), hidden, classes),
        }
    }

    /// Latents `[N, 1 + V, D]` to logits `[N, classes]`; the class token is passed over. With `train` the
    /// norm is by the statistics of these `N`, at least two.
    pub fn forward(&self, latent: &Tensor, train: bool) -> Tensor {
        let mean = latent.slice(1, 1, None, 1).mean_dim([1i64].as_slice(), false, None);
        let hidden = self.norm.forward(&self.fc1.forward(&mean), train);
        self.fc2.forward(&hidden.relu())
    }
}

/// Rows at unit length, in f32; a zero row stays zero.
fn unit(x: &Tensor) -> Tensor {
    let x = x.to_kind(Kind::Float);
    let squared = x.square().sum_dim_intlist([-1i64].as_slice(), true, None);
    &x * squared.clamp_min(1e-24).rsqrt()
}
