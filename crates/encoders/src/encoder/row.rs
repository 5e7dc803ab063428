//! What a row of the table holds.

use pixels::resize::Interpolation;
use serde::Serialize;

use super::layout::Layout;
use crate::efficientnet::Variant;
use crate::vit::{AttentionPool, Mlp, Pool, Projection, Size, VitConfig};

/// Per channel, of values in [0, 1].
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Norm {
    pub(super) mean: [f32; 3],
    pub(super) std: [f32; 3],
}

pub(super) const IMAGENET: Norm = Norm { mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225] };

/// The network of a row.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Architecture {
    /// A vision transformer, as at its own image side, without a head.
    Vit(VitConfig),
    /// An EfficientNet.
    EfficientNet(Variant),
    /// ResNet-50, v1.5.
    ResNet50,
    /// ResNet-50 v2 to its third stage.
    ResNet50V2,
    /// Swin-T.
    SwinTiny,
    /// Swin-T with a convolutional stem.
    SwinTinyConvStem,
}

/// An encoder as its authors use it. An image's shorter side becomes `resize`, the central `image`
/// pixels of it continue, values in [0, 1] less `mean`, over `std`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Published {
    /// The row's name.
    pub name: &'static str,
    /// The network.
    pub architecture: Architecture,
    /// Side of the input, pixels.
    pub image: i64,
    /// Side before the central crop, pixels; `image` where nothing is cut off.
    pub resize: i64,
    /// Subtracted, per channel.
    pub mean: [f32; 3],
    /// Divides after that.
    pub std: [f32; 3],
    /// How images are resized.
    pub interpolation: Interpolation,
    /// How features become one vector.
    pub pool: Pool,
    /// Width of that vector.
    pub dim: i64,
    /// Resolution, um/px, where the authors name one.
    pub mpp: Option<f64>,
    /// How the tensors of the published files are named.
    pub layouts: &'static [Layout],
}

/// A row of the table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EncoderEntry {
    /// timm's name of an architecture, or that of a published encoder.
    pub name: &'static str,
    /// Width of the embedding.
    pub dim: i64,
    /// The network.
    pub architecture: Architecture,
    /// How its authors use it; `None` for an architecture alone.
    pub published: Option<Published>,
}

/// Rows read as a list of what differs from the plainest.
impl EncoderEntry {
    pub(super) const fn plain(name: &'static str, dim: i64, architecture: Architecture) -> Self {
        Self { name, dim, architecture, published: None }
    }

    /// ImageNet's normalisation, bicubic to the input's side, a file in timm's names.
    pub(super) const fn published(
        name: &'static str,
        architecture: Architecture,
        image: i64,
        pool: Pool,
        dim: i64,
    ) -> Self {
        let Norm { mean, std } = IMAGENET;
        let published = Published {
            name,
            architecture,
            image,
            resize: image,
            mean,
            std,
            interpolation: Interpolation::Bicubic,
            pool,
            dim,
            mpp: None,
            layouts: &[Layout::Timm],
        };
        Self { name, dim, architecture, published: Some(published) }
    }

    /// A published vision transformer.
    pub(super) const fn vit(name: &'static str, config: VitConfig) -> Self {
        let (image, pool, dim) = (config.image, config.pool, config.width());
        Self::published(name, Architecture::Vit(config), image, pool, dim)
    }

    const fn with(self, published: Published) -> Self {
        Self { published: Some(published), ..self }
    }

    const fn facts(&self) -> Published {
        match self.published {
            Some(published) => published,
            None => panic!("an architecture alone has no such facts"),
        }
    }

    pub(super) const fn norm(self, Norm { mean, std }: Norm) -> Self {
        self.with(Published { mean, std, ..self.facts() })
    }

    pub(super) const fn bilinear(self) -> Self {
        self.with(Published { interpolation: Interpolation::Bilinear, ..self.facts() })
    }

    pub(super) const fn resize(self, resize: i64) -> Self {
        self.with(Published { resize, ..self.facts() })
    }

    pub(super) const fn mpp(self, mpp: f64) -> Self {
        self.with(Published { mpp: Some(mpp), ..self.facts() })
    }

    pub(super) const fn layouts(self, layouts: &'static [Layout]) -> Self {
        self.with(Published { layouts, ..self.facts() })
    }
}

/// Switches of a vision transformer, one after the other.
impl VitConfig {
    pub(super) const fn from_size(size: Size, patch: i64) -> Self {
        Self { patch, ..Self::new(size, 0) }
    }

    pub(super) const fn image(self, image: i64) -> Self {
        Self { image, ..self }
    }

    pub(super) const fn with_pooling(self, pool: Pool) -> Self {
        Self { pool, ..self }
    }

    /// LayerScale from 1e-5 on.
    pub(super) const fn scaled(self) -> Self {
        Self { layer_scale: Some(1e-5), ..self }
    }

    /// Registers, with positions for them and the class token.
    pub(super) const fn registers(self, registers: i64) -> Self {
        Self { registers, ..self }
    }

    /// DINOv2's registers: positions for patches alone.
    pub(super) const fn free_registers(self, registers: i64) -> Self {
        Self { registers, no_embed_class: true, ..self }
    }

    pub(super) const fn swiglu(self, mlp_ratio: f64) -> Self {
        Self { mlp: Mlp::SwiGlu, mlp_ratio, ..self }
    }

    pub(super) const fn eps(self, eps: f64) -> Self {
        Self { eps, ..self }
    }

    /// OpenAI's CLIP: norm before the blocks, QuickGELU, projection to 512.
    pub(super) const fn clip(self) -> Self {
        let projection = Some(Projection { dim: 512, unit: false });
        Self { pre_norm: true, eps: 1e-5, mlp: Mlp::QuickGelu, projection, ..self }
    }

    /// CONCH's pooling to 512 by one query of eight heads.
    pub(super) const fn conch(self) -> Self {
        let attention = Some(AttentionPool { dim: 512, heads: 8 });
        Self { pool: Pool::Attention, attention, ..self }
    }

    pub(super) const fn projected(self, dim: i64) -> Self {
        Self { projection: Some(Projection { dim, unit: true }), ..self }
    }
}
