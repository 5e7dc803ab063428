//! Every encoder by name: one table, one trait.
//!
//! A row is an architecture alone (timm's own names), or an encoder that others published: then it
//! also states how its images are made and how its file is named ([`published`]).

mod config;
mod convolutional;
mod named;
mod port;
mod row;
mod table;

use tch::nn::{Path, VarStore};

pub use self::config::{EncoderConfig, entry, published};
pub use self::port::{Encoder, Network};
pub use self::row::{Architecture, EncoderEntry, Interpolation, Published};
pub use self::table::ENCODERS;

use self::named::Named;
use crate::efficientnet::{EfficientNet, EfficientNetConfig, Variant};
use crate::error::{NetError, Result};
use crate::optim::{self, ParamGroup};
use crate::resnet::{ResNet, ResNetConfig, ResNetV2};
use crate::swin::{Stem, Swin, SwinConfig};
use crate::vit::{Vit, VitConfig};

/// Builds the encoder called `config.name` under `p`.
///
/// # Errors
/// [`NetError::Config`] for an unknown name (with the known ones) or a setting out of range.
pub fn build(p: &Path, config: &EncoderConfig) -> Result<Box<dyn Encoder>> {
    config.check()?;
    let Some(entry) = entry(&config.name) else {
        let known: Vec<_> = ENCODERS.iter().map(|e| e.name).collect();
        return Err(NetError::config(
            "name",
            format!("no encoder `{}`; known: {}", config.name, known.join(", ")),
        ));
    };
    match entry.architecture {
        Architecture::Vit(vit) => build_vit(p, entry.name, vit, config),
        Architecture::EfficientNet(variant) => build_efficientnet(p, variant, config),
        Architecture::ResNet50 => Ok(Box::new(ResNet::new(p, &resnet_config(config))?)),
        Architecture::ResNet50V2 => Ok(Box::new(ResNetV2::new(p, &resnet_config(config))?)),
        Architecture::SwinTiny => build_swin(p, Stem::Patch, config),
        Architecture::SwinTinyConvStem => build_swin(p, Stem::Conv, config),
    }
}

/// AdamW groups for fine-tuning: layer-wise rate decay and no decay where timm has none.
/// The encoder is at the root of `vs`.
#[must_use]
pub fn layer_decay_groups(
    vs: &VarStore,
    encoder: &dyn Encoder,
    weight_decay: f64,
    decay: f64,
) -> Vec<ParamGroup> {
    optim::groups_layer_decay(
        vs,
        weight_decay,
        decay,
        encoder.layers(),
        |n| encoder.no_decay(n),
        |n| encoder.layer_of(n),
    )
}

/// A vision transformer of any shape, outside the table.
///
/// # Errors
/// [`NetError::Config`] for a setting out of range.
pub fn vit(p: &Path, config: &VitConfig) -> Result<Box<dyn Encoder>> {
    Ok(Box::new(Named { net: Vit::new(p, config)?, name: "vit" }))
}

fn build_vit(
    p: &Path,
    name: &'static str,
    row: VitConfig,
    c: &EncoderConfig,
) -> Result<Box<dyn Encoder>> {
    // Another pooling than the row's does without what comes after the row's own.
    let own = row.pool == c.pool;
    let config = VitConfig {
        image: c.image,
        classes: c.classes,
        drop_path: c.drop_path,
        head_bias: c.head_bias,
        pool: c.pool,
        attention: row.attention.filter(|_| own),
        projection: row.projection.filter(|_| own),
        ..row
    };
    Ok(Box::new(Named { net: Vit::new(p, &config)?, name }))
}

fn build_efficientnet(p: &Path, variant: Variant, c: &EncoderConfig) -> Result<Box<dyn Encoder>> {
    let config = EfficientNetConfig {
        variant,
        classes: c.classes,
        dropout: c.dropout,
        drop_path: c.drop_path,
        head_bias: c.head_bias,
    };
    Ok(Box::new(Named { net: EfficientNet::new(p, &config)?, name: variant.name() }))
}

fn resnet_config(c: &EncoderConfig) -> ResNetConfig {
    ResNetConfig {
        classes: c.classes,
        dropout: c.dropout,
        drop_path: c.drop_path,
        head_bias: c.head_bias,
    }
}

fn build_swin(p: &Path, stem: Stem, c: &EncoderConfig) -> Result<Box<dyn Encoder>> {
    let config = SwinConfig {
        image: c.image,
        drop_path: c.drop_path,
        head_bias: c.head_bias,
        ..SwinConfig::tiny(stem, c.classes)
    };
    Ok(Box::new(Swin::new(p, &config)?))
}
