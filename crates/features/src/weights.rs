//! Encoders of the table from files of weights: what is known of them, and packages on disk and in memory, made
//! without a training framework.

use crate::encoder::Frozen;
use crate::error::FeatureError;
use crate::facts::{Facts, Listed};
use crate::package::{self, Package, file_name};
use crate::row::About;
use base::digest::sha256_files;
use encoders::encoder::{
    ENCODERS, EncoderConfig, EncoderEntry, NetworkConfig, NetworkShape, Published, fit, published,
};
use encoders::onnx::{self, ExportOptions, MOST_BYTES, WeightKind};
use encoders::weights::Arrays;
use encoders::{EncoderError, foreign, weights};
use infer::card::{Interpolation, SourceCard};
use infer::convert::{self, ConvertError, Converted, Draft, Reference};
use infer::{EngineOptions, ModelPackage, Precision};
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
    conversion: Conversion<'_>,
    out: &Path,
    draft: Draft,
    options: &EngineOptions,
) -> Result<Package, FeatureError> {
    // Before the weights are read, which takes minutes of a giant.
    package::free(out)?;
    let fed = Fed::of_row(conversion.encoder, draft.image)?;
    let draft = fed.draft(weights, digest(weights)?, draft);
    let tensors = foreign::whole(weights, &weights::read(weights, None)?, &fed.network)?;
    let made = fed.package(weights, tensors, conversion, &draft, options);
    package::write(made?, out)
}

/// A network and how it is fed.
#[derive(Clone, Debug)]
struct Fed {
    network: NetworkConfig,
    /// Side of its input, px.
    image: usize,
    facts: Facts,
    mpp: Option<Mpp>,
}

impl Fed {
    /// As the table has it.
    fn of_row(encoder: &str, image: usize) -> Result<Self, FeatureError> {
        let config = EncoderConfig { image: image as i64, ..EncoderConfig::new(encoder, 0) };
        let network = config.network()?;
        let image = network.image().map_or(image, |own| own as usize);
        let facts = Facts::of_encoder(encoder, image);
        let mpp = published(encoder).and_then(|p| Mpp::new(p.mpp?).ok());
        Ok(Self { network, image, facts, mpp })
    }

    /// As a checkpoint of this project describes itself, without its head. It was trained on whole crops, bilinear.
    fn of_checkpoint(weights: &Path, image: usize) -> Result<Self, FeatureError> {
        #[derive(serde::Deserialize)]
        struct Described {
            config: serde_json::Value,
            mean: [f32; 3],
            std: [f32; 3],
        }
        let none = || FeatureError::Unnamed(weights.to_owned());
        let unreadable = |e: serde_json::Error| {
            FeatureError::head(weights, format!("its description is unreadable ({e})"))
        };
        let text = weights::metadata(weights, "mithras")?.ok_or_else(none)?;
        let Described { config, mean, std } = serde_json::from_str(&text).map_err(unreadable)?;
        let config: EncoderConfig = serde_json::from_value(config).map_err(|e| {
            let reason = format!("describes no encoder ({e}); a segmenter has no features");
            FeatureError::head(weights, reason)
        })?;
        let pool = config.pool;
        let config =
            EncoderConfig { classes: 0, drop_path: 0.0, dropout: 0.0, mean, std, ..config };
        let network = config.network()?;
        let image = network.image().map_or(image, |own| own as usize);
        let row = Facts::of_encoder(&config.name, image);
        let pooling = match network.shape {
            NetworkShape::Vit(_) => pool.to_string(),
            _ => row.pooling,
        };
        let interpolation = Interpolation::Bilinear;
        let facts = Facts { mean, std, resize: image, interpolation, pooling, ..row };
        Ok(Self { network, image, facts, mpp: None })
    }

    /// By the encoder's name, or else as the file describes itself.
    fn choose(
        weights: &Path,
        name: Option<&str>,
        side: Option<usize>,
    ) -> Result<Self, FeatureError> {
        match name {
            Some(name) => Self::of_row(name, side.or_else(|| image(name)).unwrap_or(SIDE)),
            None => Self::of_checkpoint(weights, side.unwrap_or(SIDE)),
        }
    }

    /// `draft` with what is known of the network, of weights with this digest.
    fn draft(&self, weights: &Path, sha256: String, draft: Draft) -> Draft {
        let Facts { mean, std, resize, interpolation, pooling, .. } = self.facts.clone();
        Draft {
            architecture: self.network.architecture.into(),
            image: self.image,
            mean,
            std,
            resize: Some(resize),
            interpolation,
            pooling,
            mpp: draft.mpp.or(self.mpp),
            width: Some(self.network.dim() as usize),
            source: SourceCard { file: file_name(weights), sha256 },
            ..draft
        }
    }

    /// The package of the network with these tensors, timm's names, tried on every engine that is found.
    fn package(
        &self,
        weights: &Path,
        tensors: Arrays,
        conversion: Conversion<'_>,
        draft: &Draft,
        options: &EngineOptions,
    ) -> Result<Converted, FeatureError> {
        let Conversion { reference, most, .. } = conversion;
        let exported = |tensors: &Arrays, half: bool| {
            let options = ExportOptions { weights: WeightKind::halved(half), metadata: vec![] };
            onnx::embedding(&self.network, self.image as i64, tensors, &options, most)
        };
        let width = self.network.dim() as usize;
        let failed = |e: ConvertError| FeatureError::Convert {
            path: weights.to_owned(),
            source: Box::new(e),
        };
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
        convert::exported(onnx, draft, width, reference.or(whole), options).map_err(failed)
    }
}

/// Tensors under timm's names, of which a file does not have all.
#[derive(Clone, Debug)]
pub struct Drawn {
    /// All of them.
    pub tensors: Arrays,
    /// Names of those that are not in the file, separated by commas.
    pub random: String,
}

/// An encoder of a file of weights as a package in memory, as [`convert()`] makes it.
#[derive(Debug)]
pub struct Weights {
    package: ModelPackage,
    sha256: String,
    random: String,
}

impl Weights {
    /// `name` is the encoder's, of a file that does not describe it: a checkpoint of this project does. `side` is that
    /// of the input, px, for encoders that take any. `options` states threads and libraries.
    ///
    /// # Errors
    /// [`FeatureError`] when the file does not contain exactly the whole encoder (and perhaps a head), or does not
    /// name the encoder, and where engines disagree.
    pub fn open(
        weights: &Path,
        name: Option<&str>,
        side: Option<usize>,
        options: &EngineOptions,
    ) -> Result<Self, FeatureError> {
        let fed = Fed::choose(weights, name, side)?;
        let tensors = foreign::whole(weights, &weights::read(weights, None)?, &fed.network)?;
        Self::of_tensors(weights, &fed, Drawn { tensors, random: String::new() }, options)
    }

    /// The same of tensors that are not all in the file.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_drawn(
        weights: &Path,
        name: Option<&str>,
        side: Option<usize>,
        drawn: Drawn,
        options: &EngineOptions,
    ) -> Result<Self, FeatureError> {
        let fed = Fed::choose(weights, name, side)?;
        Self::of_tensors(weights, &fed, drawn, options)
    }

    fn of_tensors(
        weights: &Path,
        fed: &Fed,
        drawn: Drawn,
        options: &EngineOptions,
    ) -> Result<Self, FeatureError> {
        let Drawn { tensors, random } = drawn;
        let sha256 = digest(weights)?;
        let (name, license) = (fed.network.architecture.into(), "of the weights".into());
        let draft = Draft { name, license, ..Draft::default() };
        let draft = fed.draft(weights, sha256.clone(), draft);
        let (precision, classifier_batch) = (Precision::Auto, 0);
        let options = EngineOptions { precision, classifier_batch, ..options.clone() };
        let conversion = Conversion::new(fed.network.architecture);
        let made = fed.package(weights, tensors, conversion, &draft, &options)?;
        let package = ModelPackage::of_parts(&made.card, made.files)?;
        Ok(Self { package, sha256, random })
    }

    /// Names of the tensors that no file gave, separated by commas.
    #[must_use]
    pub fn random(&self) -> &str {
        &self.random
    }

    /// The encoder on the engine asked for. Its features are known by the digest of the file of weights.
    ///
    /// # Errors
    /// [`FeatureError`].
    pub fn start(&self, options: &EngineOptions) -> Result<Frozen, FeatureError> {
        let frozen = Frozen::start(&self.package, options)?;
        let (sha256, random) = (self.sha256.clone(), self.random.clone());
        let input = format!("{}: {}", frozen.about.encoder, frozen.about.input);
        let about = About { sha256, random, input, ..frozen.about };
        Ok(Frozen { about, by_weights: true, ..frozen })
    }
}

impl From<EncoderError> for FeatureError {
    fn from(e: EncoderError) -> Self {
        Self::Weights(Box::new(e))
    }
}
