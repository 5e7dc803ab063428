//! Efficient-UNet: an EfficientNet trunk and a U-Net decoder.

use serde::{Deserialize, Serialize};
use tch::Tensor;
use tch::nn::Path;

use crate::efficientnet::{Act, ConvNorm, Trunk, Variant};
use crate::error::{NetError, Result};
use crate::layer::{Conv2d, ConvShape};

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
    pub(crate) fn levels(&self) -> usize {
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

/// Upsample twofold (nearest), append the skip, two convolutions with batch norm and ReLU.
#[derive(Debug)]
pub(crate) struct DecoderStage {
    pub first: ConvNorm,
    pub second: ConvNorm,
}

impl DecoderStage {
    fn new(p: &Path, input: i64, output: i64) -> Self {
        let conv = |names, i| ConvNorm::new(p, names, ConvShape::new(i, output, 3), Act::Relu);
        Self { first: conv(("conv1", "bn1"), input), second: conv(("conv2", "bn2"), output) }
    }

    fn forward(&self, x: &Tensor, skip: Option<&Tensor>, train: bool) -> Tensor {
        let size = x.size();
        let up = x.upsample_nearest2d([2 * size[2], 2 * size[3]], 2.0, 2.0);
        let joined = match skip {
            // Autocast may leave the two in different kinds.
            Some(s) => Tensor::cat(&[&up, &s.to_kind(up.kind())], 1),
            None => up,
        };
        self.second.forward(&self.first.forward(&joined, train), train)
    }
}

/// Segmentation network: one logit per pixel.
///
/// Names: the trunk under `encoder.` with timm's names, `decoder.{0..4}.{conv1,bn1,conv2,bn2}`,
/// `head`.
#[derive(Debug)]
pub struct EfficientUnet {
    /// The trunk.
    pub encoder: Trunk,
    pub(crate) decoder: Vec<DecoderStage>,
    pub(crate) head: Conv2d,
    config: UnetConfig,
}

impl EfficientUnet {
    /// Builds it under `p`.
    ///
    /// # Errors
    /// [`NetError::Config`] for channels below one or a rate outside [0, 1).
    pub fn new(p: &Path, config: &UnetConfig) -> Result<Self> {
        if !matches!(config.output_stride, 16 | 32) {
            let why = format!("{} is neither 16 nor 32", config.output_stride);
            return Err(NetError::config("output_stride", why));
        }
        let levels = config.levels();
        if !(1..=levels).contains(&config.decoder.len()) {
            let stages = config.decoder.len();
            let why = format!("has {stages} stages; the trunk has room for 1 to {levels}");
            return Err(NetError::config("decoder", why));
        }
        if config.decoder.iter().any(|&c| c < 1) {
            return Err(NetError::config("decoder", "every stage needs at least one channel"));
        }
        if !(0.0..1.0).contains(&config.drop_path) {
            return Err(NetError::config("drop_path", "not in [0, 1)"));
        }
        let name = p / "encoder";
        let encoder = Trunk::with_levels(&name, config.encoder, config.drop_path, levels);
        let skips = encoder.channels();
        let mut input = skips[levels - 1];
        let mut decoder = Vec::new();
        for (i, &output) in config.decoder.iter().enumerate() {
            let skip = if i + 1 < levels { skips[levels - 2 - i] } else { 0 };
            decoder.push(DecoderStage::new(&(p / "decoder" / i), input + skip, output));
            input = output;
        }
        let head = Conv2d::new(&(p / "head"), ConvShape::new(input, 1, 3).bias());
        if let Some(b) = &head.bias {
            let _ = tch::no_grad(|| b.shallow_clone().fill_(config.head_bias));
        }
        Ok(Self { encoder, decoder, head, config: config.clone() })
    }

    /// Settings that it was built from.
    #[must_use]
    pub fn config(&self) -> &UnetConfig {
        &self.config
    }

    /// How much coarser than the input the decoder ends: at stride 32, 1 with five stages, 4 with three.
    #[must_use]
    pub fn coarseness(&self) -> i64 {
        1 << (self.config.levels() - self.decoder.len())
    }

    /// `[N, 3, H, W]`, H and W multiples of 32, to logits `[N, 1, H, W]`.
    ///
    /// # Panics
    /// When H or W is not a multiple of 32.
    pub fn forward(&self, x: &Tensor, train: bool) -> Tensor {
        let size = x.size();
        assert!(
            size.len() == 4 && size[1] == 3 && size[2] % 32 == 0 && size[3] % 32 == 0,
            "the U-Net takes [N, 3, 32a, 32b], got {size:?}"
        );
        let maps = self.encoder.features(x, train);
        let deepest = maps.len() - 1;
        let mut y = maps[deepest].shallow_clone();
        for (i, stage) in self.decoder.iter().enumerate() {
            let skip = (i < deepest).then(|| &maps[deepest - 1 - i]);
            y = stage.forward(&y, skip, train);
        }
        let logits = self.head.forward(&y);
        if self.coarseness() == 1 {
            return logits;
        }
        logits.upsample_bilinear2d([size[2], size[3]], false, None, None)
    }
}
