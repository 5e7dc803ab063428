//! Encoders from files of weights, by libtorch.

use base::remedy::{Remedied, Remedy};
use features::package::{self, Package};
use features::row::About;
use features::weights::{Conversion, digest};
use features::{FeatureError, Frozen};
use infer::EngineOptions;
use infer::convert::{Draft, Reference, probes};
use net::onnx::MOST_BYTES;
use std::path::{Path, PathBuf};
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
    /// The exported network is not the weights'.
    #[error("{}: {engine} is off by {difference} in a probability where {allowed} is allowed", path.display())]
    Parity {
        /// The weights.
        path: PathBuf,
        /// What ran the package.
        engine: String,
        /// By how much.
        difference: f32,
        /// How much may be.
        allowed: f32,
    },
}

/// An encoder with the weights of a file, run by libtorch; see [`Embedder::open`].
///
/// # Errors
/// [`WeightsError`].
pub fn open(
    weights: &Path,
    name: Option<&str>,
    image: i64,
    partial: bool,
    device: &str,
) -> Result<Frozen, WeightsError> {
    let net = Embedder::open(weights, name, image, partial, device)?;
    let about = About {
        encoder: net.architecture().into(),
        width: net.dim(),
        sha256: digest(weights)?,
        random: net.random().join(","),
        bf16: false,
    };
    let fit = net.fit();
    Ok(Frozen { network: Box::new(net), about, fit, mpp: None, engine: None })
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
            _ => None,
        }
    }
}
