//! Encoders of the table from files of weights: what is known of them, and packages made without a training
//! framework.

use crate::error::FeatureError;
use crate::facts::{Facts, Listed};
use crate::package::{self, Package, file_name};
use base::digest::sha256_files;
use encoders::encoder::{ENCODERS, EncoderConfig, EncoderEntry, Published, fit, published};
use encoders::onnx::{self, ExportOptions, MOST_BYTES, WeightKind};
use encoders::weights::Arrays;
use encoders::{EncoderError, foreign, weights};
use infer::EngineOptions;
use infer::card::SourceCard;
use infer::convert::{self, ConvertError, Draft, Reference};
use mitosis::Mpp;
use pixels::input::{MEAN, STD};
use std::path::Path;

/// Side of the input of an architecture that takes any, px.
const SIDE: usize = 224;

impl Facts {
    /// The input and the output vector of an encoder: from the table, or the defaults here.
    fn of_encoder(name: &str, input: usize) -> Self {
        let published = published(name);
        let (mean, std) = published.map_or((MEAN, STD), |p| (p.mean, p.std));
        let words = |p: &Published| p.layouts.iter().map(ToString::to_string).collect();
        let fit = fit(name, input);
        Self {
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
}

/// Side of the input of an encoder of the table, px, where its makers have one.
#[must_use]
pub fn image(name: &str) -> Option<usize> {
    published(name).map(|p| p.image as usize)
}

/// The encoders that a file of weights gives.
#[must_use]
pub fn known() -> Vec<Listed> {
    let listed = |e: &EncoderEntry| {
        let input = image(e.name).unwrap_or(SIDE);
        Listed {
            name: e.name.into(),
            folder: None,
            architecture: e.name.into(),
            width: e.dim as usize,
            input,
            mpp: e.published.and_then(|p| p.mpp),
            license: None,
            facts: Facts::of_encoder(e.name, input),
        }
    };
    ENCODERS.iter().map(listed).collect()
}

/// SHA-256 of weights: of an index and then of the files that it names, by name, or of the one file.
///
/// # Errors
/// [`FeatureError`].
pub fn digest(weights: &Path) -> Result<String, FeatureError> {
    let read = sha256_files(weights::files(weights)?);
    let (_, sha256) = read.map_err(|e| FeatureError::Io { path: e.path, source: e.source })?;
    Ok(sha256)
}

/// How an encoder becomes a package.
#[derive(Clone, Copy, Debug)]
pub struct Conversion<'a> {
    /// A name of the table.
    pub encoder: &'a str,
    /// Features of [`convert::probes`] by the weights, where something else than the engines computes them.
    pub reference: Option<Reference<'a>>,
    /// Most bytes of a file: what does not fit into one file of ONNX becomes several.
    pub most: u64,
}

impl<'a> Conversion<'a> {
    /// Of files as large as ONNX allows, held against what the engines give for each other.
    #[must_use]
    pub fn new(encoder: &'a str) -> Self {
        Self { encoder, reference: None, most: MOST_BYTES }
    }
}

/// Makes a package of an encoder of the table with the weights of a file. What the network is fed and what is
/// taken from it comes from the table, not from `draft`. Every engine that is found has to give the same features;
/// f16 weights are held against the same weights in f32.
///
/// # Errors
/// [`FeatureError`]; nothing is written then.
pub fn convert(
    weights: &Path,
    Conversion { encoder, reference, most }: Conversion<'_>,
    out: &Path,
    draft: Draft,
    options: &EngineOptions,
) -> Result<Package, FeatureError> {
    // Before the weights are read, which takes minutes of a giant.
    package::free(out)?;
    let image = draft.image as i64;
    let network = EncoderConfig { image, ..EncoderConfig::new(encoder, 0) }.network()?;
    let image = network.image().unwrap_or(image);
    let Facts { mean, std, resize, interpolation, pooling, .. } =
        Facts::of_encoder(encoder, image as usize);
    let stated = published(encoder).and_then(|p| Mpp::new(p.mpp?).ok());
    let (mpp, resize) = (draft.mpp.or(stated), Some(resize));
    let width = network.dim() as usize;
    let fed = Draft { mean, std, resize, interpolation, pooling, mpp, ..draft };
    let architecture = network.architecture.into();
    let source = SourceCard { file: file_name(weights), sha256: digest(weights)? };
    let draft = Draft { architecture, image: image as usize, width: Some(width), source, ..fed };
    let tensors = foreign::whole(weights, &weights::read(weights, None)?, &network)?;
    let exported = |tensors: &Arrays, half: bool| {
        let options = ExportOptions { weights: WeightKind::halved(half), metadata: vec![] };
        onnx::embedding(&network, image, tensors, &options, most)
    };
    let failed =
        |e: ConvertError| FeatureError::Convert { path: weights.to_owned(), source: Box::new(e) };
    let whole = match reference {
        None if draft.half => {
            let (files, single) =
                (exported(&tensors, false)?, Draft { half: false, ..draft.clone() });
            Some(convert::features(files, &single, width, options).map_err(failed)?)
        }
        _ => None,
    };
    let onnx = exported(&tensors, draft.half)?;
    // The engines need the memory.
    drop(tensors);
    let by = whole.as_ref().map(|(engine, _)| format!("{engine} on the weights in f32"));
    let whole = whole.as_ref().zip(by.as_deref());
    let whole = whole.map(|((_, features), by)| Reference { by, features });
    let made = convert::exported(onnx, &draft, width, reference.or(whole), options);
    package::write(weights, made, out)
}

impl From<EncoderError> for FeatureError {
    fn from(e: EncoderError) -> Self {
        Self::Weights(Box::new(e))
    }
}
