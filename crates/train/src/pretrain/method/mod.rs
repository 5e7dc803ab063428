//! What pretrains an encoder: a network with its losses, one file for each way.

mod cmae;
mod mae;
mod mithras;
mod parts;
mod supervised;
mod supmae;

pub(super) use parts::Method;
pub use parts::{Contrast, Embedding, Forward, Pretraining, Valued, WeightedTerm, encoder_tensors};

use tch::nn::VarStore;

use super::preset::{MethodKind, PretrainPreset};
use crate::error::Result;

impl MethodKind {
    /// The one list of methods.
    pub(super) fn method(self) -> &'static Method {
        match self {
            Self::Mithras => &mithras::METHOD,
            Self::Supervised => &supervised::METHOD,
            Self::Supmae => &supmae::METHOD,
            Self::Cmae => &cmae::METHOD,
        }
    }
}

/// Builds the network of a preset under the root of `vs`.
///
/// # Errors
/// Settings out of range.
pub fn build(vs: &VarStore, preset: &PretrainPreset) -> Result<Box<dyn Pretraining>> {
    (preset.method.method().build)(vs, preset)
}
