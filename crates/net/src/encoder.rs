//! Every encoder by name: one table, one trait.

use serde::{Deserialize, Serialize};
use tch::Tensor;
use tch::nn::{Path, VarStore};

use crate::efficientnet::{EfficientNet, EfficientNetConfig, Variant};
use crate::error::{NetError, Result};
use crate::optim::{self, ParamGroup};
use crate::resnet::{ResNet, ResNetV2};
use crate::swin::Swin;
use crate::vit::{Pool, Size, Vit, VitConfig};

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

/// How to build an encoder; the same words for all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EncoderConfig {
    /// A name of [`ENCODERS`].
    pub name: String,
    /// Classes of the head; 0 leaves it out.
    pub classes: i64,
    /// Image side in pixels (transformers).
    #[serde(default = "EncoderConfig::default_image")]
    pub image: i64,
    /// Stochastic depth, [0, 1).
    #[serde(default)]
    pub drop_path: f64,
    /// Dropout before the head (convolutional networks), [0, 1).
    #[serde(default)]
    pub dropout: f64,
    /// Constant bias of the head.
    #[serde(default)]
    pub head_bias: f64,
    /// Pooling (transformers).
    #[serde(default)]
    pub pool: Pool,
}

impl EncoderConfig {
    fn default_image() -> i64 {
        224
    }

    /// 224 px, no dropout, class token.
    #[must_use]
    pub fn new(name: &str, classes: i64) -> Self {
        Self {
            name: name.into(),
            classes,
            image: 224,
            drop_path: 0.0,
            dropout: 0.0,
            head_bias: 0.0,
            pool: Pool::Cls,
        }
    }
}

/// A line of the table.
#[derive(Clone, Copy)]
pub struct EncoderEntry {
    /// timm's name.
    pub name: &'static str,
    /// Width of the embedding.
    pub dim: i64,
    /// Builds it.
    build: fn(&Path, &EncoderConfig) -> Result<Box<dyn Encoder>>,
}

impl std::fmt::Debug for EncoderEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.name, self.dim)
    }
}

macro_rules! vit {
    ($size:ident, $dim:literal) => {
        EncoderEntry {
            name: match Size::$size {
                Size::Tiny => "vit_tiny_patch16_224",
                Size::Small => "vit_small_patch16_224",
                Size::Base => "vit_base_patch16_224",
                Size::Large => "vit_large_patch16_224",
                Size::Huge => "vit_huge_patch14_224",
            },
            dim: $dim,
            build: |p, c| build_vit(p, Size::$size, c),
        }
    };
}

macro_rules! efficientnet {
    ($variant:ident, $name:literal, $dim:literal) => {
        EncoderEntry {
            name: $name,
            dim: $dim,
            build: |p, c| build_efficientnet(p, Variant::$variant, c),
        }
    };
}

/// Every encoder there is. A new one is a file and a line here.
pub static ENCODERS: &[EncoderEntry] = &[
    vit!(Tiny, 192),
    vit!(Small, 384),
    vit!(Base, 768),
    vit!(Large, 1024),
    vit!(Huge, 1280),
    efficientnet!(B0, "efficientnet_b0", 1280),
    efficientnet!(B1, "efficientnet_b1", 1280),
    efficientnet!(B2, "efficientnet_b2", 1408),
    efficientnet!(B3, "efficientnet_b3", 1536),
    efficientnet!(B4, "efficientnet_b4", 1792),
    efficientnet!(B5, "efficientnet_b5", 2048),
    efficientnet!(B6, "efficientnet_b6", 2304),
    efficientnet!(B7, "efficientnet_b7", 2560),
    efficientnet!(Lite0, "efficientnet_lite0", 1280),
    efficientnet!(Lite2, "efficientnet_lite2", 1280),
    efficientnet!(V2S, "efficientnetv2_s", 1280),
    efficientnet!(TorchV2S, "efficientnet_v2_s", 1280),
    efficientnet!(TfB0, "tf_efficientnet_b0", 1280),
    efficientnet!(TfB1, "tf_efficientnet_b1", 1280),
    efficientnet!(TfB2, "tf_efficientnet_b2", 1408),
    efficientnet!(TfB3, "tf_efficientnet_b3", 1536),
    efficientnet!(TfB4, "tf_efficientnet_b4", 1792),
    efficientnet!(TfB5, "tf_efficientnet_b5", 2048),
    efficientnet!(TfB6, "tf_efficientnet_b6", 2304),
    efficientnet!(TfB7, "tf_efficientnet_b7", 2560),
    efficientnet!(TfV2S, "tf_efficientnetv2_s", 1280),
    EncoderEntry { name: ResNet::NAME, dim: ResNet::DIM, build: ResNet::build },
    EncoderEntry { name: ResNetV2::NAME, dim: ResNetV2::DIM, build: ResNetV2::build },
    EncoderEntry { name: Swin::TINY, dim: 768, build: Swin::build },
    EncoderEntry { name: Swin::TINY_CONV_STEM, dim: 768, build: Swin::build_conv_stem },
];

/// Builds the encoder called `config.name` under `p`.
///
/// # Errors
/// [`NetError::Config`] for an unknown name (with the known ones) or a setting out of range.
pub fn build(p: &Path, config: &EncoderConfig) -> Result<Box<dyn Encoder>> {
    let Some(entry) = ENCODERS.iter().find(|e| e.name == config.name) else {
        let known: Vec<_> = ENCODERS.iter().map(|e| e.name).collect();
        return Err(NetError::config(
            "name",
            format!("no encoder `{}`; known: {}", config.name, known.join(", ")),
        ));
    };
    (entry.build)(p, config)
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

fn build_vit(p: &Path, size: Size, c: &EncoderConfig) -> Result<Box<dyn Encoder>> {
    let config = VitConfig {
        image: c.image,
        drop_path: c.drop_path,
        head_bias: c.head_bias,
        pool: c.pool,
        ..VitConfig::new(size, c.classes)
    };
    Ok(Box::new(Named { net: Vit::new(p, &config)?, name: size.name() }))
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

struct Named<T> {
    net: T,
    name: &'static str,
}

/// `blocks.<i>` of a name.
fn index_after<'a>(name: &'a str, prefix: &str) -> Option<(usize, &'a str)> {
    let (digits, rest) = name.strip_prefix(prefix)?.split_once('.')?;
    Some((digits.parse().ok()?, rest))
}

impl Encoder for Named<Vit> {
    fn architecture(&self) -> &str {
        self.name
    }

    fn image(&self) -> Option<i64> {
        Some(self.net.config().image)
    }

    fn dim(&self) -> i64 {
        self.net.config().dim
    }

    fn embed(&self, x: &Tensor, train: bool) -> Tensor {
        self.net.embed(x, train)
    }

    fn forward(&self, x: &Tensor, train: bool) -> Tensor {
        self.net.forward(x, train)
    }

    fn layers(&self) -> usize {
        self.net.blocks.len() + 2
    }

    fn layer_of(&self, name: &str) -> usize {
        if ["cls_token", "pos_embed", "patch_embed"].iter().any(|s| name.starts_with(s)) {
            0
        } else if let Some((i, _)) = index_after(name, "blocks.") {
            i + 1
        } else if name.starts_with("norm") {
            self.net.blocks.len()
        } else {
            self.net.blocks.len() + 1
        }
    }

    fn no_decay(&self, name: &str) -> bool {
        name == "pos_embed" || name == "cls_token"
    }

    fn head(&self) -> &'static str {
        "head."
    }

    fn network(&self) -> Network<'_> {
        Network::Vit(&self.net)
    }
}

impl Named<EfficientNet> {
    fn blocks(&self) -> usize {
        self.net.trunk.blocks.iter().map(Vec::len).sum()
    }
}

impl Encoder for Named<EfficientNet> {
    fn architecture(&self) -> &str {
        self.name
    }

    fn image(&self) -> Option<i64> {
        None
    }

    fn dim(&self) -> i64 {
        self.net.dim()
    }

    fn embed(&self, x: &Tensor, train: bool) -> Tensor {
        self.net.embed(x, train)
    }

    fn forward(&self, x: &Tensor, train: bool) -> Tensor {
        self.net.forward(x, train)
    }

    fn layers(&self) -> usize {
        self.blocks() + 2
    }

    fn layer_of(&self, name: &str) -> usize {
        if name.starts_with("conv_stem") || name.starts_with("bn1") {
            return 0;
        }
        if let Some((stage, rest)) = index_after(name, "blocks.")
            && let Some((block, _)) = index_after(rest, "")
        {
            let before: usize = self.net.trunk.blocks[..stage].iter().map(Vec::len).sum();
            return before + block + 1;
        }
        if name.starts_with("conv_head") || name.starts_with("bn2") {
            return self.blocks();
        }
        self.blocks() + 1
    }

    fn no_decay(&self, _name: &str) -> bool {
        false
    }

    fn head(&self) -> &'static str {
        "classifier."
    }

    fn network(&self) -> Network<'_> {
        Network::EfficientNet(&self.net)
    }
}
