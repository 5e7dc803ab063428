//! Which EfficientNets there are, and the stages of each.

use serde::{Deserialize, Serialize};

use crate::layer::Act;

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
            pub(crate) fn unet_name(self) -> &'static str {
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

    /// Padding and epsilon.
    pub(super) fn flavour(self) -> Flavour {
        let same = self.is_tensorflow();
        Flavour { same, eps: if same || self == Self::TorchV2S { 1e-3 } else { 1e-5 } }
    }

    pub(super) fn plan(self) -> Plan {
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
fn v1(width: f64, depth: f64, se: bool) -> Plan {
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
}

/// The second generation, small.
fn v2s() -> Plan {
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

/// Nearest multiple of 8, never more than 10 % below (timm's `make_divisible`).
pub(super) fn round_channels(v: f64) -> i64 {
    let rounded = (((v + 4.0) as i64) / 8 * 8).max(8);
    if (rounded as f64) < 0.9 * v { rounded + 8 } else { rounded }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Block {
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
pub(super) struct Stage {
    pub block: Block,
    pub repeats: i32,
    pub kernel: i64,
    pub stride: i64,
    pub expand: i64,
    pub channels: i64,
    pub se: bool,
}

pub(super) struct Plan {
    pub stem: i64,
    pub stages: Vec<Stage>,
    pub head: i64,
    pub act: Act,
    /// Last stage of each stride 2, 4, 8, 16, 32.
    pub taps: [usize; 5],
}

/// What distinguishes ports of one network that share all names and shapes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flavour {
    /// Padding as TensorFlow's `SAME`.
    pub same: bool,
    /// Of the batch norms.
    pub eps: f64,
}
