//! Model packages: a card and its networks, from a folder or from the binary itself.

use crate::card::{CardError, ModelCard};
use base::digest::{sha256, sha256_parts};
use prost::bytes::Bytes;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

include!(concat!(env!("OUT_DIR"), "/bundled.rs"));

/// The bundled package that runs when none is named.
pub const DEFAULT: &str = "mithras-standard";

/// Where a program without weights of its own (feature `external-weights`) looks for those of the bundled
/// packages, from the folder above its own: one folder each, where no earlier one has the same file.
pub const WEIGHTS: &str = "share/mithras/models";

static WEIGHTS_IN: OnceLock<PathBuf> = OnceLock::new();

/// Reports where those files are, for what is not a program with a place of its own. The first call holds.
pub fn set_weights_folder(folder: PathBuf) {
    let _ = WEIGHTS_IN.set(folder);
}

/// A file of a bundled package that is not built in, by its place in the folder of weights.
fn external_weights(place: &str) -> Option<Bytes> {
    let folder = WEIGHTS_IN.get().cloned().or_else(|| {
        let program = std::env::current_exe().ok()?;
        Some(program.parent()?.parent()?.join(WEIGHTS))
    })?;
    base::file::read_whole(folder.join(place)).ok().map(Bytes::from)
}

/// What the origin of a bundled package begins with.
const BUNDLED_ORIGIN: &str = "bundled:";

/// Largest card, bytes.
const LARGEST_CARD: u64 = 16 << 20;

/// A network's bytes.
struct File {
    bytes: Bytes,
    /// Part of this binary: a test compares its digest with the card's, so that no start has to.
    built_in: bool,
}

impl File {
    fn read(bytes: impl Into<Bytes>) -> Self {
        Self { bytes: bytes.into(), built_in: false }
    }
}

/// A card with its networks, each equal to the card's SHA-256.
#[derive(Clone)]
pub struct ModelPackage {
    /// What the networks were trained for.
    pub card: ModelCard,
    /// Folder, or `bundled:<name>`.
    pub origin: String,
    pub(crate) segmenter: Option<Bytes>,
    pub(crate) classifier: Option<Bytes>,
    pub(crate) screen: Option<Bytes>,
    /// In the order in which they run; empty where absent.
    pub(crate) encoder: Vec<Bytes>,
}

impl std::fmt::Debug for ModelPackage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ModelPackage")
            .field("name", &self.card.name)
            .field("origin", &self.origin)
            .finish_non_exhaustive()
    }
}

/// Why a package cannot be used.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "fields whose names state what they are")]
pub enum PackageError {
    /// A file cannot be read.
    #[error("cannot read {path}: {source}", path = path.display())]
    Read { path: PathBuf, source: std::io::Error },
    /// The card is wrong.
    #[error("{origin}: {source}")]
    Card {
        /// Card file or `bundled:<name>`.
        origin: String,
        source: CardError,
    },
    /// A network is not the one that its card describes.
    #[error(
        "{origin}: SHA-256 of `{file}` is {actual}, its card states {expected}; \
         the file is damaged or belongs to another card; copy the package again if its source is whole"
    )]
    Digest { origin: String, file: String, expected: String, actual: String },
    /// Neither a folder with a card nor a bundled name.
    #[error(
        "no model `{name}`: this build bundles {known}, and no folder of that name holds a \
         card.toml; give a package folder"
    )]
    Unknown {
        /// What was asked for.
        name: String,
        known: String,
    },
    /// The card was built in, its weights were not.
    #[error(
        "this build carries the card of `{name}` but not its weights (`{file}`); \
         give a complete package folder if you have one, rebuild with the file in models/{name}/, or, of a wheel, \
         install it again"
    )]
    NoWeights { name: String, file: String },
}

impl ModelPackage {
    /// Opens a package folder (`card.toml` and the networks it names).
    ///
    /// # Errors
    /// [`PackageError`] when a file is missing, the card is wrong, or a digest differs.
    pub fn open(dir: &Path) -> Result<Self, PackageError> {
        let read = |path: PathBuf| {
            base::file::read_whole(&path).map_err(|source| PackageError::Read { path, source })
        };
        let path = dir.join("card.toml");
        let text = base::file::read(&path, LARGEST_CARD)
            .map_err(|e| PackageError::Read { path: e.path, source: e.source })?;
        let text = String::from_utf8_lossy(&text).into_owned();
        Self::assemble(&path.display().to_string(), &text, |file| {
            read(dir.join(file)).map(File::read)
        })
        .map(|p| Self { origin: dir.display().to_string(), ..p })
    }

    /// The package that runs when none is named: [`DEFAULT`].
    ///
    /// # Errors
    /// [`PackageError`] when this build carries no weights.
    pub fn bundled() -> Result<Self, PackageError> {
        Self::bundled_named(DEFAULT)
    }

    /// A package built into this binary, by its folder name in `models/`, with or without
    /// `mithras-` in front.
    ///
    /// # Errors
    /// [`PackageError::Unknown`] and [`PackageError::NoWeights`] when it is not built in.
    pub fn bundled_named(name: &str) -> Result<Self, PackageError> {
        let (_, files) = BUNDLED
            .iter()
            .find(|(n, _)| *n == name || n.strip_prefix("mithras-") == Some(name))
            .ok_or_else(|| PackageError::Unknown { name: name.into(), known: known() })?;
        let find = |file: &str| {
            let (_, place, built_in) = files.iter().find(|(f, ..)| *f == file)?;
            let built_in = built_in.map(|b| File { bytes: Bytes::from_static(b), built_in: true });
            built_in.or_else(|| external_weights(place).map(File::read))
        };
        let origin = format!("{BUNDLED_ORIGIN}{name}");
        let card = find("card.toml").map(|f| f.bytes).unwrap_or_default();
        let text = String::from_utf8_lossy(&card);
        Self::assemble(&origin, &text, |file| {
            find(file)
                .ok_or_else(|| PackageError::NoWeights { name: name.into(), file: file.into() })
        })
    }

    /// A package that is in no folder: a card with the bytes of its one network.
    ///
    /// # Errors
    /// [`PackageError`] when the card is wrong or the digest differs.
    pub fn of_one(card: &ModelCard, onnx: Vec<u8>) -> Result<Self, PackageError> {
        Self::of_parts(card, vec![onnx])
    }

    /// The same of a network in several files, in the order in which they run.
    ///
    /// # Errors
    /// As [`Self::of_one`].
    pub fn of_parts(card: &ModelCard, parts: Vec<Vec<u8>>) -> Result<Self, PackageError> {
        let origin = card.name.as_str();
        let text = card
            .to_toml()
            .map_err(|source| PackageError::Card { origin: origin.into(), source })?;
        let mut parts = parts.into_iter().map(File::read);
        Self::assemble(origin, &text, |file| {
            parts
                .next()
                .ok_or_else(|| PackageError::NoWeights { name: origin.into(), file: file.into() })
        })
    }

    /// Whether it belongs to this program.
    pub(crate) fn is_bundled(&self) -> bool {
        self.origin.starts_with(BUNDLED_ORIGIN)
    }

    /// Names of the packages built in.
    pub fn bundled_names() -> impl Iterator<Item = &'static str> {
        BUNDLED.iter().map(|(name, _)| *name)
    }

    /// What `--model` means: nothing, a folder with a card, or a bundled name.
    ///
    /// # Errors
    /// [`PackageError`].
    pub fn find(model: Option<&Path>) -> Result<Self, PackageError> {
        match model {
            None => Self::bundled(),
            Some(dir) if dir.is_dir() => Self::open(dir),
            Some(name) => Self::bundled_named(&name.to_string_lossy()),
        }
    }

    /// ONNX bytes of the segmenter.
    #[must_use]
    pub fn segmenter(&self) -> Option<&[u8]> {
        self.segmenter.as_deref()
    }

    /// ONNX bytes of the classifier.
    #[must_use]
    pub fn classifier(&self) -> Option<&[u8]> {
        self.classifier.as_deref()
    }

    /// ONNX bytes of the screen in front of the classifier.
    #[must_use]
    pub fn screen(&self) -> Option<&[u8]> {
        self.screen.as_deref()
    }

    /// The files of the package but its card, with their names.
    pub fn files(&self) -> impl Iterator<Item = (&str, &[u8])> {
        let c = &self.card;
        let single = [
            (c.segmenter.as_ref().map(|s| s.file.as_str()), self.segmenter()),
            (c.classifier.as_ref().map(|c| c.file.as_str()), self.classifier()),
            (c.screen.as_ref().map(|s| s.file.as_str()), self.screen()),
        ];
        let encoder = c.encoder.iter().flat_map(|e| e.files()).map(|(file, _)| file);
        single
            .into_iter()
            .filter_map(|(name, bytes)| name.zip(bytes))
            .chain(encoder.zip(self.encoder()))
    }

    /// ONNX bytes of the encoder's files, in the order in which they run; none without an encoder.
    pub fn encoder(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.encoder.iter().map(|part| &**part)
    }

    /// What features of the encoder are known by: the SHA-256 of its file; of several that of all, one
    /// after the other, as of `cat encoder.onnx encoder-2.onnx`. `None` without an encoder.
    #[must_use]
    pub fn encoder_sha256(&self) -> Option<String> {
        let card = self.card.encoder.as_ref()?;
        match self.encoder.len() {
            0 | 1 => Some(card.sha256.clone()),
            _ => Some(sha256_parts(self.encoder())),
        }
    }

    /// The same bytes, without a copy of them.
    pub(crate) fn into_encoder(self) -> Vec<Vec<u8>> {
        self.encoder.into_iter().map(Vec::from).collect()
    }

    fn assemble(
        origin: &str,
        card: &str,
        mut load: impl FnMut(&str) -> Result<File, PackageError>,
    ) -> Result<Self, PackageError> {
        let card = ModelCard::parse(card)
            .map_err(|source| PackageError::Card { origin: origin.into(), source })?;
        let mut network = |file: &str, expected: &str| {
            let File { bytes, built_in } = load(file)?;
            if built_in {
                return Ok(bytes);
            }
            let actual = sha256(&bytes);
            if actual == expected {
                Ok(bytes)
            } else {
                Err(PackageError::Digest {
                    origin: origin.into(),
                    file: file.into(),
                    expected: expected.into(),
                    actual,
                })
            }
        };
        let segmenter = card.segmenter.as_ref().map(|s| network(&s.file, &s.sha256)).transpose()?;
        let classifier =
            card.classifier.as_ref().map(|c| network(&c.file, &c.sha256)).transpose()?;
        let screen = card.screen.as_ref().map(|s| network(&s.file, &s.sha256)).transpose()?;
        let files = card.encoder.iter().flat_map(|e| e.files());
        let encoder =
            files.map(|(file, sha256)| network(file, sha256)).collect::<Result<_, _>>()?;
        Ok(Self { card, origin: origin.into(), segmenter, classifier, screen, encoder })
    }
}

fn known() -> String {
    let names: Vec<_> = ModelPackage::bundled_names().collect();
    if names.is_empty() { "no model".into() } else { names.join(", ") }
}
