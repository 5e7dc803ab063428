//! EfficientNet, equal to timm's: V1 (b0 ... b7), Lite0, Lite2 and V2-S, TensorFlow's ports (`tf_`)
//! and torchvision's V2-S, all with timm's parameter names: which there are, and the blocks of each.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::layer::{Act, ConvNormShape, ConvShape, check_training};

/// How to build one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EfficientNetConfig {
    /// Which one.
    pub variant: Variant,
    /// Classes of the head; 0 leaves it out.
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
    /// [`crate::EncoderError::Config`] with the key.
    pub fn check(&self) -> Result<()> {
        check_training(self.dropout, self.drop_path, self.classes)
    }
}

macro_rules! variants {
    ($($variant:ident = $name:literal, $unet:literal;)*) => {
        /// Which EfficientNet.
        ///
        /// `tf_` are TensorFlow's own networks as timm has them: zeros are padded as TensorFlow's
        /// `SAME` does (the odd one at the end), and batch norms have eps 1e-3.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        pub enum Variant {
            $(
                #[doc = concat!("`", $name, "`.")]
                #[serde(rename = $name)]
                $variant,
            )*
        }

        impl Variant {
            /// All of them.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$variant),*];

            /// timm's name; torchvision's for [`Self::TorchV2S`].
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// Name of the U-Net on this trunk.
            #[must_use]
            pub fn unet_name(self) -> &'static str {
                match self {
                    $(Self::$variant => $unet,)*
                }
            }
        }
    };
}

variants! {
    B0 = "efficientnet_b0", "efficient-unet-b0";
    B1 = "efficientnet_b1", "efficient-unet-b1";
    B2 = "efficientnet_b2", "efficient-unet-b2";
    B3 = "efficientnet_b3", "efficient-unet-b3";
    B4 = "efficientnet_b4", "efficient-unet-b4";
    B5 = "efficientnet_b5", "efficient-unet-b5";
    B6 = "efficientnet_b6", "efficient-unet-b6";
    B7 = "efficientnet_b7", "efficient-unet-b7";
    Lite0 = "efficientnet_lite0", "efficient-unet-lite0";
    Lite2 = "efficientnet_lite2", "efficient-unet-lite2";
    V2S = "efficientnetv2_s", "efficient-unet-v2-s";
    TorchV2S = "efficientnet_v2_s", "efficient-unet-torch-v2-s";
    TfB0 = "tf_efficientnet_b0", "efficient-unet-tf-b0";
    TfB1 = "tf_efficientnet_b1", "efficient-unet-tf-b1";
    TfB2 = "tf_efficientnet_b2", "efficient-unet-tf-b2";
    TfB3 = "tf_efficientnet_b3", "efficient-unet-tf-b3";
    TfB4 = "tf_efficientnet_b4", "efficient-unet-tf-b4";
    TfB5 = "tf_efficientnet_b5", "efficient-unet-tf-b5";
    TfB6 = "tf_efficientnet_b6", "efficient-unet-tf-b6";
    TfB7 = "tf_efficientnet_b7", "efficient-unet-tf-b7";
    TfV2S = "tf_efficientnetv2_s", "efficient-unet-tf-v2-s";
}

impl Variant {
    /// Whether it is one of TensorFlow's own networks.
    #[must_use]
    pub fn is_tensorflow(self) -> bool {
        self.name().starts_with("tf_")
    }

    /// Its blocks.
    #[must_use]
    pub fn plan(self) -> Plan {
        let stages = self.stages();
        let (flavour, act) = (self.flavour(), stages.act);
        let conv = |names, shape| flavour.applied(ConvNormShape::new(names, shape, act));
        let stem = conv(("conv_stem", "bn1"), ConvShape::new(3, stages.stem, 3).stride(2));
        let mut input = stages.stem;
        let mut blocks = Vec::new();
        for stage in &stages.rows {
            let mut row = Vec::new();
            for j in 0..stage.repeats {
                row.push(stage.block(input, if j == 0 { stage.stride } else { 1 }, act, flavour));
                input = stage.channels;
            }
            blocks.push(row);
        }
        let last = conv(("conv_head", "bn2"), ConvShape::new(input, stages.head, 1));
        Plan { stem, blocks, taps: stages.taps, last, head: stages.head }
    }

    /// Padding and epsilon.
    fn flavour(self) -> Flavour {
        let same = self.is_tensorflow();
        Flavour { same, eps: if same || self == Self::TorchV2S { 1e-3 } else { 1e-5 } }
    }

    fn stages(self) -> Stages {
        match self {
            Self::B0 | Self::TfB0 => v1(1.0, 1.0, true),
            Self::B1 | Self::TfB1 => v1(1.0, 1.1, true),
            Self::B2 | Self::TfB2 => v1(1.1, 1.2, true),
            Self::B3 | Self::TfB3 => v1(1.2, 1.4, true),
            Self::B4 | Self::TfB4 => v1(1.4, 1.8, true),
            Self::B5 | Self::TfB5 => v1(1.6, 2.2, true),
            Self::B6 | Self::TfB6 => v1(1.8, 2.6, true),
            Self::B7 | Self::TfB7 => v1(2.0, 3.1, true),
            Self::Lite0 => v1(1.0, 1.0, false),
            Self::Lite2 => v1(1.1, 1.2, false),
            Self::V2S | Self::TorchV2S | Self::TfV2S => v2s(),
        }
    }
}

/// The first generation; without squeeze-and-excitation it is the Lite one.
fn v1(width: f64, depth: f64, se: bool) -> Stages {
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
    Stages {
        stem: if fixed_ends { 32 } else { round_channels(32.0 * width) },
        rows: stages,
        // Lite keeps 1280 whatever its width.
        head: if fixed_ends { 1280 } else { round_channels(1280.0 * width) },
        act: if se { Act::Silu } else { Act::Relu6 },
        taps: [0, 1, 2, 4, 6],
    }
}

/// The second generation, small.
fn v2s() -> Stages {
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
    Stages { stem: 24, rows: stages, head: 1280, act: Act::Silu, taps: [0, 1, 2, 4, 5] }
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

struct Stages {
    stem: i64,
    rows: Vec<Stage>,
    head: i64,
    act: Act,
    taps: [usize; 5],
}

impl Stage {
    fn block(&self, input: i64, stride: i64, act: Act, flavour: Flavour) -> ResidualShape {
        let Self { block, kernel: k, channels: output, .. } = *self;
        let middle = match block {
            Block::Separable | Block::Plain => input,
            Block::Inverted | Block::Fused => round_channels((input * self.expand) as f64),
        };
        let conv =
            |names, shape, act: Option<Act>| flavour.applied(ConvNormShape::new(names, shape, act));
        let depthwise = ConvShape::new(middle, middle, k).stride(stride).groups(middle);
        let act_on = Some(act);
        let convs = match block {
            Block::Separable => vec![
                conv(("conv_dw", "bn1"), depthwise, act_on),
                conv(("conv_pw", "bn2"), ConvShape::new(middle, output, 1), None),
            ],
            Block::Inverted => vec![
                conv(("conv_pw", "bn1"), ConvShape::new(input, middle, 1), act_on),
                conv(("conv_dw", "bn2"), depthwise, act_on),
                conv(("conv_pwl", "bn3"), ConvShape::new(middle, output, 1), None),
            ],
            Block::Fused => vec![
                conv(("conv_exp", "bn1"), ConvShape::new(input, middle, k).stride(stride), act_on),
                conv(("conv_pwl", "bn2"), ConvShape::new(middle, output, 1), None),
            ],
            Block::Plain => {
                vec![conv(("conv", "bn1"), ConvShape::new(input, output, k).stride(stride), act_on)]
            }
        };
        // The reduction counts from the block's input, not from the expanded width.
        let gate = self.se.then_some(GateShape { channels: middle, reduced: input / 4, act });
        ResidualShape { convs, gate, skip: stride == 1 && input == output }
    }
}

/// The blocks of an EfficientNet.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The first convolution.
    pub stem: ConvNormShape,
    /// The blocks, stage by stage.
    pub blocks: Vec<Vec<ResidualShape>>,
    /// Last stage of each stride 2, 4, 8, 16, 32.
    pub taps: [usize; 5],
    /// The convolution before the pooling.
    pub last: ConvNormShape,
    /// Width of an image's vector.
    pub head: i64,
}

impl Plan {
    /// Channels of the features at strides 2, 4, 8, 16, 32.
    #[must_use]
    pub fn channels(&self) -> [i64; 5] {
        self.taps.map(|t| self.blocks[t].last().map_or(0, ResidualShape::output))
    }
}

/// One residual block: convolutions in order, squeeze-and-excitation before the last.
#[derive(Clone, Debug, PartialEq)]
pub struct ResidualShape {
    /// The convolutions.
    pub convs: Vec<ConvNormShape>,
    /// Squeeze and excitation, under `se`.
    pub gate: Option<GateShape>,
    /// Whether the input is added.
    pub skip: bool,
}

impl ResidualShape {
    /// Channels that come out.
    #[must_use]
    pub fn output(&self) -> i64 {
        self.convs.last().map_or(0, |c| c.shape.output)
    }
}

/// Squeeze and excitation: `conv_reduce` and `conv_expand`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GateShape {
    /// Channels that are weighted.
    pub channels: i64,
    /// Channels in between.
    pub reduced: i64,
    /// Between both.
    pub act: Act,
}

impl GateShape {
    /// Both convolutions.
    #[must_use]
    pub fn shapes(&self) -> [ConvShape; 2] {
        let Self { channels, reduced, .. } = *self;
        [ConvShape::new(channels, reduced, 1).bias(), ConvShape::new(reduced, channels, 1).bias()]
    }
}

/// What distinguishes ports of one network that share all names and shapes.
#[derive(Clone, Copy, Debug)]
struct Flavour {
    /// Padding as TensorFlow's `SAME`.
    same: bool,
    /// Of the batch norms.
    eps: f64,
}

impl Flavour {
    /// At stride 1 an odd kernel's padding is the same on all sides.
    fn applied(self, conv: ConvNormShape) -> ConvNormShape {
        ConvNormShape { eps: self.eps, same: self.same && conv.shape.stride > 1, ..conv }
    }
}
