//! The data folder of a run: what is read, split and recorded.

use std::path::Path;

use corpus::ami::{Part, TrainingSet};
use corpus::fold::LeftOut;
use corpus::icpr::{Icpr, IcprFold};
use mitosis::Mpp;
use sha2::{Digest, Sha256};

use crate::error::Result;
use crate::preset::hex;

/// Training images of one fold.
pub struct Data {
    /// ICPR frames and negatives of both sides.
    pub icpr: IcprFold,
    /// MIDOG21 patches.
    pub midog: Option<TrainingSet>,
    /// SHA-256 over the names, marks and pixels trained on.
    pub digest: String,
}

impl Data {
    /// Reads `dir/icpr2012` and, if asked, the training part of `dir/ami_br`.
    ///
    /// # Errors
    /// Missing or malformed files; a test set asked for as training data; an unknown fold.
    pub fn open(dir: &Path, left_out: &LeftOut, ami: Option<Part>, most: usize) -> Result<Self> {
        let midog = match ami {
            Some(part) => Some(TrainingSet::open(&dir.join("ami_br"), part)?.thinned(most)),
            None => None,
        };
        let icpr = Icpr::open(&dir.join("icpr2012"), Mpp::PAPER)?.fold(left_out)?;
        let mut hash = Sha256::new();
        let patches = midog.iter().flat_map(|m| m.scenes());
        for scene in icpr.train.scenes.iter().chain(patches) {
            hash.update(scene.name.as_bytes());
            hash.update(&scene.image.data);
            for m in &scene.marks {
                hash.update(format!("{m:?}").as_bytes());
            }
        }
        for n in &icpr.train.negatives {
            hash.update(&n.patch.data);
        }
        Ok(Self { icpr, midog, digest: hex(&hash.finalize()) })
    }
}
