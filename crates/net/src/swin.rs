//! Swin transformer, equal to timm's `swin_tiny_patch4_window7_224` with timm's (modern) parameter
//! names, and the same with a convolutional stem, as CTransPath and CHIEF have it.

use encoders::swin::{EPS, SwinStageShape, Windows};
use tch::nn::{Init, Path};
use tch::{Kind, Tensor};

use crate::efficientnet::ConvNorm;
use crate::error::Result;
use crate::layer::{Conv2d, LayerNorm, Linear, drop_path};

pub use encoders::swin::{Stem, SwinConfig};

/// Normal with deviation 0.02 (timm truncates at two, a hundred deviations away).
const NORMAL: Init = Init::Randn { mean: 0.0, stdev: 0.02 };

/// Pixels to tokens.
#[derive(Debug)]
pub(crate) struct PatchEmbed {
    /// Of the convolutional stem; empty otherwise.
    pub convs: Vec<ConvNorm>,
    pub proj: Conv2d,
    pub norm: LayerNorm,
}

impl PatchEmbed {
    fn new(p: &Path, config: &SwinConfig) -> Self {
        let (convs, last, shape) = config.patch_embed();
        let last = last.split('.').fold(p.clone(), |p, part| p / part);
        let proj = p / "patch_embed" / "proj";
        let convs = convs.iter().map(|c| ConvNorm::new(&proj, c)).collect();
        let r = 1.0 / ((shape.input * shape.kernel * shape.kernel) as f64).sqrt();
        let uniform = Init::Uniform { lo: -r, up: r };
        Self {
            convs,
            proj: Conv2d {
                weight: last.var("weight", &shape.dims(), uniform),
                bias: Some(last.var("bias", &[shape.output], uniform)),
                stride: shape.stride,
                padding: 0,
                groups: 1,
            },
            norm: LayerNorm::new(&(p / "patch_embed" / "norm"), config.dim, EPS),
        }
    }

    /// `[N, 3, S, S]` to `[N, S/4, S/4, D]`.
    fn forward(&self, x: &Tensor, train: bool) -> Tensor {
        let mut y = x.shallow_clone();
        for conv in &self.convs {
            y = conv.forward(&y, train);
        }
        self.norm.forward(&self.proj.forward(&y).permute([0, 2, 3, 1]))
    }
}

/// Joins 2x2 neighbours: half the side, twice the width.
#[derive(Debug)]
pub(crate) struct PatchMerging {
    pub norm: LayerNorm,
    pub reduction: Linear,
}

impl PatchMerging {
    fn new(p: &Path, dim: i64) -> Self {
        Self {
            norm: LayerNorm::new(&(p / "norm"), 4 * dim, EPS),
            reduction: Linear::new(&(p / "reduction"), 4 * dim, 2 * dim, false, NORMAL),
        }
    }

    /// `[N, H, W, D]` to `[N, H/2, W/2, 2 D]`; an odd side is padded by zeros.
    fn forward(&self, x: &Tensor) -> Tensor {
        let (_, h, w, d) = x.size4().expect("[N, H, W, D]");
        let x = pad_end(x, h % 2, w % 2);
        let (h, w) = ((h + 1) / 2, (w + 1) / 2);
        let x = x.reshape([-1, h, 2, w, 2, d]).permute([0, 1, 3, 4, 2, 5]).flatten(3, 5);
        self.reduction.forward(&self.norm.forward(&x))
    }
}

/// Zeros below and to the right of `[N, H, W, D]`.
fn pad_end(x: &Tensor, bottom: i64, right: i64) -> Tensor {
    if bottom == 0 && right == 0 {
        return x.shallow_clone();
    }
    x.constant_pad_nd([0, 0, 0, right, 0, bottom])
}

/// A block: attention within windows, then an MLP.
#[derive(Debug)]
pub(crate) struct SwinBlock {
    pub norm1: LayerNorm,
    pub qkv: Linear,
    pub proj: Linear,
    table: Tensor,
    index: Tensor,
    pub mask: Option<Tensor>,
    pub norm2: LayerNorm,
    pub fc1: Linear,
    pub fc2: Linear,
    pub heads: i64,
    pub windows: Windows,
    drop_path: f64,
}

impl SwinBlock {
    fn new(p: &Path, dim: i64, heads: i64, windows: Windows, drop_path: f64) -> Self {
        let (attn, mlp) = (p / "attn", p / "mlp");
        let side = 2 * windows.window - 1;
        let table = attn.var("relative_position_bias_table", &[side * side, heads], NORMAL);
        let linear = |p: Path, input, output| Linear::new(&p, input, output, true, NORMAL);
        Self {
            norm1: LayerNorm::new(&(p / "norm1"), dim, EPS),
            qkv: linear(&attn / "qkv", dim, 3 * dim),
            proj: linear(&attn / "proj", dim, dim),
            index: Tensor::from_slice(&windows.index()).to_device(p.device()),
            mask: windows.mask().map(|m| {
                let (count, area) = (windows.count(), windows.area());
                Tensor::from_slice(&m).reshape([count, area, area]).to_device(p.device())
            }),
            table,
            norm2: LayerNorm::new(&(p / "norm2"), dim, EPS),
            fc1: linear(&mlp / "fc1", dim, 4 * dim),
            fc2: linear(&mlp / "fc2", 4 * dim, dim),
            heads,
            windows,
            drop_path,
        }
    }

    /// `[1, heads, area, area]`, added to the scores.
    pub(crate) fn bias(&self) -> Tensor {
        let area = self.windows.area();
        let bias = self.table.index_select(0, &self.index);
        bias.reshape([area, area, self.heads]).permute([2, 0, 1]).unsqueeze(0)
    }

    /// Query, key and value; projection; the MLP's two.
    pub(crate) fn linears(&mut self) -> [&mut Linear; 4] {
        [&mut self.qkv, &mut self.proj, &mut self.fc1, &mut self.fc2]
    }

    /// `[N, H, W, D]` to the same shape.
    fn forward(&self, x: &Tensor, train: bool) -> Tensor {
        let attended = self.attention(&self.norm1.forward(x));
        let x = x + drop_path(attended, self.drop_path, train);
        let hidden = self.fc1.forward(&self.norm2.forward(&x)).gelu("none");
        &x + drop_path(self.fc2.forward(&hidden), self.drop_path, train)
    }

    fn attention(&self, x: &Tensor) -> Tensor {
        let Windows { side, window, shift } = self.windows;
        let (n, d) = (x.size()[0], x.size()[3]);
        let (padded, count, area) =
            (self.windows.padded(), self.windows.count(), self.windows.area());
        let x = if shift > 0 { x.roll([-shift, -shift], [1, 2]) } else { x.shallow_clone() };
        let x = pad_end(&x, padded - side, padded - side);
        let (rows, heads) = (padded / window, self.heads);
        let x = x
            .reshape([n, rows, window, rows, window, d])
            .permute([0, 1, 3, 2, 4, 5])
            .reshape([n * count, area, d]);
        let qkv = self.qkv.forward(&x).reshape([n * count, area, 3, heads, d / heads]);
        let qkv = qkv.permute([2, 0, 3, 1, 4]).unbind(0);
        let scale = 1.0 / ((d / heads) as f64).sqrt();
        let scores = (&qkv[0] * scale).matmul(&qkv[1].transpose(-2, -1)) + self.bias();
        let scores = match &self.mask {
            Some(mask) => {
                let apart = mask.unsqueeze(1).unsqueeze(0);
                let shaped = scores.reshape([n, count, heads, area, area]) + apart;
                shaped.reshape([n * count, heads, area, area])
            }
            None => scores,
        };
        let y = scores.softmax(-1, None::<Kind>).to_kind(qkv[2].kind()).matmul(&qkv[2]);
        let y = self.proj.forward(&y.transpose(1, 2).reshape([n * count, area, d]));
        let y = y
            .reshape([n, rows, rows, window, window, d])
            .permute([0, 1, 3, 2, 4, 5])
            .reshape([n, padded, padded, d]);
        let y = y.narrow(1, 0, side).narrow(2, 0, side);
        if shift > 0 { y.roll([shift, shift], [1, 2]) } else { y }
    }
}

/// One stage: from the second on it starts by halving the side.
#[derive(Debug)]
pub(crate) struct SwinStage {
    pub downsample: Option<PatchMerging>,
    pub blocks: Vec<SwinBlock>,
}

/// Swin transformer: `patch_embed`, `layers.{i}.downsample` (from the second on),
/// `layers.{i}.blocks.{j}`, `norm`, `head.fc`.
#[derive(Debug)]
pub struct Swin {
    pub(crate) patch_embed: PatchEmbed,
    pub(crate) stages: Vec<SwinStage>,
    pub(crate) norm: LayerNorm,
    pub(crate) fc: Option<Linear>,
    config: SwinConfig,
}

impl Swin {
    /// Builds it under `p`; the head starts at zero weights and a constant bias.
    ///
    /// # Errors
    /// [`NetError::Encoder`](crate::NetError::Encoder) for a setting out of range.
    pub fn new(p: &Path, config: &SwinConfig) -> Result<Self> {
        config.check()?;
        let last = (config.depths.iter().sum::<usize>() - 1).max(1) as f64;
        let mut index = 0usize;
        let mut stages = Vec::new();
        for (i, stage) in config.stages().into_iter().enumerate() {
            let p = p / "layers" / i;
            let SwinStageShape { merged, dim, heads, blocks } = stage;
            let downsample = merged.map(|(_, dim)| PatchMerging::new(&(&p / "downsample"), dim));
            let mut row = Vec::new();
            for (j, windows) in blocks.into_iter().enumerate() {
                let rate = config.drop_path * index as f64 / last;
                row.push(SwinBlock::new(&(&p / "blocks" / j), dim, heads, windows, rate));
                index += 1;
            }
            stages.push(SwinStage { downsample, blocks: row });
        }
        let dim = config.width();
        Ok(Self {
            patch_embed: PatchEmbed::new(p, config),
            stages,
            norm: LayerNorm::new(&(p / "norm"), dim, EPS),
            fc: (config.classes > 0)
                .then(|| Linear::head(&(p / "head" / "fc"), dim, config.classes, config.head_bias)),
            config: config.clone(),
        })
    }

    /// Settings that it was built from.
    #[must_use]
    pub fn config(&self) -> &SwinConfig {
        &self.config
    }

    /// `[N, 3, S, S]` to `[N, S/32, S/32, D]` (four stages; halves are rounded up) after the last
    /// norm.
    ///
    /// # Panics
    /// When the image is not of the configured size.
    pub fn forward_features(&self, x: &Tensor, train: bool) -> Tensor {
        let (s, size) = (self.config.image, x.size());
        assert!(size.len() == 4 && size[1..] == [3, s, s], "takes [N, 3, {s}, {s}], got {size:?}");
        let mut y = self.patch_embed.forward(x, train);
        for stage in &self.stages {
            if let Some(downsample) = &stage.downsample {
                y = downsample.forward(&y);
            }
            for block in &stage.blocks {
                y = block.forward(&y, train);
            }
        }
        self.norm.forward(&y)
    }

    pub(crate) fn blocks(&self) -> usize {
        self.config.depths.iter().sum()
    }
}
