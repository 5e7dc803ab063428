//! Networks on libtorch as ONNX files ([`encoders::onnx`]), such files run on libtorch, and the way back.

mod count;
mod run;
mod unfold;

use std::path::Path;

use encoders::onnx as export;
use tch::nn::VarStore;

use crate::checkpoint::write_whole;
use crate::encoder::Encoder;
use crate::error::Result;
use crate::tensors::Variables;
use crate::unet::EfficientUnet;

pub use self::count::multiply_accumulates;
pub use self::run::Program;
pub use self::unfold::{count_classes, unfold_classifier, unfold_unet};
pub use encoders::onnx::{ExportOptions, MOST_BYTES, WeightKind, check_size};
pub use proto;

/// The U-Net at the root of `vs` as an ONNX file's bytes; see [`encoders::onnx::unet`].
///
/// # Errors
/// As there.
pub fn unet(net: &EfficientUnet, vs: &VarStore, options: &ExportOptions) -> Result<Vec<u8>> {
    let exported = export::unet(net.config(), &Variables::new(vs), options)?;
    Ok(exported.encoded(options.weights)?)
}

/// The classifier at the root of `vs` as an ONNX file's bytes; see [`encoders::onnx::classifier`].
///
/// # Errors
/// As there.
pub fn classifier(
    net: &dyn Encoder,
    vs: &VarStore,
    size: i64,
    options: &ExportOptions,
) -> Result<Vec<u8>> {
    let exported = export::classifier(&net.config(), size, &Variables::new(vs), options)?;
    Ok(exported.encoded(options.weights)?)
}

/// The encoder at the root of `vs` as ONNX files' bytes; see [`encoders::onnx::embedding`].
///
/// # Errors
/// As there.
pub fn embedding(
    net: &dyn Encoder,
    vs: &VarStore,
    size: i64,
    options: &ExportOptions,
    most: u64,
) -> Result<Vec<Vec<u8>>> {
    Ok(export::embedding(&net.config(), size, &Variables::new(vs), options, most)?)
}

/// Writes an exported file, to a temporary name and then in place.
///
/// # Errors
/// The file system's, with the path.
pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    write_whole(path, bytes)
}
