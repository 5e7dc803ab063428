//! What a text tower is made of; [`crate::text`] reads one.

use crate::vit::{Size, VitConfig};
use crate::weights::Arrays;

/// Torch's default of a layer norm.
pub(crate) const EPS: f64 = 1e-5;
/// Width of an attention head.
pub(crate) const HEAD: i64 = 64;

/// What a tower is made of; its tensors state it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextShape {
    /// Tokens there are.
    pub vocabulary: i64,
    /// Numbers per token.
    pub width: i64,
    /// Places of tokens, the class token's being the last.
    pub places: i64,
    /// Numbers per vector.
    pub output: i64,
    /// Blocks.
    pub depth: i64,
}

impl TextShape {
    /// Its blocks are those of a plain vision transformer.
    pub(crate) fn blocks(&self) -> VitConfig {
        let (dim, heads) = (self.width, self.width / HEAD);
        VitConfig { dim, heads, depth: self.depth, eps: EPS, ..VitConfig::new(Size::Base, 0) }
    }
}

/// A text tower.
#[derive(Clone, Debug)]
pub struct TextTower {
    pub(crate) shape: TextShape,
    pub(crate) tensors: Arrays,
}

impl TextTower {
    /// Its size.
    #[must_use]
    pub fn shape(&self) -> &TextShape {
        &self.shape
    }

    pub(crate) fn tensors(&self) -> &Arrays {
        &self.tensors
    }
}
