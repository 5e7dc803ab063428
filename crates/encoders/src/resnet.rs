//! ResNet-50: v1.5 (the stride in the 3x3 convolution), equal to torchvision's and timm's with
//! their parameter names, and v2 (norms before convolutions) up to its third stage.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::layer::{Act, ConvNormShape, ConvShape, check_training};

/// timm's and torchvision's name of v1.5.
pub const NAME: &str = "resnet50";
/// Width of v1.5's vector.
pub const DIM: i64 = 2048;
/// Name of v2 in the table of encoders.
pub const V2_NAME: &str = "resnet50v2_stage3";
/// Width of v2's vector.
pub const V2_DIM: i64 = 1024;

/// How to build one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResNetConfig {
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

impl ResNetConfig {
    /// No dropout, no stochastic depth.
    #[must_use]
    pub fn new(classes: i64) -> Self {
        Self { classes, dropout: 0.0, drop_path: 0.0, head_bias: 0.0 }
    }

    /// Checks ranges.
    ///
    /// # Errors
    /// [`crate::EncoderError::Config`] with the key.
    pub fn check(&self) -> Result<()> {
        check_training(self.dropout, self.drop_path, self.classes)
    }
}

/// One bottleneck: 1x1, 3x3 (with the stride), 1x1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BottleneckShape {
    /// Its stage, from 0 on, and its place in it.
    pub at: (usize, usize),
    /// Channels that come in.
    pub input: i64,
    /// Channels in between.
    pub middle: i64,
    /// Of the 3x3 convolution.
    pub stride: i64,
}

impl BottleneckShape {
    /// Channels that come out.
    #[must_use]
    pub fn output(&self) -> i64 {
        4 * self.middle
    }

    /// Its three convolutions.
    #[must_use]
    pub fn shapes(&self) -> [ConvShape; 3] {
        let Self { input, middle, stride, .. } = *self;
        [
            ConvShape::new(input, middle, 1),
            ConvShape::new(middle, middle, 3).stride(stride),
            ConvShape::new(middle, self.output(), 1),
        ]
    }

    /// v1.5's: each with a norm behind it.
    #[must_use]
    pub fn convs(&self) -> [ConvNormShape; 3] {
        let [first, second, third] = self.shapes();
        [
            ConvNormShape::new(("conv1", "bn1"), first, Act::Relu),
            ConvNormShape::new(("conv2", "bn2"), second, Act::Relu),
            ConvNormShape::new(("conv3", "bn3"), third, None),
        ]
    }

    /// v2's first two, each with the norm that is behind it.
    #[must_use]
    pub fn convs_v2(&self) -> [ConvNormShape; 2] {
        let [first, second, _] = self.shapes();
        [
            ConvNormShape::new(("conv1", "norm2"), first, Act::Relu),
            ConvNormShape::new(("conv2", "norm3"), second, Act::Relu),
        ]
    }

    /// v1.5's shortcut, under `downsample`.
    #[must_use]
    pub fn shortcut_norm(&self) -> Option<ConvNormShape> {
        self.shortcut().map(|shape| ConvNormShape::new(("0", "1"), shape, None))
    }

    /// A stage's first one has a convolution for a shortcut.
    #[must_use]
    pub fn shortcut(&self) -> Option<ConvShape> {
        let shape = ConvShape::new(self.input, self.output(), 1).stride(self.stride);
        (self.at.1 == 0).then_some(shape)
    }
}

/// The first convolution, in names of v1.5 or v2.
#[must_use]
pub fn stem(names: (&'static str, &'static str)) -> ConvNormShape {
    ConvNormShape::new(names, ConvShape::new(3, 64, 7).stride(2), Act::Relu)
}

/// The bottlenecks of the first `stages` stages, stage by stage.
#[must_use]
pub fn stages(stages: usize) -> Vec<Vec<BottleneckShape>> {
    // Middle width, blocks and stride.
    const STAGES: [(i64, usize, i64); 4] = [(64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)];
    let mut input = 64;
    let rows = STAGES.into_iter().take(stages).enumerate();
    rows.map(|(i, (middle, blocks, stride))| {
        (0..blocks)
            .map(|j| {
                let stride = if j == 0 { stride } else { 1 };
                let block = BottleneckShape { at: (i, j), input, middle, stride };
                input = block.output();
                block
            })
            .collect()
    })
    .collect()
}
