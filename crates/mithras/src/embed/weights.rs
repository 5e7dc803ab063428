//! Encoders from files of weights, by libtorch.

use features::package::{self, Listed, Package};
use features::row::About;
use features::{FeatureError, Frozen};
use infer::EngineOptions;
use infer::convert::{Draft, probes};
use pixels::input::{MEAN, STD};
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

/// What the makers of an encoder feed it, and what they take from it.
struct Published {
    mean: [f32; 3],
    std: [f32; 3],
    pooling: &'static str,
}

/// The one place that says how an encoder of the table is fed.
fn published(name: &str) -> Published {
    let pooling = if name.starts_with("vit") { "class token" } else { "mean over places" };
    Published { mean: MEAN, std: STD, pooling }
}

/// The encoders of the table.
#[must_use]
pub fn known() -> Vec<Listed> {
    let all = net::encoder::ENCODERS.iter();
    all.map(|e| Listed::known(e.name, e.dim as usize)).collect()
}

/// An encoder with the weights of a file, run by libtorch; see [`Embedder::open`].
///
/// # Errors
/// [`WeightsError`].
pub fn open(
    weights: &Path,
    name: Option<&str>,
    how: (i64, bool),
    device: &str,
) -> Result<Frozen, WeightsError> {
    let net = Embedder::open(weights, name, how, device)?;
    let about = About {
        encoder: net.architecture().into(),
        width: net.dim(),
        sha256: package::digest(weights)?,
        random: net.random().join(","),
    };
    let side = net.side();
    Ok(Frozen { network: Box::new(net), about, side, mpp: None, engine: None })
}

/// Exports an encoder of the table with the weights of a file, and makes a package of it. What the
/// network is fed and what is taken from it comes from the table, not from `draft`.
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
    let net = Embedder::open(weights, Some(name), (draft.image as i64, false), "cpu")?;
    let Published { mean, std, pooling } = published(name);
    let draft = Draft {
        architecture: net.architecture().into(),
        image: net.side(),
        mean,
        std,
        pooling: pooling.into(),
        width: Some(net.dim()),
        ..draft
    };
    let features = net.embed(&probes(net.side()));
    let onnx = net.onnx()?;
    Ok(package::convert_weights(weights, (&onnx, &features), out, draft, options)?)
}
