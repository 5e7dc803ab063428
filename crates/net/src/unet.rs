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
    /// Channels after each upsampling, coarse to fine, one to five: with three the decoder ends at
    /// a quarter of the input's resolution and its logits are interpolated to the whole of it.
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
        if !(1..=5).contains(&config.decoder.len()) {
            let why = format!("has {} stages; the trunk has room for 1 to 5", config.decoder.len());
            return Err(NetError::config("decoder", why));
        }
        if config.decoder.iter().any(|&c| c < 1) {
            return Err(NetError::config("decoder", "every stage needs at least one channel"));
        }
        if !(0.0..1.0).contains(&config.drop_path) {
            return Err(NetError::config("drop_path", "not in [0, 1)"));
        }
        let encoder = Trunk::new(&(p / "encoder"), config.encoder, config.drop_path);
        let skips = encoder.channels();
        let mut input = skips[4];
        let mut decoder = Vec::new();
        for (i, &output) in config.decoder.iter().enumerate() {
            let skip = if i < 4 { skips[3 - i] } else { 0 };
            decoder.push(DecoderStage::new(&(p / "decoder" / i), input + skip, output));
            input = output;
        }
        let head = Conv2d::new(&(p / "head"), ConvShape::new(input, 1, 3).bias());
        if let Some(b) = &head.bias {
            let _ = tch::no_grad(|| b.shallow_clone().fill_(config.head_bias));
        }
        Ok(Self { encoder, decoder, head, config: config.clone() })
    }

    /// The settings.
    #[must_use]
    pub fn config(&self) -> &UnetConfig {
        &self.config
    }

    /// How much coarser than the input the decoder ends: 1 with five stages, 4 with three.
    #[must_use]
    pub fn coarseness(&self) -> i64 {
        1 << (5 - self.decoder.len())
    }

    /// `[N, 3, H, W]`, H and W multiples of 32, to logits `[N, 1, H, W]`.
    ///
    /// # Panics
    /// When H or W is no multiple of 32.
    pub fn forward(&self, x: &Tensor, train: bool) -> Tensor {
        let size = x.size();
        assert!(
            size.len() == 4 && size[1] == 3 && size[2] % 32 == 0 && size[3] % 32 == 0,
            "the U-Net takes [N, 3, 32a, 32b], got {size:?}"
        );
        let maps = self.encoder.features(x, train);
        let mut y = maps[4].shallow_clone();
        for (i, stage) in self.decoder.iter().enumerate() {
            let skip = (i < 4).then(|| &maps[3 - i]);
            y = stage.forward(&y, skip, train);
        }
        let logits = self.head.forward(&y);
        if self.coarseness() == 1 {
            return logits;
        }
        logits.upsample_bilinear2d([size[2], size[3]], false, None, None)
    }
}
