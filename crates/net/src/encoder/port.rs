//! What an encoder is to the rest of the program.

use tch::Tensor;

use crate::efficientnet::EfficientNet;
use crate::layer::Linear;
use crate::resnet::{ResNet, ResNetV2};
use crate::swin::Swin;
use crate::vit::Vit;

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

    /// Parameters free of weight decay next to the one-dimensional ones (timm's
    /// `no_weight_decay`).
    fn no_decay(&self, name: &str) -> bool;

    /// Name prefix of the head.
    fn head(&self) -> &'static str;

    /// The linear layers of attention and MLP by name, as adapters take them; a convolutional
    /// network has none.
    fn linears(&mut self) -> Vec<(String, &mut Linear)> {
        vec![]
    }

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
