//! Encoders from files of weights, by libtorch.

use features::package::{self, Listed, Package};
use features::row::About;
use features::{FeatureError, Frozen};
use infer::EngineOptions;
use infer::card::Interpolation;
use infer::convert::{Draft, probes};
use mitosis::Mpp;
use pixels::input::{MEAN, STD};
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

/// A draft with what the makers of an encoder feed it, and what they take from it: as the table says, or
/// as everything here does.
fn fed(name: &str, draft: Draft) -> Draft {
    let Some(p) = net::encoder::published(name) else {
        let pooling = if name.starts_with("vit") { "class token" } else { "mean over places" };
        return Draft { mean: MEAN, std: STD, pooling: pooling.into(), ..draft };
    };
    Draft {
        mean: p.mean,
        std: p.std,
        interpolation: match p.interpolation {
            net::encoder::Interpolation::Bicubic => Interpolation::Bicubic,
            net::encoder::Interpolation::Bilinear => Interpolation::Bilinear,
        },
        pooling: p.pool.to_string(),
        mpp: draft.mpp.or_else(|| Mpp::new(p.mpp?).ok()),
        ..draft
    }
}

/// Side of the input of an encoder of the table, px, where its makers have one.
#[must_use]
pub fn image(name: &str) -> Option<usize> {
    net::encoder::published(name).map(|p| p.image as usize)
}

/// The encoders of the table.
#[must_use]
pub fn known() -> Vec<Listed> {
    let all = net::encoder::ENCODERS.iter();
    let listed = |e: &net::encoder::EncoderEntry| Listed {
        input: image(e.name),
        mpp: e.published.and_then(|p| p.mpp),
        ..Listed::known(e.name, e.dim as usize)
    };
    all.map(listed).collect()
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
    let (architecture, image, width) = (net.architecture().into(), net.side(), Some(net.dim()));
    let draft = fed(name, Draft { architecture, image, width, ..draft });
    let features = net.embed(&probes(net.side()));
    let onnx = net.onnx()?;
    Ok(package::convert_weights(weights, (&onnx, &features), out, draft, options)?)
}
