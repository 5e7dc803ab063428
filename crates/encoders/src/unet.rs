//! Efficient-UNet: an EfficientNet trunk and a U-Net decoder.

use serde::{Deserialize, Serialize};

use crate::efficientnet::Variant;
use crate::error::{EncoderError, Result};
use crate::layer::{Act, ConvNormShape, ConvShape};

/// How to build one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnetConfig {
    /// Trunk.
    #[serde(default = "UnetConfig::default_encoder")]
    pub encoder: Variant,
    /// Stride of the trunk's last features, 16 or 32.
    #[serde(default = "UnetConfig::whole", skip_serializing_if = "UnetConfig::is_whole")]
    pub output_stride: usize,
    /// Channels after each upsampling, coarse to fine, at most one per halving of the trunk: where
    /// there are fewer, the decoder ends at a coarser resolution than the input's and its logits are
    /// interpolated to the whole of it.
    #[serde(default = "UnetConfig::default_decoder")]
    pub decoder: Vec<i64>,
    /// Stochastic depth of the trunk, [0, 1).
    #[serde(default)]
    pub drop_path: f64,
    /// Bias of the output before training: the logit of the expected share of positive pixels.
    #[serde(default)]
    pub head_bias: f64,
}

impl UnetConfig {
    fn default_encoder() -> Variant {
        Variant::B0
    }

    fn whole() -> usize {
        32
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
    fn is_whole(stride: &usize) -> bool {
        *stride == 32
    }

    /// Features of the trunk, each at half the resolution of the one before.
    #[must_use]
    pub fn levels(&self) -> usize {
        self.output_stride.trailing_zeros() as usize
    }

    fn default_decoder() -> Vec<i64> {
        vec![256, 128, 64, 32, 16]
    }

    /// Name in checkpoints and model cards, e.g. `efficient-unet-b0`.
    #[must_use]
    pub fn architecture(&self) -> &'static str {
        self.encoder.unet_name()
    }
}

impl UnetConfig {
    /// Checks ranges.
    ///
    /// # Errors
    /// [`EncoderError::Config`] for channels below one or a rate outside [0, 1).
    pub fn check(&self) -> Result<()> {
        if !matches!(self.output_stride, 16 | 32) {
            let why = format!("{} is neither 16 nor 32", self.output_stride);
            return Err(EncoderError::config("output_stride", why));
        }
        let levels = self.levels();
        if !(1..=levels).contains(&self.decoder.len()) {
            let stages = self.decoder.len();
            let why = format!("has {stages} stages; the trunk has room for 1 to {levels}");
            return Err(EncoderError::config("decoder", why));
        }
        if self.decoder.iter().any(|&c| c < 1) {
            return Err(EncoderError::config("decoder", "every stage needs at least one channel"));
        }
        if !(0.0..1.0).contains(&self.drop_path) {
            return Err(EncoderError::config("drop_path", "not in [0, 1)"));
        }
        Ok(())
    }

    /// The two convolutions of each stage of the decoder, coarse to fine.
    #[must_use]
    pub fn stages(&self) -> Vec<[ConvNormShape; 2]> {
        let (skips, levels) = (self.encoder.plan().channels(), self.levels());
        let mut input = skips[levels - 1];
        let rows = self.decoder.iter().enumerate();
        rows.map(|(i, &output)| {
            let skip = if i + 1 < levels { skips[levels - 2 - i] } else { 0 };
            let conv =
                |names, i| ConvNormShape::new(names, ConvShape::new(i, output, 3), Act::Relu);
            let stage = [conv(("conv1", "bn1"), input + skip), conv(("conv2", "bn2"), output)];
            input = output;
            stage
        })
        .collect()
    }

    /// The last convolution.
    #[must_use]
    pub fn head(&self) -> ConvShape {
        let input = self.decoder.last().copied().unwrap_or_default();
        ConvShape::new(input, 1, 3).bias()
    }

    /// How much coarser than the input the decoder ends: at stride 32, 1 with five stages, 4 with three.
    #[must_use]
    pub fn coarseness(&self) -> i64 {
        1 << (self.levels() - self.decoder.len())
    }
}

impl Default for UnetConfig {
    fn default() -> Self {
        Self {
            encoder: Self::default_encoder(),
            output_stride: Self::whole(),
            decoder: Self::default_decoder(),
            drop_path: 0.0,
            head_bias: 0.0,
        }
    }
}
