//! Classifiers from published files of weights: an encoder of the table with the linear layer in its file (IMPaSh), or
//! with texts that describe the classes (CONCH, zero-shot). They are the tumour filters of the corpus.

use crate::error::FeatureError;
use crate::package::{self, digest, file_name, write_folder, write_parity};
use crate::prompts::{Outputs, Prompts, Tokens, vectors};
use crate::weights;
use base::digest::sha256;
use base::preset::Preset as _;
use base::text::Shown;
use encoders::encoder::{EncoderConfig, NetworkConfig, NetworkShape, fit};
use encoders::onnx::{self, ExportOptions, WeightKind};
use encoders::text::{TOWER, TextTower};
use encoders::weights::Arrays;
use encoders::{Array, foreign};
use infer::card::{ClassifierCard, Fit, ModelCard, ParityCard};
use infer::convert::{self, ConvertError, Reference};
use infer::{EngineOptions, ModelPackage};
use mitosis::Mpp;
use serde::Serialize;
use std::fmt;
use std::path::{Path, PathBuf};

/// Name of the scale of likenesses in files of images' and texts' encoders, as a logarithm.
const SCALE: &str = "logit_scale";
/// Name of the network in a package.
const FILE: &str = "classifier.onnx";

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
    /// [`FeatureError`] when the file is not valid.
    pub fn named(outputs: &Path) -> Result<Self, FeatureError> {
        let read = Outputs::load(outputs, &[])?;
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
    /// Content of its `card.toml`.
    pub card: ModelCard,
    /// The engine that the others are compared with.
    pub engine: String,
    /// Largest difference of a probability from that engine's: of another engine, of the weights in f32, or of
    /// libtorch on the weights.
    pub difference: f32,
    /// Each of them.
    pub parity: ParityCard,
}

impl fmt::Display for Made {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(c) = &self.card.classifier else { return Ok(()) };
        writeln!(f, "{}: {}, {} classes", self.card.name, c.architecture, c.classes.len())?;
        writeln!(f, "classes     {} (counts: {})", c.classes.join(", "), c.positive)?;
        writeln!(f, "crops       {} px at {}, resized to {} px", c.crop, c.mpp, c.input)?;
        writeln!(f, "licence     {}", self.card.license)?;
        write_parity(f, &self.parity, "probability")?;
        writeln!(f, "folder      {}", Shown(&self.folder))
    }
}

/// An encoder with its head, from a file of weights.
#[derive(Clone, Debug)]
pub struct Headed {
    /// The network with its head.
    pub network: NetworkConfig,
    /// Its tensors, by timm's names.
    pub tensors: Arrays,
    /// The encoder's name in the table.
    pub encoder: String,
    /// Side of its input, px.
    pub image: usize,
    weights: PathBuf,
    classes: Vec<String>,
    positive: String,
    /// What the card records of its making.
    notes: toml::Table,
}

impl Headed {
    /// Reads the encoder and makes its head. Texts become vectors on every engine that is found. `options` states
    /// threads and libraries.
    ///
    /// # Errors
    /// [`FeatureError`] when the file does not contain exactly these, or no engine runs its text tower.
    pub fn read(
        weights: &Path,
        encoder: &str,
        head: &Head,
        draft: &Draft,
        options: &EngineOptions,
    ) -> Result<Self, FeatureError> {
        // Before the weights are read, which takes minutes of a giant.
        onnx::check_size(encoder, WeightKind::halved(draft.half))?;
        let network = |classes: usize| {
            let config = EncoderConfig::new(encoder, classes as i64);
            EncoderConfig { image: draft.image as i64, ..config }.network()
        };
        let mut notes = toml::Table::new();
        let mut note = |key: &str, value: String| notes.insert(key.into(), value.into());
        note("source", file_name(weights));
        note("source_sha256", weights::digest(weights)?);
        let (network, tensors, classes, positive) = match head {
            Head::File { classes, positive } => {
                let network = network(classes.len())?;
                let file = encoders::weights::read(weights, None)?;
                let tensors = foreign::whole(weights, &file, &network)?;
                (network, tensors, classes.clone(), positive.clone())
            }
            Head::Texts { prompts, tokenizer } => {
                let read = Prompts::load(prompts, &[])?;
                let tokens = Tokens::open(tokenizer)?;
                let tensors = zero_shot(weights, &network(0)?, encoder, &read, &tokens, options)?;
                note("prompts", read.to_toml());
                note("tokenizer_sha256", digest(tokenizer)?);
                let classes: Vec<_> = read.classes.into_iter().map(|c| c.name).collect();
                (network(classes.len())?, tensors, classes, read.positive)
            }
        };
        let image = network.image().map_or(draft.image, |own| own as usize);
        let (weights, encoder) = (weights.to_owned(), encoder.to_owned());
        Ok(Self { network, tensors, encoder, image, weights, classes, positive, notes })
    }

    /// How crops become its input: a classifier sees its whole crop, at the size that its card states, whatever the
    /// encoder's makers do with pictures.
    #[must_use]
    pub fn fit(&self) -> Fit {
        Fit::whole(self.image, fit(&self.encoder, self.image).by)
    }

    /// Writes the package, once every engine that is found has given the same probabilities, and those of `reference`
    /// for [`convert::probes`]; without one, f16 weights are held against the same weights in f32.
    ///
    /// # Errors
    /// [`FeatureError`]; nothing is written then.
    pub fn write(
        self,
        out: &Path,
        draft: &Draft,
        reference: Option<Reference<'_>>,
        options: &EngineOptions,
    ) -> Result<Made, FeatureError> {
        package::free(out)?;
        let failed = |e: ConvertError| FeatureError::Convert {
            path: self.weights.clone(),
            source: Box::new(e),
        };
        let package = |half: bool| -> Result<_, FeatureError> {
            let weights = WeightKind::halved(half);
            let options = ExportOptions { weights, metadata: vec![] };
            let side = self.image as i64;
            let exported = onnx::classifier(&self.network, side, &self.tensors, &options)?;
            let onnx = exported.encoded(weights)?;
            let card = self.card(draft, sha256(&onnx));
            Ok((ModelPackage::of_one(&card, onnx.clone())?, onnx))
        };
        let mut whole = None;
        if reference.is_none() && draft.half {
            let (package, _) = package(false)?;
            let (parity, given) =
                convert::classifier(&package, None, false, options).map_err(failed)?;
            whole = Some((format!("{} on the weights in f32", parity.engines[0].engine), given));
        }
        let whole = whole.as_ref().map(|(by, features)| Reference { by, features });
        let (package, onnx) = package(draft.half)?;
        let reference = reference.or(whole);
        let (parity, _) =
            convert::classifier(&package, reference, draft.half, options).map_err(failed)?;
        write_folder(out, &package.card, std::iter::once((FILE, &onnx)))?;
        let differences = parity.engines.iter().map(|ran| ran.difference);
        let difference = differences.chain(parity.rounding).fold(0.0, f32::max);
        let (folder, card) = (out.to_owned(), package.card);
        let engine = parity.engines[0].engine.clone();
        Ok(Made { schema: "mithras.classifier/1", folder, card, engine, difference, parity })
    }

    fn card(&self, draft: &Draft, sha256: String) -> ModelCard {
        let fed = EncoderConfig::new(&self.encoder, 0);
        let classifier = ClassifierCard {
            file: FILE.into(),
            sha256,
            architecture: self.network.architecture.into(),
            mpp: draft.mpp,
            crop: draft.crop,
            input: self.image,
            interpolation: self.fit().by,
            mean: fed.mean,
            std: fed.std,
            classes: self.classes.clone(),
            positive: self.positive.clone(),
            outputs: vec![],
            scale: None,
            folds: vec![],
            symmetries: 1,
            symmetries_from: None,
            bf16: false,
            threshold: None,
        };
        ModelCard {
            classifier: Some(classifier),
            training: Some(self.notes.clone()),
            ..ModelCard::new(&draft.name, &draft.license)
        }
    }
}

/// Makes a classifier package of an encoder of the table and its head.
///
/// # Errors
/// [`FeatureError`]; nothing is written then.
pub fn classifier(
    weights: &Path,
    encoder: &str,
    head: &Head,
    out: &Path,
    draft: &Draft,
    options: &EngineOptions,
) -> Result<Made, FeatureError> {
    package::free(out)?;
    Headed::read(weights, encoder, head, draft, options)?.write(out, draft, None, options)
}

/// The tensors of an encoder with one output per class: the likeness of the image to the class's texts, by the same
/// file's text tower and scale. The texts of a class are averaged, as published.
fn zero_shot(
    weights: &Path,
    network: &NetworkConfig,
    encoder: &str,
    prompts: &Prompts,
    tokens: &Tokens,
    options: &EngineOptions,
) -> Result<Arrays, FeatureError> {
    let bad = |reason: String| FeatureError::head(weights, reason);
    let projected = match &network.shape {
        NetworkShape::Vit(vit) => vit.projection.is_some_and(|p| p.unit),
        _ => false,
    };
    if !projected {
        let reason = format!(
            "`{encoder}` gives no vectors to hold against texts; an encoder of images and texts does, as conch_v1_projected"
        );
        return Err(bad(reason));
    }
    let mut file = encoders::weights::read(weights, None)?;
    let scale = match file.remove(SCALE).map(|t| t.to_f64()).as_deref() {
        Some([scale]) => scale.exp(),
        _ => return Err(bad(format!("has no `{SCALE}`"))),
    };
    if !scale.is_finite() {
        return Err(bad(format!("`{SCALE}` is out of range")));
    }
    // What the images' encoder has nothing to do with, whatever the layout.
    let texts: Arrays = file.extract_if(.., |name, _| name.starts_with(TOWER)).collect();
    let tower = TextTower::open(weights, &texts)?;
    let (texts, images) = (tower.shape().output, network.dim());
    if texts != images {
        return Err(bad(format!("texts have {texts} numbers, images {images}")));
    }
    let mut tensors = foreign::whole(weights, &file, network)?;
    let of_classes = vectors(weights, &tower, prompts, tokens, options)?;
    let scaled: Vec<f32> = of_classes.iter().map(|v| (f64::from(*v) * scale) as f32).collect();
    let classes = prompts.classes.len() as i64;
    tensors.insert("head.weight".into(), Array::from_f32(vec![classes, images], &scaled));
    tensors
        .insert("head.bias".into(), Array::from_f32(vec![classes], &vec![0.0; classes as usize]));
    Ok(tensors)
}
