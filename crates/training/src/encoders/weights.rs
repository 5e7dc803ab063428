//! Encoders from files of weights, by libtorch.

use base::remedy::{Remedied, Remedy};
use features::package::{self, Exported, Facts, Listed, Package};
use features::row::About;
use features::{FeatureError, Frozen};
use infer::EngineOptions;
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

/// Side of the input of an architecture that takes any, px.
const SIDE: usize = 224;

/// The input and the output vector of an encoder: from the table, or the defaults here.
fn facts(name: &str, input: usize) -> Facts {
    let published = net::encoder::published(name);
    let (mean, std) = published.map_or((MEAN, STD), |p| (p.mean, p.std));
    let words = |p: &net::encoder::Published| p.layouts.iter().map(ToString::to_string).collect();
    let fit = train::batch::fit(name, input);
    Facts {
        mean,
        std,
        resize: fit.resize,
        interpolation: fit.by,
        pooling: match published {
            Some(p) => p.pool.to_string(),
            None if name.starts_with("vit") => "class token".into(),
            None => "mean over places".into(),
        },
        layouts: published.map_or_else(|| vec!["timm".into()], words),
    }
}

/// Side of the input of an encoder of the table, px, where its makers have one.
#[must_use]
pub fn image(name: &str) -> Option<usize> {
    net::encoder::published(name).map(|p| p.image as usize)
}

/// The encoders of the table; `features::package::known` has the same without libtorch.
#[must_use]
pub fn known() -> Vec<Listed> {
    let listed = |e: &net::encoder::EncoderEntry| {
        let input = image(e.name).unwrap_or(SIDE);
        Listed {
            name: e.name.into(),
            folder: None,
            architecture: e.name.into(),
            width: e.dim as usize,
            input,
            mpp: e.published.and_then(|p| p.mpp),
            license: None,
            facts: facts(e.name, input),
        }
    };
    net::encoder::ENCODERS.iter().map(listed).collect()
}

/// SHA-256 of weights: of an index and then of the files that it names, by name, or of the one file.
///
/// # Errors
/// [`WeightsError`].
pub fn digest(weights: &Path) -> Result<String, WeightsError> {
    let files = net::weight_files(weights).map_err(TrainError::from)?;
    let read = base::digest::sha256_files(files);
    let (_, sha256) = read.map_err(|e| FeatureError::Io { path: e.path, source: e.source })?;
    Ok(sha256)
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

/// Exports an encoder of the table with the weights of a file, and makes a package of it. What the
/// network is fed and what is taken from it comes from the table, not from `draft`. What does not fit
/// into one file of ONNX becomes several.
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
    convert_below(net::onnx::MOST_BYTES, weights, name, out, draft, options)
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
    let (architecture, image, width) = (net.architecture().into(), net.side(), Some(net.dim()));
    let Facts { mean, std, resize, interpolation, pooling, .. } = facts(name, image);
    let stated = net::encoder::published(name).and_then(|p| Mpp::new(p.mpp?).ok());
    let (mpp, resize) = (draft.mpp.or(stated), Some(resize));
    let fed = Draft { mean, std, resize, interpolation, pooling, mpp, ..draft };
    let draft = Draft { architecture, image, width, ..fed };
    let features = net.embed(&probes(net.side()));
    let onnx = net.onnx(draft.half, most)?;
    // The engines need the memory.
    drop(net);
    let sha256 = digest(weights)?;
    let exported = Exported { weights, sha256, onnx, features: &features };
    Ok(package::convert_weights(exported, out, draft, options)?)
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
