//! Efficient-UNet: an EfficientNet trunk and a U-Net decoder.

use tch::Tensor;
use tch::nn::Path;

use crate::efficientnet::{ConvNorm, Trunk};
use crate::error::Result;
use crate::layer::{Conv2d, ConvNormShape};

pub use encoders::unet::UnetConfig;

/// Upsample twofold (nearest), append the skip, two convolutions with batch norm and ReLU.
#[derive(Debug)]
pub(crate) struct DecoderStage {
    pub first: ConvNorm,
    pub second: ConvNorm,
}

impl DecoderStage {
    fn new(p: &Path, [first, second]: &[ConvNormShape; 2]) -> Self {
        Self { first: ConvNorm::new(p, first), second: ConvNorm::new(p, second) }
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
    /// [`NetError::Encoder`](crate::NetError::Encoder) for channels below one or a rate outside [0, 1).
    pub fn new(p: &Path, config: &UnetConfig) -> Result<Self> {
        config.check()?;
        let name = p / "encoder";
        let encoder = Trunk::with_levels(&name, config.encoder, config.drop_path, config.levels());
        let rows = config.stages();
        let stages = rows.iter().enumerate();
        let decoder = stages.map(|(i, s)| DecoderStage::new(&(p / "decoder" / i), s)).collect();
        let head = Conv2d::new(&(p / "head"), config.head());
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
        if self.config.coarseness() == 1 {
            return logits;
        }
        logits.upsample_bilinear2d([size[2], size[3]], false, None, None)
    }
}
