//! The part of a card that describes a frozen encoder.

use super::check::{CardError, ensure, file, network};
use mitosis::Mpp;
pub use pixels::resize::{Fit, Interpolation};
use serde::{Deserialize, Serialize};

/// An encoder: input `image` f32 `[N,3,input,input]`, output `embedding` f32 `[N,width]`, pooled
/// inside. One that is too large for a file of ONNX is in several, run one after the other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EncoderCard {
    /// File name inside the package.
    pub file: String,
    /// SHA-256 of that file, 64 lower-case hex digits.
    pub sha256: String,
    /// Of a network in several files: those that run after it, in this order. Each takes the one value
    /// that the one before gives; the last gives `embedding`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rest: Vec<FileCard>,
    /// Architecture, e.g. `vit_small_patch16_224`.
    pub architecture: String,
    /// Resolution that it was trained at, um/px, where its makers state one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mpp: Option<Mpp>,
    /// Side of the network's input, px.
    pub input: usize,
    /// What a tile's shorter side becomes before its middle is cut out ([`pixels::resize::Fit`]), px;
    /// absent: `input`, so that nothing of a square is cut off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resize: Option<usize>,
    /// Filter by which tiles are resized to `resize`.
    pub interpolation: Interpolation,
    /// Per-channel mean of the input in [0, 1] (R, G, B).
    pub mean: [f32; 3],
    /// Per-channel standard deviation, > 0.
    pub std: [f32; 3],
    /// What the vector is, e.g. `class token`.
    pub pooling: String,
    /// Numbers per vector.
    pub width: usize,
    /// The file that the network was made from.
    pub source: SourceCard,
    /// How far the engines agree on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parity: Option<ParityCard>,
}

/// A file of a network that is in several.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileCard {
    /// File name inside the package.
    pub file: String,
    /// SHA-256 of that file, 64 lower-case hex digits.
    pub sha256: String,
}

/// The file that a network was made from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceCard {
    /// Its name, without its folder.
    pub file: String,
    /// Its SHA-256, 64 lower-case hex digits.
    pub sha256: String,
}

/// How far the engines agree, on fixed images, when the package was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ParityCard {
    /// Largest magnitude of a feature.
    pub largest: f32,
    /// The engines that ran, the first being the one that the others are measured against.
    pub engines: Vec<RanOn>,
    /// Engines that are there and cannot run it, with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<String>,
    /// Largest difference that storing weights as f16 makes; absent where they are as given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounding: Option<f32>,
}

/// One engine's run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RanOn {
    /// Engine and version.
    pub engine: String,
    /// Largest difference of a feature from the first engine's.
    pub difference: f32,
}

/// Widest vector that is read.
const WIDEST: usize = 1 << 16;
/// Most files of one network.
const MOST_FILES: usize = 64;

impl EncoderCard {
    /// How a tile becomes the input.
    #[must_use]
    pub fn fit(&self) -> Fit {
        let (input, resize) = (self.input, self.resize.unwrap_or(self.input));
        Fit { input, resize, by: self.interpolation }
    }

    /// Its files with their SHA-256, in the order in which they run.
    pub fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        let rest = self.rest.iter().map(|f| (&*f.file, &*f.sha256));
        std::iter::once((&*self.file, &*self.sha256)).chain(rest)
    }

    /// Checks every value.
    ///
    /// # Errors
    /// [`CardError::Value`] with the dotted key of the first bad one.
    pub(super) fn check(&self) -> Result<(), CardError> {
        network("encoder", &self.file, &self.sha256, self.mean, self.std)?;
        ensure(self.rest.len() < MOST_FILES, "encoder.rest", || {
            format!("{} files, more than {MOST_FILES}", self.rest.len() + 1)
        })?;
        for (i, part) in self.rest.iter().enumerate() {
            let key = format!("encoder.rest[{i}]");
            file(&key, &part.file, &part.sha256)?;
            ensure(self.files().take(i + 1).all(|(name, _)| name != part.file), &key, || {
                format!("`{}` is repeated", part.file)
            })?;
        }
        let source = "encoder.source";
        network(source, &self.source.file, &self.source.sha256, self.mean, self.std)?;
        for (key, text) in
            [("encoder.architecture", &self.architecture), ("encoder.pooling", &self.pooling)]
        {
            ensure(!text.trim().is_empty(), key, || "is empty".into())?;
        }
        ensure((8..=4096).contains(&self.input), "encoder.input", || {
            format!("{} px is outside 8 to 4096", self.input)
        })?;
        let resize = self.resize.unwrap_or(self.input);
        ensure((self.input..=8192).contains(&resize), "encoder.resize", || {
            format!("{resize} px is outside the input's {} to 8192", self.input)
        })?;
        ensure((1..=WIDEST).contains(&self.width), "encoder.width", || {
            format!("{} is outside 1 to {WIDEST}", self.width)
        })
    }
}
