//! What an encoder is to the rest of the program.

use tch::Tensor;

use crate::layer::Linear;
use encoders::encoder::NetworkConfig;

/// An image encoder with a linear head.
pub trait Encoder: Send {
    /// What it was built from.
    fn config(&self) -> NetworkConfig;

    /// timm's name.
    fn architecture(&self) -> &'static str {
        self.config().architecture
    }

    /// Side of the images it takes, or `None` when any multiple of 32 will do.
    fn image(&self) -> Option<i64> {
        self.config().image()
    }

    /// Width of [`Self::embed`].
    fn dim(&self) -> i64 {
        self.config().dim()
    }

    /// `[N, 3, S, S]`, normalised, to one vector per image `[N, dim]`.
    fn embed(&self, x: &Tensor, train: bool) -> Tensor;

    /// `[N, 3, S, S]`, normalised, to logits `[N, classes]`.
    fn forward(&self, x: &Tensor, train: bool) -> Tensor;

    /// Layers for rate decay: stem first, head last (timm's `group_matcher`).
    fn layers(&self) -> usize;

    /// The layer of a parameter (name relative to the encoder).
    fn layer_index(&self, name: &str) -> usize;

    /// Parameters free of weight decay next to the one-dimensional ones (timm's
    /// `no_weight_decay`).
    fn no_decay(&self, name: &str) -> bool {
        let _ = name;
        false
    }

    /// Name prefix of the head.
    fn head(&self) -> &'static str {
        self.config().head()
    }

    /// The linear layers of attention and MLP by name, as adapters take them; a convolutional
    /// network has none.
    fn linears(&mut self) -> Vec<(String, &mut Linear)> {
        vec![]
    }
}

/// A network and its name in the table.
pub(super) struct Named<T> {
    pub(super) net: T,
    pub(super) name: &'static str,
}

/// The number after `prefix` in a parameter's name, and the rest after its point.
pub(super) fn index_after<'a>(name: &'a str, prefix: &str) -> Option<(usize, &'a str)> {
    let (digits, rest) = name.strip_prefix(prefix)?.split_once('.')?;
    Some((digits.parse().ok()?, rest))
}
