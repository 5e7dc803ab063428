//! The network that a configuration asks for, with all that decides its tensors.

use super::config::{EncoderConfig, entry};
use super::row::Architecture;
use super::table::ENCODERS;
use crate::efficientnet::{EfficientNetConfig, Variant};
use crate::error::{EncoderError, Result};
use crate::resnet::{self, ResNetConfig};
use crate::swin::{Stem, SwinConfig};
use crate::vit::VitConfig;

/// A network by its architecture's name and its shape.
#[derive(Clone, Debug, PartialEq)]
pub struct NetworkConfig {
    /// timm's name, or the table's.
    pub architecture: &'static str,
    /// What it is made of.
    pub shape: NetworkShape,
}

/// What a network is made of.
#[derive(Clone, Debug, PartialEq)]
pub enum NetworkShape {
    /// A vision transformer.
    Vit(VitConfig),
    /// An EfficientNet.
    EfficientNet(EfficientNetConfig),
    /// ResNet-50.
    ResNet(ResNetConfig),
    /// ResNet-50 with its norms first, to its third stage.
    ResNetV2(ResNetConfig),
    /// A Swin transformer.
    Swin(SwinConfig),
}

impl EncoderConfig {
    /// The network that it asks for.
    ///
    /// # Errors
    /// [`EncoderError::Config`] for an unknown name (with the known ones) or a setting out of range.
    pub fn network(&self) -> Result<NetworkConfig> {
        self.check()?;
        let Some(entry) = entry(&self.name) else {
            let known: Vec<_> = ENCODERS.iter().map(|e| e.name).collect();
            return Err(EncoderError::config(
                "name",
                format!("no encoder `{}`; known: {}", self.name, known.join(", ")),
            ));
        };
        let network = match entry.architecture {
            Architecture::Vit(row) => NetworkConfig::vit(entry.name, self.on_row(row)),
            Architecture::EfficientNet(variant) => self.efficientnet(variant),
            Architecture::ResNet50 => NetworkConfig {
                architecture: resnet::NAME,
                shape: NetworkShape::ResNet(self.resnet()),
            },
            Architecture::ResNet50V2 => NetworkConfig {
                architecture: resnet::V2_NAME,
                shape: NetworkShape::ResNetV2(self.resnet()),
            },
            Architecture::SwinTiny => NetworkConfig::swin(self.swin(Stem::Patch)),
            Architecture::SwinTinyConvStem => NetworkConfig::swin(self.swin(Stem::Conv)),
        };
        network.check()?;
        Ok(network)
    }

    /// Another pooling than the row's does without what comes after the row's own.
    fn on_row(&self, row: VitConfig) -> VitConfig {
        let own = row.pool == self.pool;
        VitConfig {
            image: self.image,
            classes: self.classes,
            drop_path: self.drop_path,
            head_bias: self.head_bias,
            pool: self.pool,
            attention: row.attention.filter(|_| own),
            projection: row.projection.filter(|_| own),
            ..row
        }
    }

    fn efficientnet(&self, variant: Variant) -> NetworkConfig {
        let config = EfficientNetConfig {
            variant,
            classes: self.classes,
            dropout: self.dropout,
            drop_path: self.drop_path,
            head_bias: self.head_bias,
        };
        NetworkConfig { architecture: variant.name(), shape: NetworkShape::EfficientNet(config) }
    }

    fn resnet(&self) -> ResNetConfig {
        ResNetConfig {
            classes: self.classes,
            dropout: self.dropout,
            drop_path: self.drop_path,
            head_bias: self.head_bias,
        }
    }

    fn swin(&self, stem: Stem) -> SwinConfig {
        SwinConfig {
            image: self.image,
            drop_path: self.drop_path,
            head_bias: self.head_bias,
            ..SwinConfig::tiny(stem, self.classes)
        }
    }
}

impl NetworkConfig {
    /// A vision transformer of any shape, also outside the table.
    #[must_use]
    pub fn vit(architecture: &'static str, config: VitConfig) -> Self {
        Self { architecture, shape: NetworkShape::Vit(config) }
    }

    /// A Swin transformer.
    #[must_use]
    pub fn swin(config: SwinConfig) -> Self {
        Self { architecture: config.architecture(), shape: NetworkShape::Swin(config) }
    }

    /// Checks ranges.
    ///
    /// # Errors
    /// [`EncoderError::Config`] with the key.
    pub fn check(&self) -> Result<()> {
        match &self.shape {
            NetworkShape::Vit(c) => c.check(),
            NetworkShape::EfficientNet(c) => c.check(),
            NetworkShape::ResNet(c) | NetworkShape::ResNetV2(c) => c.check(),
            NetworkShape::Swin(c) => c.check(),
        }
    }

    /// Side of the images it takes, or `None` when any multiple of 32 will do.
    #[must_use]
    pub fn image(&self) -> Option<i64> {
        match &self.shape {
            NetworkShape::Vit(c) => Some(c.image),
            NetworkShape::Swin(c) => Some(c.image),
            _ => None,
        }
    }

    /// Width of the vector of an image.
    #[must_use]
    pub fn dim(&self) -> i64 {
        match &self.shape {
            NetworkShape::Vit(c) => c.width(),
            NetworkShape::EfficientNet(c) => c.variant.plan().head,
            NetworkShape::ResNet(_) => resnet::DIM,
            NetworkShape::ResNetV2(_) => resnet::V2_DIM,
            NetworkShape::Swin(c) => c.width(),
        }
    }

    /// Classes of the head; 0 where it has none.
    #[must_use]
    pub fn classes(&self) -> i64 {
        match &self.shape {
            NetworkShape::Vit(c) => c.classes,
            NetworkShape::EfficientNet(c) => c.classes,
            NetworkShape::ResNet(c) | NetworkShape::ResNetV2(c) => c.classes,
            NetworkShape::Swin(c) => c.classes,
        }
    }

    /// What names of the head begin with.
    #[must_use]
    pub fn head(&self) -> &'static str {
        match &self.shape {
            NetworkShape::Vit(_) | NetworkShape::Swin(_) => "head.",
            NetworkShape::EfficientNet(_) => "classifier.",
            NetworkShape::ResNet(_) | NetworkShape::ResNetV2(_) => "fc.",
        }
    }
}
