//! Encoders as packages: a folder with `encoder.onnx` and `card.toml`; of giants `encoder-2.onnx` and so on, too.

use crate::error::FeatureError;
use base::digest::{sha256, sha256_file};
use base::file;
use base::file::ReadError;
use base::text::Shown;
use infer::card::{EncoderCard, Interpolation, ParityCard, SourceCard};
use infer::convert::{self, ConvertError, Converted, Draft};
use infer::{EngineOptions, ModelCard, ModelPackage};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::{Path, PathBuf};

/// Name of a package's card.
const CARD: &str = "card.toml";

/// The encoders that a file of weights gives: the table of the crate `net`, which needs libtorch.
const KNOWN: &str = include_str!("encoders.json");

/// How an encoder is fed, and what its vector is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// Per-channel mean of the input in [0, 1].
    pub mean: [f32; 3],
    /// Per-channel standard deviation.
    pub std: [f32; 3],
    /// What an image's shorter side becomes before its middle is cut out, px.
    pub resize: usize,
    /// By which filter.
    pub interpolation: Interpolation,
    /// What the vector is, as text.
    pub pooling: String,
    /// How the tensors of files may be named that it is made of; of a package none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub layouts: Vec<String>,
}

/// An encoder in short.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// Its folder; `None` for one that needs a file of weights.
    #[serde(serialize_with = "base::json::lossy")]
    pub folder: Option<PathBuf>,
    /// Architecture.
    pub architecture: String,
    /// Numbers per vector.
    pub width: usize,
    /// Side of the input, px.
    pub input: usize,
    /// um/px that it was trained at.
    pub mpp: Option<f64>,
    /// Licence of the weights; `None` where they are missing.
    pub license: Option<String>,
    /// How it is fed.
    #[serde(flatten)]
    pub facts: Facts,
}

/// An encoder that needs a file of weights, in full.
#[derive(Clone, Debug, Serialize)]
pub struct Known {
    /// Version of this format.
    pub schema: &'static str,
    /// What is known of it.
    #[serde(flatten)]
    pub encoder: Listed,
}

impl Known {
    /// What is known of it.
    #[must_use]
    pub fn new(encoder: &Listed) -> Self {
        Self { schema: "mithras.encoder-known/1", encoder: encoder.clone() }
    }
}

impl fmt::Display for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Listed { name, input, width, mpp, facts, .. } = &self.encoder;
        writeln!(f, "{name}: {width} numbers, {}, from a file of weights", facts.pooling)?;
        let mpp = mpp.map_or_else(|| "no resolution stated".into(), |m| format!("{m} um/px"));
        writeln!(f, "input       {input} px, {mpp}")?;
        facts.fmt(f, *input)?;
        writeln!(f, "layouts     {}", facts.layouts.join(", "))
    }
}

impl Facts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>, input: usize) -> fmt::Result {
        let Self { mean, std, resize, interpolation, .. } = self;
        write!(f, "resized     {interpolation}, the shorter side to {resize} px")?;
        if *resize != input {
            write!(f, ", the middle {input} px of it")?;
        }
        writeln!(f, "; a square of {input} px as it is")?;
        writeln!(f, "normalised  mean {mean:?}, deviation {std:?}")
    }

    fn from_card(card: &EncoderCard) -> Self {
        let (fit, pooling) = (card.fit(), card.pooling.clone());
        let (mean, std, layouts) = (card.mean, card.std, vec![]);
        Self { mean, std, resize: fit.resize, interpolation: fit.by, pooling, layouts }
    }
}

/// What there is.
#[derive(Clone, Debug, Serialize)]
pub struct Listing {
    /// Version of this format.
    pub schema: &'static str,
    /// Packages of encoders.
    pub packages: Vec<Listed>,
    /// Encoders that the training build makes of a file of weights.
    pub known: Vec<Listed>,
    /// Cards that cannot be read.
    pub broken: Vec<String>,
}

impl Listing {
    /// Packages in `folder` and in the folders in it, and what is [`known`]. Digests are not checked.
    ///
    /// # Errors
    /// [`FeatureError::Io`] when the folder cannot be listed.
    pub fn read(folder: &Path) -> Result<Self, FeatureError> {
        let fail = |e: ReadError| FeatureError::Io { path: e.path, source: e.source };
        let mut folders = vec![folder.to_owned()];
        folders.extend(base::walk::entries(folder).map_err(fail)?);
        let (mut packages, mut broken) = (Vec::new(), Vec::new());
        for folder in folders {
            let path = folder.join(CARD);
            let Ok(text) = file::read_string(&path) else { continue };
            match ModelCard::parse(&text) {
                Ok(card) => packages.extend(Listed::from_card(&card, &folder)),
                Err(e) => broken.push(format!("{}: {e}", path.display())),
            }
        }
        Ok(Self { schema: "mithras.encoders/1", packages, known: known(), broken })
    }
}

/// The encoders that the training build makes of a file of weights.
///
/// # Panics
/// Never: the list is part of the program, and tests read it.
#[must_use]
pub fn known() -> Vec<Listed> {
    serde_json::from_str(KNOWN).expect("tests read the list")
}

impl Listed {
    fn from_card(card: &ModelCard, folder: &Path) -> Option<Self> {
        let e = card.encoder.as_ref()?;
        Some(Self {
            name: card.name.clone(),
            folder: Some(folder.to_owned()),
            architecture: e.architecture.clone(),
            width: e.width,
            input: e.input,
            mpp: e.mpp.map(mitosis::Mpp::get),
            license: Some(card.license.clone()),
            facts: Facts::from_card(e),
        })
    }
}

impl fmt::Display for Listed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<28} {:>5} numbers, {} px", self.name, self.width, self.input)?;
        if let Some(mpp) = self.mpp {
            write!(f, " at {mpp} um/px")?;
        }
        match &self.folder {
            Some(folder) => writeln!(f, ", {}, {}", self.architecture, Shown(folder)),
            None => writeln!(f, ", from a file of weights"),
        }
    }
}

impl fmt::Display for Listing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.packages.is_empty() {
            writeln!(f, "no package of an encoder here")?;
        }
        self.packages.iter().chain(&self.known).try_for_each(|l| write!(f, "{l}"))?;
        self.broken.iter().try_for_each(|b| writeln!(f, "not read: {b}"))
    }
}

/// A package on disk, checked.
#[derive(Clone, Debug, Serialize)]
pub struct Package {
    /// Version of this format.
    pub schema: &'static str,
    /// Its folder.
    #[serde(serialize_with = "base::json::lossy")]
    pub folder: PathBuf,
    /// Bytes of the network, of all its files.
    pub bytes: usize,
    /// Its card.
    pub card: ModelCard,
}

impl Package {
    /// Reads a package and checks its digests.
    ///
    /// # Errors
    /// [`FeatureError`].
    pub fn open(folder: &Path) -> Result<Self, FeatureError> {
        let package = ModelPackage::open(folder)?;
        package.card.encoder()?;
        let bytes = package.encoder().map(<[u8]>::len).sum();
        let card = package.card;
        Ok(Self { schema: "mithras.encoder/1", folder: folder.to_owned(), bytes, card })
    }
}

impl fmt::Display for Package {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Ok(e) = self.card.encoder() else { return Ok(()) };
        writeln!(f, "{}: {}, {} numbers, {}", self.card.name, e.architecture, e.width, e.pooling)?;
        let mpp = e.mpp.map_or_else(|| "no resolution stated".into(), |m| m.to_string());
        writeln!(f, "input       {} px, {mpp}", e.input)?;
        Facts::from_card(e).fmt(f, e.input)?;
        writeln!(f, "licence     {}", self.card.license)?;
        writeln!(f, "source      {}, SHA-256 {}", e.source.file, e.source.sha256)?;
        match e.rest.len() {
            0 => writeln!(f, "network     {} bytes, SHA-256 {}", self.bytes, e.sha256)?,
            n => writeln!(f, "network     {} bytes in {} files", self.bytes, n + 1)?,
        }
        for (file, sha256) in e.files().filter(|_| !e.rest.is_empty()) {
            writeln!(f, "            {file}, SHA-256 {sha256}")?;
        }
        if let Some(p) = &e.parity {
            write_parity(f, p)?;
        }
        writeln!(f, "folder      {}", Shown(&self.folder))
    }
}

fn write_parity(f: &mut fmt::Formatter<'_>, p: &ParityCard) -> fmt::Result {
    let largest = p.largest;
    for ran in &p.engines {
        let (engine, off) = (&ran.engine, ran.difference);
        writeln!(f, "runs on     {engine}, off by {off:.2e} of {largest:.3}")?;
    }
    if let Some(rounding) = p.rounding {
        writeln!(f, "rounding    f16 weights move a feature by {rounding:.2e} at most")?;
    }
    p.refused.iter().try_for_each(|r| writeln!(f, "not on      {r}"))
}

/// Makes a package of an ONNX file: tried on every available engine, then written. The source of
/// `draft` becomes the file.
///
/// # Errors
/// [`FeatureError::Exists`], or [`FeatureError::Convert`] with the reason.
pub fn convert(
    onnx: &Path,
    out: &Path,
    mut draft: Draft,
    options: &EngineOptions,
) -> Result<Package, FeatureError> {
    free(out)?;
    let bytes =
        file::read_whole(onnx).map_err(|source| FeatureError::Io { path: onnx.into(), source })?;
    draft.source = SourceCard { file: file_name(onnx), sha256: sha256(&bytes) };
    let made = convert::convert(&bytes, &draft, None, options);
    drop(bytes);
    write(onnx, made, out)
}

/// A network that was exported from a file of weights.
pub struct Exported<'a> {
    /// The weights.
    pub weights: &'a Path,
    /// SHA-256 of all their files.
    pub sha256: String,
    /// The files that run one after the other.
    pub onnx: Vec<Vec<u8>>,
    /// Features of [`infer::convert::probes`] by the weights.
    pub features: &'a [f32],
}

/// Makes a package of a network that was exported from a file of weights.
///
/// # Errors
/// As [`convert()`].
pub fn convert_weights(
    Exported { weights, sha256, onnx, features }: Exported<'_>,
    out: &Path,
    mut draft: Draft,
    options: &EngineOptions,
) -> Result<Package, FeatureError> {
    free(out)?;
    draft.source = SourceCard { file: file_name(weights), sha256 };
    write(weights, convert::exported(onnx, &draft, features, options), out)
}

/// SHA-256 of a file.
///
/// # Errors
/// [`FeatureError::Io`].
pub fn digest(path: &Path) -> Result<String, FeatureError> {
    let (_, digest) = sha256_file(path)
        .map_err(|e| FeatureError::Io { path: e.path.clone(), source: e.source })?;
    Ok(digest)
}

/// Checks that the folder has no package yet.
///
/// # Errors
/// [`FeatureError::Exists`].
pub fn free(out: &Path) -> Result<(), FeatureError> {
    match out.join(CARD).exists() {
        true => Err(FeatureError::Exists(out.to_owned())),
        false => Ok(()),
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn write(
    from: &Path,
    made: Result<Converted, ConvertError>,
    out: &Path,
) -> Result<Package, FeatureError> {
    let failed = |e| FeatureError::Convert { path: from.to_owned(), source: Box::new(e) };
    let Converted { card, files } = made.map_err(failed)?;
    std::fs::create_dir_all(out)
        .map_err(|source| FeatureError::Io { path: out.to_owned(), source })?;
    for ((name, _), bytes) in card.encoder()?.files().zip(files) {
        file::write(&out.join(name), &bytes)?;
    }
    // Last: a folder without a card is not a package.
    file::write(&out.join(CARD), card.to_toml()?.as_bytes())?;
    Package::open(out)
}
