//! Every encoder by name: one table, one trait.
//!
//! A row is an architecture alone (timm's own names), or an encoder that others published: then it
//! also says how its images are made and how its file is named ([`published`]).

mod named;
mod row;
mod table;

use serde::{Deserialize, Serialize};
use tch::Tensor;
use tch::nn::{Path, VarStore};

pub use self::row::{Architecture, EncoderEntry, Interpolation, Published};
pub use self::table::ENCODERS;

use self::named::Named;
use crate::efficientnet::{EfficientNet, EfficientNetConfig, Variant};
use crate::error::{NetError, Result};
use crate::optim::{self, ParamGroup};
use crate::resnet::{ResNet, ResNetV2};
use crate::swin::Swin;
use crate::vit::{Pool, Vit, VitConfig};

/// An image encoder with a linear head.
pub trait Encoder: Send {
    /// timm's name.
    fn architecture(&self) -> &str;

    /// Side of the images it takes, or `None` when any multiple of 32 will do.
    fn image(&self) -> Option<i64>;

    /// Width of [`Self::embed`].
    fn dim(&self) -> i64;

    /// `[N, 3, S, S]`, normalised, to one vector per image `[N, dim]`.
    fn embed(&self, x: &Tensor, train: bool) -> Tensor;

    /// `[N, 3, S, S]`, normalised, to logits `[N, classes]`.
    fn forward(&self, x: &Tensor, train: bool) -> Tensor;

    /// Layers for rate decay: stem first, head last (timm's `group_matcher`).
    fn layers(&self) -> usize;

    /// The layer of a parameter (name relative to the encoder).
    fn layer_of(&self, name: &str) -> usize;

    /// Parameters free of weight decay beside the one-dimensional ones (timm's
    /// `no_weight_decay`).
    fn no_decay(&self, name: &str) -> bool;

    /// Name prefix of the head.
    fn head(&self) -> &'static str;

    /// The network for ONNX export.
    fn network(&self) -> Network<'_>;
}

/// The concrete network behind an [`Encoder`].
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Network<'a> {
    /// A vision transformer.
    Vit(&'a Vit),
    /// An EfficientNet.
    EfficientNet(&'a EfficientNet),
    /// A ResNet.
    ResNet(&'a ResNet),
    /// A ResNet with its norms first.
    ResNetV2(&'a ResNetV2),
    /// A Swin transformer.
    Swin(&'a Swin),
}

/// How to build an encoder; the same words for all. Image side and pooling are the table's where they
/// are not given.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "Given")]
pub struct EncoderConfig {
    /// A name of [`ENCODERS`].
    pub name: String,
    /// Classes of the head; 0 leaves it out.
    pub classes: i64,
    /// Image side in pixels (transformers).
    pub image: i64,
    /// Stochastic depth, [0, 1).
    pub drop_path: f64,
    /// Dropout before the head (convolutional networks), [0, 1).
    pub dropout: f64,
    /// Constant bias of the head.
    pub head_bias: f64,
    /// Pooling (transformers).
    pub pool: Pool,
}

/// [`EncoderConfig`] as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Given {
    name: String,
    classes: i64,
    image: Option<i64>,
    #[serde(default)]
    drop_path: f64,
    #[serde(default)]
    dropout: f64,
    #[serde(default)]
    head_bias: f64,
    pool: Option<Pool>,
}

impl From<Given> for EncoderConfig {
    fn from(given: Given) -> Self {
        let own = Self::new(&given.name, given.classes);
        Self {
            image: given.image.unwrap_or(own.image),
            drop_path: given.drop_path,
            dropout: given.dropout,
            head_bias: given.head_bias,
            pool: given.pool.unwrap_or(own.pool),
            ..own
        }
    }
}

impl EncoderConfig {
    /// No dropout; image side and pooling as the table says (224 px and the class token for an
    /// architecture alone).
    #[must_use]
    pub fn new(name: &str, classes: i64) -> Self {
        let published = published(name);
        Self {
            name: name.into(),
            classes,
            image: published.map_or(224, |p| p.image),
            drop_path: 0.0,
            dropout: 0.0,
            head_bias: 0.0,
            pool: published.map_or(Pool::Cls, |p| p.pool),
        }
    }
}

/// The row of this name.
#[must_use]
pub fn entry(name: &str) -> Option<&'static EncoderEntry> {
    ENCODERS.iter().find(|e| e.name == name)
}

/// What an encoder that others published wants: its architecture, image side, normalisation and
/// pooling, and the names in its file. `None` for an architecture alone and for unknown names.
#[must_use]
pub fn published(name: &str) -> Option<&'static Published> {
    entry(name)?.published.as_ref()
}

/// Builds the encoder called `config.name` under `p`.
///
/// # Errors
/// [`NetError::Config`] for an unknown name (with the known ones) or a setting out of range.
pub fn build(p: &Path, config: &EncoderConfig) -> Result<Box<dyn Encoder>> {
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
        Architecture::ResNet50 => ResNet::build(p, config),
        Architecture::ResNet50V2 => ResNetV2::build(p, config),
        Architecture::SwinTiny => Swin::build(p, config),
        Architecture::SwinTinyConvStem => Swin::build_conv_stem(p, config),
    }
}

/// AdamW groups for fine-tuning: layer-wise rate decay and no decay where timm has none.
/// The encoder lies at the root of `vs`.
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
