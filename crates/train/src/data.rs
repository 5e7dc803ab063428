//! The data folder of a run: what is read, split and recorded.

use std::path::Path;

use corpus::ami::{Part, TrainingSet};
use corpus::augment::{Domain, ImageFolder};
use corpus::crops::Scene;
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
    /// Other tissue by name, without marks.
    pub foreign: Vec<(String, Vec<Scene>)>,
    /// SHA-256 over the names, marks and pixels trained on.
    pub digest: String,
}

impl Data {
    /// Reads `dir/icpr2012`, the training part of `dir/ami_br` if asked, and those of the folders
    /// `images` that this fold trains on.
    ///
    /// # Errors
    /// Missing or malformed files; a test set asked for as training data; an unknown fold.
    pub fn open(
        dir: &Path,
        left_out: &LeftOut,
        (ami, most): (Option<Part>, usize),
        images: &[ImageFolder],
    ) -> Result<Self> {
        let midog = match ami {
            Some(part) => Some(TrainingSet::open(&dir.join("ami_br"), part)?.thinned(most)),
            None => None,
        };
        let icpr = Icpr::open(&dir.join("icpr2012"), Mpp::PAPER)?.fold(left_out)?;
        let mut foreign = vec![];
        for folder in images.iter().filter(|f| f.trains(left_out)) {
            foreign.push((folder.name.clone(), folder.read(dir, Mpp::PAPER)?));
        }
        let mut hash = Sha256::new();
        let patches = midog.iter().flat_map(|m| m.scenes());
        let others = foreign.iter().flat_map(|f| &f.1);
        for scene in icpr.train.scenes.iter().chain(patches).chain(others) {
            hash.update(scene.name.as_bytes());
            hash.update(&scene.image.data);
            for m in &scene.marks {
                hash.update(format!("{m:?}").as_bytes());
            }
        }
        for n in &icpr.train.negatives {
            hash.update(&n.patch.data);
        }
        Ok(Self { icpr, midog, foreign, digest: hex(&hash.finalize()) })
    }

    /// All of it by domain.
    #[must_use]
    pub fn domains(&self) -> Vec<Domain> {
        let mut all = vec![Domain::icpr(&self.icpr.train)];
        all.extend(self.midog.as_ref().map(Domain::ami));
        let foreign = self.foreign.iter();
        all.extend(foreign.map(|(name, scenes)| Domain::unlabelled(name, scenes.clone())));
        all
    }
}
