//! Encoders as packages: a folder with `encoder.onnx` and `card.toml`.

use crate::error::FeatureError;
use artifact::digest::{sha256, sha256_file};
use artifact::file;
use infer::card::{ParityCard, SourceCard};
use infer::convert::{self, Converted, Draft};
use infer::{EngineOptions, ModelCard, ModelPackage};
use mitosis::text::Shown;
use serde::Serialize;
use std::fmt;
use std::path::{Path, PathBuf};

/// Name of a package's card.
const CARD: &str = "card.toml";

/// An encoder in short.
#[derive(Clone, Debug, Serialize)]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// Its folder; `None` for one that needs a file of weights.
    pub folder: Option<PathBuf>,
    /// Architecture.
    pub architecture: String,
    /// Numbers per vector.
    pub width: usize,
    /// Side of the input, px.
    pub input: Option<usize>,
    /// um/px that it was trained at.
    pub mpp: Option<f64>,
    /// Licence of the weights.
    pub license: Option<String>,
}

/// What there is.
#[derive(Clone, Debug, Serialize)]
pub struct Listing {
    /// Version of this format.
    pub schema: &'static str,
    /// Packages of encoders.
    pub packages: Vec<Listed>,
    /// Encoders that this build makes of a file of weights.
    pub known: Vec<Listed>,
    /// Cards that cannot be read.
    pub broken: Vec<String>,
}

impl Listing {
    /// Packages in `folder` and in the folders in it; `known` are the encoders of the build. Digests
    /// are not checked.
    ///
    /// # Errors
    /// [`FeatureError::Io`] when the folder cannot be listed.
    pub fn of(folder: &Path, known: Vec<Listed>) -> Result<Self, FeatureError> {
        let fail = |source| FeatureError::Io { path: folder.to_owned(), source };
        let mut folders = vec![folder.to_owned()];
        for entry in std::fs::read_dir(folder).map_err(fail)? {
            folders.push(entry.map_err(fail)?.path());
        }
        folders.sort();
        let (mut packages, mut broken) = (Vec::new(), Vec::new());
        for folder in folders {
            let path = folder.join(CARD);
            let Ok(text) = std::fs::read_to_string(&path) else { continue };
            match ModelCard::parse(&text) {
                Ok(card) => packages.extend(Listed::of(&card, &folder)),
                Err(e) => broken.push(format!("{}: {e}", path.display())),
            }
        }
        Ok(Self { schema: "mithras.encoders/1", packages, known, broken })
    }
}

impl Listed {
    fn of(card: &ModelCard, folder: &Path) -> Option<Self> {
        let e = card.encoder.as_ref()?;
        Some(Self {
            name: card.name.clone(),
            folder: Some(folder.to_owned()),
            architecture: e.architecture.clone(),
            width: e.width,
            input: Some(e.input),
            mpp: e.mpp.map(mitosis::Mpp::get),
            license: Some(card.license.clone()),
        })
    }

    /// An encoder that needs a file of weights.
    #[must_use]
    pub fn known(name: &str, width: usize) -> Self {
        Self {
            name: name.into(),
            folder: None,
            architecture: name.into(),
            width,
            input: None,
            mpp: None,
            license: None,
        }
    }
}

impl fmt::Display for Listed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<28} {:>5} numbers", self.name, self.width)?;
        if let Some(px) = self.input {
            write!(f, ", {px} px")?;
        }
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

/// A package as it lies on disk, checked.
#[derive(Clone, Debug, Serialize)]
pub struct Package {
    /// Version of this format.
    pub schema: &'static str,
    /// Its folder.
    pub folder: PathBuf,
    /// Bytes of the network.
    pub bytes: usize,
    /// Its card.
    pub card: ModelCard,
}

impl Package {
    /// Reads a package and checks its digest.
    ///
    /// # Errors
    /// [`FeatureError`].
    pub fn open(folder: &Path) -> Result<Self, FeatureError> {
        let package = ModelPackage::open(folder)?;
        package.card.encoder()?;
        let bytes = package.encoder().map_or(0, <[u8]>::len);
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
        writeln!(f, "normalised  mean {:?}, deviation {:?}", e.mean, e.std)?;
        writeln!(f, "licence     {}", self.card.license)?;
        writeln!(f, "source      {}, SHA-256 {}", e.source.file, e.source.sha256)?;
        writeln!(f, "network     {} bytes, SHA-256 {}", self.bytes, e.sha256)?;
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

/// Makes a package of an ONNX file: tried on every engine at hand, then written. The source of
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
        std::fs::read(onnx).map_err(|source| FeatureError::Io { path: onnx.into(), source })?;
    draft.source = SourceCard { file: file_name(onnx), sha256: sha256(&bytes) };
    write(onnx, &bytes, out, &draft, None, options)
}

/// Makes a package of a network that was exported from a file of weights, with the features of
/// [`infer::convert::probes`] by those weights.
///
/// # Errors
/// As [`convert()`].
pub fn convert_weights(
    weights: &Path,
    (onnx, features): (&[u8], &[f32]),
    out: &Path,
    mut draft: Draft,
    options: &EngineOptions,
) -> Result<Package, FeatureError> {
    free(out)?;
    draft.source = SourceCard { file: file_name(weights), sha256: digest(weights)? };
    write(weights, onnx, out, &draft, Some(features), options)
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

fn free(out: &Path) -> Result<(), FeatureError> {
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
    onnx: &[u8],
    out: &Path,
    draft: &Draft,
    reference: Option<&[f32]>,
    options: &EngineOptions,
) -> Result<Package, FeatureError> {
    let failed = |e| FeatureError::Convert { path: from.to_owned(), source: Box::new(e) };
    let Converted { card, onnx } =
        convert::convert(onnx, draft, reference, options).map_err(failed)?;
    std::fs::create_dir_all(out)
        .map_err(|source| FeatureError::Io { path: out.to_owned(), source })?;
    file::write(&out.join(convert::FILE), &onnx)?;
    // Last: a folder without a card is no package.
    file::write(&out.join(CARD), card.to_toml()?.as_bytes())?;
    Package::open(out)
}
