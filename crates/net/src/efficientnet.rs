//! EfficientNet, equal to timm's: V1 (b0 ... b7), Lite0, Lite2 and V2-S, with timm's parameter names.

use serde::{Deserialize, Serialize};
use tch::Tensor;
use tch::nn::{Init, Path};

use crate::error::{NetError, Result};
use crate::layer::{BatchNorm, Conv2d, ConvShape, Linear, drop_path};

/// Which EfficientNet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Variant {
    /// `efficientnet_b0`.
    #[serde(rename = "efficientnet_b0")]
    B0,
    /// `efficientnet_b7`.
    #[serde(rename = "efficientnet_b7")]
    B7,
    /// `efficientnet_lite0`: b0 without squeeze-and-excitation, ReLU6.
    #[serde(rename = "efficientnet_lite0")]
    Lite0,
    /// `efficientnet_lite2`: Lite0, 1.1 times as wide and 1.2 times as deep.
    #[serde(rename = "efficientnet_lite2")]
    Lite2,
    /// `efficientnetv2_s`.
    #[serde(rename = "efficientnetv2_s")]
    V2S,
}

impl Variant {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::B0, Self::B7, Self::Lite0, Self::Lite2, Self::V2S];

    /// timm's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::B0 => "efficientnet_b0",
            Self::B7 => "efficientnet_b7",
            Self::Lite0 => "efficientnet_lite0",
            Self::Lite2 => "efficientnet_lite2",
            Self::V2S => "efficientnetv2_s",
        }
    }

    fn plan(self) -> Plan {
        let v1 = |width: f64, depth: f64, se: bool| {
            let fixed_ends = !se;
            let rows = [
                (Block::Separable, 1, 3, 1, 1, 16),
                (Block::Inverted, 2, 3, 2, 6, 24),
                (Block::Inverted, 2, 5, 2, 6, 40),
                (Block::Inverted, 3, 3, 2, 6, 80),
                (Block::Inverted, 3, 5, 1, 6, 112),
                (Block::Inverted, 4, 5, 2, 6, 192),
                (Block::Inverted, 1, 3, 1, 6, 320),
            ];
            let stages = rows
                .into_iter()
                .enumerate()
                .map(|(i, (block, repeats, kernel, stride, expand, channels))| Stage {
                    block,
                    repeats: if fixed_ends && (i == 0 || i == 6) {
                        repeats
                    } else {
                        (f64::from(repeats) * depth).ceil() as i32
                    },
                    kernel,
                    stride,
                    expand,
                    channels: round_channels(f64::from(channels) * width),
                    se,
                })
                .collect();
            Plan {
                stem: if fixed_ends { 32 } else { round_channels(32.0 * width) },
                stages,
                // Lite keeps 1280 whatever its width.
                head: if fixed_ends { 1280 } else { round_channels(1280.0 * width) },
                act: if se { Act::Silu } else { Act::Relu6 },
                taps: [0, 1, 2, 4, 6],
            }
        };
        match self {
            Self::B0 => v1(1.0, 1.0, true),
            Self::B7 => v1(2.0, 3.1, true),
            Self::Lite0 => v1(1.0, 1.0, false),
            Self::Lite2 => v1(1.1, 1.2, false),
            Self::V2S => {
                let rows = [
                    (Block::Plain, 2, 1, 1, 24, false),
                    (Block::Fused, 4, 2, 4, 48, false),
                    (Block::Fused, 4, 2, 4, 64, false),
                    (Block::Inverted, 6, 2, 4, 128, true),
                    (Block::Inverted, 9, 1, 6, 160, true),
                    (Block::Inverted, 15, 2, 6, 256, true),
                ];
                let stages = rows
                    .into_iter()
                    .map(|(block, repeats, stride, expand, channels, se)| Stage {
                        block,
                        repeats,
                        kernel: 3,
                        stride,
                        expand,
                        channels,
                        se,
                    })
                    .collect();
                Plan { stem: 24, stages, head: 1280, act: Act::Silu, taps: [0, 1, 2, 4, 5] }
            }
        }
    }
}

/// Nearest multiple of 8, never more than 10 % below (timm's `make_divisible`).
fn round_channels(v: f64) -> i64 {
    let rounded = (((v + 4.0) as i64) / 8 * 8).max(8);
    if (rounded as f64) < 0.9 * v { rounded + 8 } else { rounded }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Block {
    /// Depthwise, then pointwise.
    Separable,
    /// Expand, depthwise, project.
    Inverted,
    /// Full convolution that expands, then project.
    Fused,
    /// One convolution with a skip.
    Plain,
}

#[derive(Clone, Copy, Debug)]
struct Stage {
    block: Block,
    repeats: i32,
    kernel: i64,
    stride: i64,
    expand: i64,
    channels: i64,
    se: bool,
}

struct Plan {
    stem: i64,
    stages: Vec<Stage>,
    head: i64,
    act: Act,
    /// Last stage of each stride 2, 4, 8, 16, 32.
    taps: [usize; 5],
}

/// Activation of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// `x sigmoid(x)`.
    Silu,
    /// `min(max(x, 0), 6)`.
    Relu6,
    /// `max(x, 0)`.
    Relu,
}

impl Act {
    /// Applies it.
    pub fn forward(self, x: &Tensor) -> Tensor {
        match self {
            Self::Silu => x.silu(),
            Self::Relu6 => x.relu6(),
            Self::Relu => x.relu(),
        }
    }
}

/// How to build one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EfficientNetConfig {
    /// Which one.
    pub variant: Variant,
    /// Classes of the head.
    pub classes: i64,
    /// Dropout before the head, [0, 1).
    #[serde(default)]
    pub dropout: f64,
    /// Stochastic depth at the last block, growing linearly from 0, [0, 1).
    #[serde(default)]
    pub drop_path: f64,
    /// Constant bias of the head.
    #[serde(default)]
    pub head_bias: f64,
}

impl EfficientNetConfig {
    /// No dropout, no stochastic depth.
    #[must_use]
    pub fn new(variant: Variant, classes: i64) -> Self {
        Self { variant, classes, dropout: 0.0, drop_path: 0.0, head_bias: 0.0 }
    }

    /// Checks ranges.
    ///
    /// # Errors
    /// [`NetError::Config`] with the key.
    pub fn check(&self) -> Result<()> {
        for (key, p) in [("dropout", self.dropout), ("drop_path", self.drop_path)] {
            if !(0.0..1.0).contains(&p) {
                return Err(NetError::config(key, format!("{p} is not in [0, 1)")));
            }
        }
        if self.classes < 1 {
            return Err(NetError::config("classes", "at least one class is needed"));
        }
        Ok(())
    }
}

/// Convolution and its batch norm, activation by the caller.
#[derive(Debug)]
pub(crate) struct ConvNorm {
    pub conv: Conv2d,
    pub norm: BatchNorm,
    /// Activation after the norm.
    pub act: Option<Act>,
}

impl ConvNorm {
    pub(crate) fn new(
        p: &Path,
        names: (&str, &str),
        shape: ConvShape,
        act: impl Into<Option<Act>>,
    ) -> Self {
        Self {
            conv: Conv2d::new(&(p / names.0), shape),
            norm: BatchNorm::new(&(p / names.1), shape.output),
            act: act.into(),
        }
    }

    pub(crate) fn forward(&self, x: &Tensor, train: bool) -> Tensor {
        let y = self.norm.forward(&self.conv.forward(x), train);
        self.act.map_or_else(|| y.shallow_clone(), |a| a.forward(&y))
    }
}

/// Squeeze and excitation.
#[derive(Debug)]
pub(crate) struct SqueezeExcite {
    pub reduce: Conv2d,
    pub expand: Conv2d,
    pub act: Act,
}

impl SqueezeExcite {
    fn new(p: &Path, channels: i64, reduced: i64, act: Act) -> Self {
        Self {
            reduce: Conv2d::new(&(p / "conv_reduce"), ConvShape::new(channels, reduced, 1).bias()),
            expand: Conv2d::new(&(p / "conv_expand"), ConvShape::new(reduced, channels, 1).bias()),
            act,
        }
    }

    fn forward(&self, x: &Tensor) -> Tensor {
        let pooled = x.mean_dim([2i64, 3].as_slice(), true, None);
        let gate = self.expand.forward(&self.act.forward(&self.reduce.forward(&pooled)));
        x * gate.sigmoid()
    }
}

/// One residual block: convolutions in order, squeeze-and-excitation before the last.
#[derive(Debug)]
pub(crate) struct Residual {
    pub convs: Vec<ConvNorm>,
    pub se: Option<SqueezeExcite>,
    pub skip: bool,
    pub drop_path: f64,
}

impl Residual {
    fn new(p: &Path, stage: &Stage, input: i64, stride: i64, act: Act, drop_path: f64) -> Self {
        let Stage { block, kernel: k, channels: output, .. } = *stage;
        let middle = match block {
            Block::Separable | Block::Plain => input,
            Block::Inverted | Block::Fused => round_channels((input * stage.expand) as f64),
        };
        let depthwise = ConvShape::new(middle, middle, k).stride(stride).groups(middle);
        let convs = match block {
            Block::Separable => vec![
                ConvNorm::new(p, ("conv_dw", "bn1"), depthwise, act),
                ConvNorm::new(p, ("conv_pw", "bn2"), ConvShape::new(middle, output, 1), None),
            ],
            Block::Inverted => vec![
                ConvNorm::new(p, ("conv_pw", "bn1"), ConvShape::new(input, middle, 1), act),
                ConvNorm::new(p, ("conv_dw", "bn2"), depthwise, act),
                ConvNorm::new(p, ("conv_pwl", "bn3"), ConvShape::new(middle, output, 1), None),
            ],
            Block::Fused => {
                let full = ConvShape::new(input, middle, k).stride(stride);
                vec![
                    ConvNorm::new(p, ("conv_exp", "bn1"), full, act),
                    ConvNorm::new(p, ("conv_pwl", "bn2"), ConvShape::new(middle, output, 1), None),
                ]
            }
            Block::Plain => {
                let full = ConvShape::new(input, output, k).stride(stride);
                vec![ConvNorm::new(p, ("conv", "bn1"), full, act)]
            }
        };
        // The reduction counts from the block's input, not from the expanded width.
        let se = stage.se.then(|| SqueezeExcite::new(&(p / "se"), middle, input / 4, act));
        Self { convs, se, skip: stride == 1 && input == output, drop_path }
    }

    fn forward(&self, x: &Tensor, train: bool) -> Tensor {
        let mut y = x.shallow_clone();
        for (i, conv) in self.convs.iter().enumerate() {
            if i + 1 == self.convs.len()
                && let Some(se) = &self.se
            {
                y = se.forward(&y);
            }
            y = conv.forward(&y, train);
        }
        if self.skip { drop_path(y, self.drop_path, train) + x } else { y }
    }
}

/// The trunk: stem and stages, features at strides 2, 4, 8, 16, 32.
#[derive(Debug)]
pub struct Trunk {
    pub(crate) stem: ConvNorm,
    pub(crate) blocks: Vec<Vec<Residual>>,
    pub(crate) taps: [usize; 5],
    channels: [i64; 5],
}

impl Trunk {
    /// Builds it under `p` with timm's names.
    #[must_use]
    pub fn new(p: &Path, variant: Variant, drop_rate: f64) -> Self {
        let plan = variant.plan();
        let shape = ConvShape::new(3, plan.stem, 3).stride(2);
        let stem = ConvNorm::new(p, ("conv_stem", "bn1"), shape, plan.act);
        let total: i32 = plan.stages.iter().map(|s| s.repeats).sum();
        let (mut input, mut index) = (plan.stem, 0);
        let mut blocks = Vec::new();
        for (i, stage) in plan.stages.iter().enumerate() {
            let mut row = Vec::new();
            for j in 0..stage.repeats {
                let stride = if j == 0 { stage.stride } else { 1 };
                let rate = drop_rate * f64::from(index) / f64::from(total);
                let name = p / "blocks" / i / j;
                row.push(Residual::new(&name, stage, input, stride, plan.act, rate));
                input = stage.channels;
                index += 1;
            }
            blocks.push(row);
        }
        let channels = plan.taps.map(|t| plan.stages[t].channels);
        Self { stem, blocks, taps: plan.taps, channels }
    }

    /// Channels of the five features.
    #[must_use]
    pub fn channels(&self) -> [i64; 5] {
        self.channels
    }

    /// `[N, 3, H, W]` to five maps at strides 2, 4, 8, 16, 32.
    #[must_use]
    pub fn features(&self, x: &Tensor, train: bool) -> Vec<Tensor> {
        let mut y = self.stem.forward(x, train);
        let mut out = Vec::with_capacity(5);
        for (i, stage) in self.blocks.iter().enumerate() {
            for block in stage {
                y = block.forward(&y, train);
            }
            if self.taps.contains(&i) {
                out.push(y.shallow_clone());
            }
        }
        out
    }

    /// Opens the squeeze-and-excitation gates: weights shrink to a tenth, the gate's bias becomes
    /// `bias` (3 lets 95 % through). Use it after loading weights that were trained without gates
    /// (EfficientNet-Lite), so that the convolutions see the scale they were trained for.
    pub fn open_gates(&self, bias: f64) {
        tch::no_grad(|| {
            for se in self.blocks.iter().flatten().filter_map(|b| b.se.as_ref()) {
                let mut weight = se.expand.weight.shallow_clone();
                let _ = weight.g_mul_scalar_(0.1);
                if let Some(b) = &se.expand.bias {
                    let _ = b.shallow_clone().fill_(bias);
                }
            }
        });
    }
}

/// EfficientNet classifier.
#[derive(Debug)]
pub struct EfficientNet {
    /// Stem and stages.
    pub trunk: Trunk,
    pub(crate) head: ConvNorm,
    pub(crate) classifier: Linear,
    config: EfficientNetConfig,
    dim: i64,
}

impl EfficientNet {
    /// Builds it under `p` with timm's names; the classifier starts at zero weights.
    ///
    /// # Errors
    /// [`NetError::Config`] for a setting out of range.
    pub fn new(p: &Path, config: &EfficientNetConfig) -> Result<Self> {
        config.check()?;
        let plan = config.variant.plan();
        let trunk = Trunk::new(p, config.variant, config.drop_path);
        let shape = ConvShape::new(trunk.channels[4], plan.head, 1);
        Ok(Self {
            head: ConvNorm::new(p, ("conv_head", "bn2"), shape, plan.act),
            classifier: Linear::head(
                &(p / "classifier"),
                plan.head,
                config.classes,
                config.head_bias,
            ),
            trunk,
            config: config.clone(),
            dim: plan.head,
        })
    }

    /// The settings.
    #[must_use]
    pub fn config(&self) -> &EfficientNetConfig {
        &self.config
    }

    /// Width of [`Self::embed`].
    #[must_use]
    pub fn dim(&self) -> i64 {
        self.dim
    }

    /// `[N, 3, H, W]` to `[N, dim, H/32, W/32]`, before pooling.
    pub fn forward_features(&self, x: &Tensor, train: bool) -> Tensor {
        let maps = self.trunk.features(x, train);
        self.head.forward(maps.last().expect("five maps"), train)
    }

    /// `[N, 3, H, W]` to the pooled `[N, dim]`.
    pub fn embed(&self, x: &Tensor, train: bool) -> Tensor {
        self.forward_features(x, train).mean_dim([2i64, 3].as_slice(), false, None)
    }

    /// `[N, 3, H, W]` to logits `[N, classes]`.
    pub fn forward(&self, x: &Tensor, train: bool) -> Tensor {
        let y = self.embed(x, train);
        let y = if self.config.dropout > 0.0 { y.dropout(self.config.dropout, train) } else { y };
        self.classifier.forward(&y)
    }
}

/// timm's uniform start for a head that is not zeroed.
#[must_use]
pub fn timm_head_init(classes: i64) -> Init {
    let r = 1.0 / (classes as f64).sqrt();
    Init::Uniform { lo: -r, up: r }
}
