//! Tensors by name from files of weights.

mod lite;
mod pickle;
mod pth;
mod read;
mod safe;
mod shards;

use std::collections::BTreeMap;

use crate::array::Array;

pub use self::safe::{Safe, metadata, read_safetensors};
pub use self::shards::files;
pub use read::read;

/// Tensors by name.
pub type Arrays = BTreeMap<String, Array>;

/// Tensors by name, each as its sides.
pub type Outline = BTreeMap<String, Vec<i64>>;
