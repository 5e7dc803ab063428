//! Every byte of a dataset read and compared with what its manifest says.

use crate::error::CorpusError;
use crate::reader::Corpus;
use crate::regions::{Dataset, RegionsError};
use serde::Serialize;
use std::fmt;
use std::path::Path;

/// A dataset that holds.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Verified {
    /// Images with labels.
    Regions {
        /// Always true.
        verified: bool,
        /// Images.
        images: usize,
        /// The dataset's digest.
        digest: String,
    },
    /// Crops in shards.
    Crops {
        /// Always true.
        verified: bool,
        /// Crops.
        crops: u64,
        /// Shards.
        shards: usize,
        /// The dataset's digest.
        digest: String,
    },
}

/// Why a dataset does not hold.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// Images with labels.
    #[error(transparent)]
    Regions(#[from] RegionsError),
    /// Crops.
    #[error(transparent)]
    Corpus(#[from] CorpusError),
}

/// Reads every byte of a dataset of either kind.
///
/// # Errors
/// [`VerifyError`]: the first difference, with its file.
pub fn verify(path: &Path) -> Result<Verified, VerifyError> {
    if Dataset::is_at(path) {
        let set = Dataset::open(path)?;
        set.verify()?;
        let (images, digest) = (set.images().len(), set.digest().to_owned());
        return Ok(Verified::Regions { verified: true, images, digest });
    }
    let corpus = Corpus::open(path)?;
    corpus.verify()?;
    let m = corpus.manifest();
    let (crops, shards, digest) = (m.counts.crops, m.shards.len(), m.digest.clone());
    Ok(Verified::Crops { verified: true, crops, shards, digest })
}

impl fmt::Display for Verified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Regions { images, digest, .. } => {
                writeln!(f, "{images} images hold\ndigest {digest}")
            }
            Self::Crops { crops, shards, digest, .. } => {
                writeln!(f, "{crops} crops in {shards} shards hold\ndigest {digest}")
            }
        }
    }
}
