//! Encoders from files of weights, held against libtorch.

use base::remedy::{Remedied, Remedy};
use features::FeatureError;
use features::package::{self, Package};
use features::weights::{Conversion, Drawn, Weights};
use infer::EngineOptions;
use infer::convert::{Draft, Reference, probes};
use net::onnx::MOST_BYTES;
use std::path::Path;
use train::TrainError;
use train::embed::Embedder;

/// Why weights give no encoder.
#[derive(Debug, thiserror::Error)]
pub enum WeightsError {
    /// The weights do not open.
    #[error(transparent)]
    Train(#[from] TrainError),
    /// Engines, files, packages.
    #[error(transparent)]
    Feature(#[from] FeatureError),
}

/// An encoder of a file of weights. With `partial` the weights that match are loaded, and libtorch draws the others.
///
/// # Errors
/// [`WeightsError`].
pub fn open(
    weights: &Path,
    name: Option<&str>,
    side: Option<usize>,
    partial: bool,
    options: &EngineOptions,
) -> Result<Weights, WeightsError> {
    if !partial {
        return Ok(Weights::open(weights, name, side, options)?);
    }
    let image = side.or_else(|| features::weights::image(name?)).unwrap_or(224) as i64;
    let net = Embedder::open(weights, name, image, true, "cpu")?;
    let drawn = Drawn { tensors: net.tensors(), random: net.random().join(",") };
    Ok(Weights::open_drawn(weights, name, side, drawn, options)?)
}

/// Makes a package of an encoder of the table as [`features::weights::convert`] does, and holds it against the
/// same weights on libtorch, too.
///
/// # Errors
/// [`WeightsError`].
pub fn convert(
    weights: &Path,
    name: &str,
    out: &Path,
    draft: Draft,
    options: &EngineOptions,
) -> Result<Package, WeightsError> {
    convert_below(MOST_BYTES, weights, name, out, draft, options)
}

/// The same with no file larger than `most` bytes.
///
/// # Errors
/// [`WeightsError`].
pub fn convert_below(
    most: u64,
    weights: &Path,
    name: &str,
    out: &Path,
    draft: Draft,
    options: &EngineOptions,
) -> Result<Package, WeightsError> {
    // Before the weights are read, which takes minutes of a giant.
    package::free(out)?;
    let net = Embedder::open(weights, Some(name), draft.image as i64, false, "cpu")?;
    let features = net.embed(&probes(net.side()));
    drop(net);
    let reference = Some(Reference { by: "libtorch on the weights", features: &features });
    let conversion = Conversion { encoder: name, reference, most };
    Ok(features::weights::convert(weights, conversion, out, draft, options)?)
}

impl Remedied for WeightsError {
    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Train(e) => e.remedy(),
            Self::Feature(e) => e.remedy(),
        }
    }
}
