//! Whether the files of a dataset match its digests.

use base::remedy::{Remedied, Remedy};
use base::text::Many;
use crops::{Corpus, CorpusError};
use regions::{Dataset, RegionsError};
use serde::Serialize;
use std::fmt;
use std::path::Path;

/// A dataset that does not hold.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// Of crops.
    #[error(transparent)]
    Crops(#[from] CorpusError),
    /// Of regions.
    #[error(transparent)]
    Regions(#[from] RegionsError),
}

/// A dataset that holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verified {
    verified: bool,
    #[serde(flatten)]
    items: Items,
    digest: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
enum Items {
    Regions { images: usize },
    Crops { crops: u64, shards: usize },
}

/// Reads every byte of a dataset of crops or regions: checksums, digests, counts.
///
/// # Errors
/// [`VerifyError`] naming what does not hold.
pub fn verify(dataset: &Path) -> Result<Verified, VerifyError> {
    let (items, digest) = if Dataset::is_dataset(dataset) {
        let set = Dataset::open(dataset)?;
        set.verify()?;
        (Items::Regions { images: set.images().len() }, set.digest().to_owned())
    } else {
        let corpus = Corpus::open(dataset)?;
        corpus.verify()?;
        let m = corpus.manifest();
        (Items::Crops { crops: m.counts.crops, shards: m.shards.len() }, m.digest.clone())
    };
    Ok(Verified { verified: true, items, digest })
}

impl fmt::Display for Verified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.items {
            Items::Regions { images } => writeln!(f, "sound: {}", Many(images, "image"))?,
            Items::Crops { crops, shards } => {
                writeln!(f, "sound: {} in {}", Many(crops, "crop"), Many(shards, "shard"))?;
            }
        }
        writeln!(f, "digest {}", self.digest)
    }
}

impl Remedied for VerifyError {
    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Crops(e) => e.remedy(),
            Self::Regions(e) => e.remedy(),
        }
    }
}
