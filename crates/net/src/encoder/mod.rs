//! Every encoder by name on libtorch: the table of [`encoders::encoder`], one trait.

mod convolutional;
mod port;
mod transformer;

use encoders::encoder::{NetworkConfig, NetworkShape};
use tch::nn::{Path, VarStore};

pub use self::port::Encoder;
pub use encoders::encoder::{
    Architecture, ENCODERS, EncoderConfig, EncoderEntry, Published, entry, published,
};

use self::port::Named;
use crate::efficientnet::EfficientNet;
use crate::error::Result;
use crate::optim::{self, ParamGroup};
use crate::resnet::{ResNet, ResNetV2};
use crate::swin::Swin;
use crate::vit::{Vit, VitConfig};

/// Builds the encoder called `config.name` under `p`.
///
/// # Errors
/// [`NetError::Encoder`](crate::NetError::Encoder) for an unknown name (with the known ones) or a setting out of
/// range.
pub fn build(p: &Path, config: &EncoderConfig) -> Result<Box<dyn Encoder>> {
    let NetworkConfig { architecture, shape } = config.network()?;
    Ok(match shape {
        NetworkShape::Vit(c) => Box::new(Named { net: Vit::new(p, &c)?, name: architecture }),
        NetworkShape::EfficientNet(c) => {
            Box::new(Named { net: EfficientNet::new(p, &c)?, name: architecture })
        }
        NetworkShape::ResNet(c) => Box::new(ResNet::new(p, &c)?),
        NetworkShape::ResNetV2(c) => Box::new(ResNetV2::new(p, &c)?),
        NetworkShape::Swin(c) => Box::new(Swin::new(p, &c)?),
    })
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
        |n| encoder.layer_index(n),
    )
}

/// A vision transformer of any shape, outside the table.
///
/// # Errors
/// [`NetError::Encoder`](crate::NetError::Encoder) for a setting out of range.
pub fn vit(p: &Path, config: &VitConfig) -> Result<Box<dyn Encoder>> {
    Ok(Box::new(Named { net: Vit::new(p, config)?, name: "vit" }))
}
