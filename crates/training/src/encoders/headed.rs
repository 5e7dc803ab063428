//! Classifiers from published files of weights: the tumour filters of the corpus.

use super::weights::WeightsError;
use base::digest::sha256;
use base::file;
use base::text::Shown;
use features::{FeatureError, package};
use infer::card::{ClassifierCard, ModelCard, SCHEMA};
use infer::convert::probes;
use infer::{EngineOptions, ModelPackage};
use mitosis::Mpp;
use net::encoder::EncoderConfig;
use serde::Serialize;
use std::fmt;
use std::path::{Path, PathBuf};
use train::headed::Headed;
use train::preset::Preset as _;
use train::prompts::{Outputs, Prompts, Tokens};

/// Largest difference of a probability between the weights and the package, with f32 and f16 weights.
const TOLERANCE: [f32; 2] = [1e-4, 1e-2];

/// What separates the classes.
#[derive(Clone, Debug)]
pub enum Head {
    /// The linear layer in the file; the classes in its order, and the one that counts.
    File {
        /// Their names.
        classes: Vec<String>,
        /// One of them.
        positive: String,
    },
    /// Texts that describe the classes (zero-shot).
    Texts {
        /// A file of [`Prompts`].
        prompts: PathBuf,
        /// `tokenizer.json` of the text tower.
        tokenizer: PathBuf,
    },
}

impl Head {
    /// The linear layer in the file, its outputs named by a file of [`Outputs`].
    ///
    /// # Errors
    /// [`WeightsError`] when the file is not valid.
    pub fn named(outputs: &Path) -> Result<Self, WeightsError> {
        let read = Outputs::load(outputs, &[]).map_err(train::TrainError::from)?;
        Ok(Self::File { classes: read.classes, positive: read.positive })
    }
}

/// What the file does not contain about itself.
#[derive(Clone, Debug)]
pub struct Draft {
    /// Name of the package.
    pub name: String,
    /// Licence of the weights.
    pub license: String,
    /// um/px of the crops.
    pub mpp: Mpp,
    /// Side of the crops, px.
    pub crop: usize,
    /// Side of the network's input, px.
    pub image: usize,
    /// Whether large weights are stored as f16.
    pub half: bool,
}

/// A classifier package that was made.
#[derive(Clone, Debug, Serialize)]
pub struct Made {
    /// Version of this format.
    pub schema: &'static str,
    /// Its folder.
    #[serde(serialize_with = "base::json::lossy")]
    pub folder: PathBuf,
    /// Its card.
    pub card: ModelCard,
    /// The engine that it was tried on.
    pub engine: String,
    /// Largest difference of a probability from libtorch on the weights.
    pub difference: f32,
}

impl fmt::Display for Made {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(c) = &self.card.classifier else { return Ok(()) };
        writeln!(f, "{}: {}, {} classes", self.card.name, c.architecture, c.classes.len())?;
        writeln!(f, "classes     {} (counts: {})", c.classes.join(", "), c.positive)?;
        writeln!(f, "crops       {} px at {}, resized to {} px", c.crop, c.mpp, c.input)?;
        writeln!(f, "licence     {}", self.card.license)?;
        writeln!(f, "runs on     {}, a probability off by {:.1e}", self.engine, self.difference)?;
        writeln!(f, "folder      {}", Shown(&self.folder))
    }
}

/// Makes a classifier package of an encoder of the table and its head, tried against the weights
/// before it is written.
///
/// # Errors
/// [`WeightsError`]; nothing is written then.
pub fn classifier(
    weights: &Path,
    encoder: &str,
    head: &Head,
    out: &Path,
    draft: Draft,
    options: &EngineOptions,
) -> Result<Made, WeightsError> {
    if out.join("card.toml").exists() {
        return Err(FeatureError::Exists(out.to_owned()).into());
    }
    let size = net::onnx::check_size(encoder, net::onnx::WeightKind::halved(draft.half));
    size.map_err(FeatureError::from)?;
    let image = draft.image as i64;
    let mut training = toml::Table::new();
    let mut note = |key: &str, value: String| training.insert(key.into(), value.into());
    note("source", weights.file_name().unwrap_or_default().to_string_lossy().into_owned());
    note("source_sha256", features::weights::digest(weights)?);
    let (net, classes, positive) = match head {
        Head::File { classes, positive } => {
            let net = Headed::open(weights, encoder, image, classes.len())?;
            (net, classes.clone(), positive.clone())
        }
        Head::Texts { prompts, tokenizer } => {
            let read = Prompts::load(prompts, &[]).map_err(train::TrainError::from)?;
            let tokens = Tokens::open(tokenizer)?;
            let net = Headed::zero_shot(weights, encoder, image, &read, &tokens)?;
            note("prompts", read.to_toml());
            note("tokenizer_sha256", package::digest(tokenizer)?);
            (net, read.classes.iter().map(|c| c.name.clone()).collect(), read.positive)
        }
    };
    let onnx = net.onnx(draft.half)?;
    let fed = EncoderConfig::new(encoder, 0);
    let card = ModelCard {
        schema: SCHEMA,
        name: draft.name,
        license: draft.license,
        segmenter: None,
        candidates: None,
        classifier: Some(ClassifierCard {
            file: "classifier.onnx".into(),
            sha256: sha256(&onnx),
            architecture: net.architecture().into(),
            mpp: draft.mpp,
            crop: draft.crop,
            input: net.side(),
            interpolation: net.fit().by,
            mean: fed.mean,
            std: fed.std,
            classes,
            positive,
            outputs: vec![],
            scale: None,
            folds: vec![],
            symmetries: 1,
            symmetries_from: None,
            bf16: false,
            threshold: None,
        }),
        screen: None,
        encoder: None,
        operating_point: None,
        segmentation_point: None,
        operating_points: Default::default(),
        resolution: None,
        training: Some(training),
        results: None,
    };
    let package = ModelPackage::of_one(&card, onnx.clone()).map_err(FeatureError::from)?;
    let (engine, difference) = tried(&package, &net, options)?;
    let allowed = TOLERANCE[usize::from(draft.half)];
    if difference.is_nan() || difference > allowed {
        return Err(WeightsError::Parity { path: weights.to_owned(), engine, difference, allowed });
    }
    std::fs::create_dir_all(out)
        .map_err(|source| FeatureError::Io { path: out.to_owned(), source })?;
    let write = |name: &str, bytes: &[u8]| file::write(&out.join(name), bytes);
    write("classifier.onnx", &onnx).map_err(FeatureError::from)?;
    // Last: a folder without a card is not a package.
    write("card.toml", card.to_toml().map_err(FeatureError::from)?.as_bytes())
        .map_err(FeatureError::from)?;
    let folder = out.to_owned();
    Ok(Made { schema: "mithras.classifier/1", folder, card, engine, difference })
}

/// The engine that runs the package, and how far its probabilities are from those of the weights.
fn tried(
    package: &ModelPackage,
    net: &Headed,
    options: &EngineOptions,
) -> Result<(String, f32), WeightsError> {
    let mut models = infer::open(package, options).map_err(FeatureError::from)?;
    let engine = format!("{} {}", models.report.engine, models.report.version);
    let classifier = models.classifier.as_mut().expect("a package of one");
    // At the input's own size: how a crop is resized is not the weights' affair.
    let probes = probes(net.side());
    let given = classifier.classes(&probes).map_err(FeatureError::from)?;
    let given = given.iter().flat_map(|p| p.0.iter().copied());
    let farthest = |most: f32, (a, b): (f32, f32)| {
        if (a - b).abs() > most || b.is_nan() { (a - b).abs() } else { most }
    };
    Ok((engine, given.zip(net.probabilities(&probes)).fold(0.0, farthest)))
}
