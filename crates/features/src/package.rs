//! Encoders as packages: a folder with `encoder.onnx` and `card.toml`; of giants `encoder-2.onnx` and so on, too.

use crate::error::FeatureError;
use crate::facts::Facts;
use base::digest::{sha256, sha256_file};
use base::file;
use base::text::Shown;
use infer::card::{ParityCard, SourceCard};
use infer::convert::{self, Converted, Draft};
use infer::{EngineOptions, ModelCard, ModelPackage};
use serde::Serialize;
use std::fmt;
use std::path::{Path, PathBuf};

/// Name of a package's card.
pub(crate) const CARD: &str = "card.toml";

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
    /// Content of its `card.toml`.
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
            write_parity(f, p, "feature")?;
        }
        writeln!(f, "folder      {}", Shown(&self.folder))
    }
}

pub(crate) fn write_parity(f: &mut fmt::Formatter<'_>, p: &ParityCard, what: &str) -> fmt::Result {
    let largest = p.largest;
    for ran in &p.engines {
        let (engine, off) = (&ran.engine, ran.difference);
        writeln!(f, "runs on     {engine}, off by {off:.2e} of {largest:.3}")?;
    }
    if let Some(rounding) = p.rounding {
        writeln!(f, "rounding    f16 weights move a {what} by {rounding:.2e} at most")?;
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
    let failed = |e| FeatureError::Convert { path: onnx.to_owned(), source: Box::new(e) };
    write(made.map_err(failed)?, out)
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

pub(crate) fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

pub(crate) fn write(made: Converted, out: &Path) -> Result<Package, FeatureError> {
    let Converted { card, files } = made;
    let names = card.encoder()?.files().map(|(name, _)| name);
    write_folder(out, &card, names.zip(&files))?;
    Package::open(out)
}

/// Writes a folder of files and their card.
pub(crate) fn write_folder<'a>(
    out: &Path,
    card: &ModelCard,
    files: impl Iterator<Item = (&'a str, &'a Vec<u8>)>,
) -> Result<(), FeatureError> {
    std::fs::create_dir_all(out)
        .map_err(|source| FeatureError::Io { path: out.to_owned(), source })?;
    for (name, bytes) in files {
        file::write(&out.join(name), bytes)?;
    }
    // Last: a folder without a card is not a package.
    Ok(file::write(&out.join(CARD), card.to_toml()?.as_bytes())?)
}
