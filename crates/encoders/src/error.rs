//! What can go wrong in this crate.

use base::remedy::{Remedied, Remedy};
use std::path::{Path, PathBuf};

/// Result of this crate.
pub type Result<T> = std::result::Result<T, EncoderError>;

/// Errors with the file or name they belong to and what to do.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "fields whose names state what they are")]
pub enum EncoderError {
    /// A file could not be read or written.
    #[error("{path}: {source}")]
    Io {
        /// Path of the file.
        path: PathBuf,
        source: std::io::Error,
    },
    /// A file holds something else than asked for.
    #[error("{path}: {reason}; {remedy}")]
    File {
        /// Path of the file.
        path: PathBuf,
        reason: String,
        remedy: String,
    },
    /// Weights of others that are not the model's.
    #[error("{path}: {reason}{}", lines(problems))]
    Weights {
        /// Path of the file.
        path: PathBuf,
        reason: String,
        problems: Vec<String>,
        /// Whether a part could be taken.
        fits_in_part: bool,
    },
    /// A network whose ONNX file would be larger than such a file can be.
    #[error(
        "`{name}`: its ONNX file would have {:.1} GB with weights as {weights}, and {:.1} GB is the most; {}",
        *bytes as f64 / 1e9,
        *most as f64 / 1e9,
        if *halves { "take the precision f16" } else {
            "a classifier is one file, only an encoder without a head may be several"
        }
    )]
    TooLarge {
        name: String,
        /// What its weights take.
        bytes: u64,
        /// What a file may have.
        most: u64,
        /// As they are stored.
        weights: &'static str,
        /// Whether it would fit as f16.
        halves: bool,
    },
    /// A setting that has no meaning.
    #[error("`{key}`: {reason}")]
    Config {
        key: String,
        /// Why it cannot be.
        reason: String,
    },
}

impl EncoderError {
    /// Of a file that cannot be read or written.
    #[must_use]
    pub fn io(path: &Path, source: std::io::Error) -> Self {
        Self::Io { path: path.to_path_buf(), source }
    }

    /// Of what a file holds, and what to do.
    #[must_use]
    pub fn file(path: &Path, reason: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::File { path: path.to_path_buf(), reason: reason.into(), remedy: remedy.into() }
    }

    /// Of a setting.
    #[must_use]
    pub fn config(key: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Config { key: key.into(), reason: reason.into() }
    }
}

impl Remedied for EncoderError {
    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Weights { fits_in_part: true, .. } => Some(Remedy::PartialWeights),
            Self::TooLarge { halves: true, .. } => Some(Remedy::HalfPrecision),
            Self::Config { key, .. } if key == "name" => Some(Remedy::EncoderName),
            _ => None,
        }
    }
}

/// The first of a list, one on each line: a file of another network has hundreds.
fn lines(problems: &[String]) -> String {
    const SHOWN: usize = 40;
    let mut out: String = problems.iter().take(SHOWN).map(|p| format!("\n  {p}")).collect();
    if problems.len() > SHOWN {
        out.push_str(&format!("\n  ... and {} more", problems.len() - SHOWN));
    }
    out
}
