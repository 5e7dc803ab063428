//! The data folder of a run: what is read, split and recorded.

use std::path::{Path, PathBuf};

use artifact::digest::hex;
use corpus::ami::{Part, TrainingSet};
use corpus::augment::{Domain, ImageFolder};
use corpus::crops::Scene;
use corpus::fold::LeftOut;
use corpus::folds::{FoldManifest, FoldScenes, RegionFold};
use corpus::icpr::{Icpr, IcprFold};
use corpus::regions::Dataset;
use mitosis::Mpp;
use sha2::{Digest, Sha256};

use crate::error::{Result, TrainError};

/// Domains of a regions dataset in `pools`: frames, patches around figures, images without labels.
pub const REGION_DOMAINS: [&str; 3] = ["frames", "patches", "unlabelled"];

/// Class names of the second stage of a data folder, in output order.
pub const CLASSES: [&str; 2] = ["non_mitotic", "mitotic"];
/// What is no figure, beside the dataset's own word for one.
pub const OTHER: &str = "other";

/// Slides of ICPR 2012, each left out in turn.
pub const ICPR_SLIDES: [&str; 3] = ["A00", "A01", "A02"];

/// What `segment` and `finetune` train on.
#[derive(Debug)]
pub enum Source {
    /// A folder with `icpr2012/`, `ami_br/` and other tissue; one slide is left out at a time.
    Folder(PathBuf),
    /// A regions dataset and its folds.
    Regions(Box<Dataset>, FoldManifest),
}

impl Source {
    /// A regions dataset with the manifest `folds`, or else a folder.
    ///
    /// # Errors
    /// A dataset without folds, folds of another one, folds without a dataset, unreadable files.
    pub fn open(data: &Path, folds: Option<&Path>) -> Result<Self> {
        let refuse = |path: &Path, reason: &str| Err(TrainError::run(path, reason));
        match (Dataset::is_at(data), folds) {
            (false, None) => Ok(Self::Folder(data.to_path_buf())),
            (false, Some(_)) => refuse(data, "is no regions dataset, so folds do not serve it"),
            (true, None) => refuse(data, "is a regions dataset and needs its folds"),
            (true, Some(path)) => {
                let (set, folds) = (Dataset::open(data)?, FoldManifest::read(path)?);
                folds.check_dataset(set.digest())?;
                Ok(Self::Regions(Box::new(set), folds))
            }
        }
    }

    /// Names of all its folds.
    #[must_use]
    pub fn folds(&self) -> Vec<String> {
        match self {
            Self::Folder(_) => ICPR_SLIDES.map(str::to_owned).to_vec(),
            Self::Regions(_, folds) => folds.folds.clone(),
        }
    }

    /// The images of a fold by its name, or with `none` all of them. `ami` and `images` are the parts
    /// of a folder that a preset names; a regions dataset has its own.
    ///
    /// # Errors
    /// As [`Data::open`] and [`Data::of_regions`]; an unknown fold; a preset that names parts of a
    /// folder for a dataset.
    pub fn fold(
        &self,
        name: &str,
        ami: (Option<Part>, usize),
        images: &[ImageFolder],
    ) -> Result<Data> {
        match self {
            Self::Folder(dir) => {
                let Ok(left_out) = name.parse::<LeftOut>();
                Data::open(dir, &left_out, ami, images)
            }
            Self::Regions(set, folds) => {
                if ami.0.is_some() || !images.is_empty() {
                    return Err(TrainError::Preset {
                        path: "data".into(),
                        reason: "`ami` and `images` are parts of a folder; a dataset has its own"
                            .into(),
                    });
                }
                let part = set.training();
                let fold = match folds.number(name) {
                    Some(k) => folds.regions(&part, k)?,
                    None if name == "none" => folds.all_regions(&part)?,
                    None => {
                        let known = folds.folds.join(", ");
                        let reason =
                            format!("there is no fold `{name}`; there are {known} and none");
                        return Err(TrainError::run(Path::new("folds"), reason));
                    }
                };
                Data::of_regions(set, &fold, Mpp::PAPER)
            }
        }
    }
}

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
    /// The fold's name.
    pub left_out: String,
    /// Class names of the second stage, the positive one last.
    pub classes: [String; 2],
    /// Of a regions dataset: every patch around a figure, whether or not all else in it is labelled.
    patches: Option<Option<TrainingSet>>,
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
        let (digest, left_out) = (hex(&hash.finalize()), left_out.to_string());
        let classes = CLASSES.map(str::to_owned);
        Ok(Self { icpr, midog, foreign, digest, left_out, classes, patches: None })
    }

    /// Reads a fold of a regions dataset at `mpp`.
    ///
    /// # Errors
    /// Images that cannot be read or changed since they were imported; a fold without frames.
    pub fn of_regions(set: &Dataset, fold: &RegionFold<'_>, mpp: Mpp) -> Result<Self> {
        let found = FoldScenes::load(set, fold, mpp)?;
        let all = found.unlabelled.into_iter().flat_map(|(_, scenes)| scenes).collect::<Vec<_>>();
        let foreign = if all.is_empty() { vec![] } else { vec![(REGION_DOMAINS[2].into(), all)] };
        Ok(Self {
            icpr: found.frames,
            midog: found.exhaustive_patches,
            foreign,
            digest: found.digest,
            left_out: fold.name.clone(),
            classes: [OTHER.into(), set.positive().into()],
            patches: Some(found.patches),
        })
    }

    /// All of it by domain.
    #[must_use]
    pub fn domains(&self) -> Vec<Domain> {
        let named = |mut domain: Domain, k: usize| {
            if self.patches.is_some() {
                domain.name = REGION_DOMAINS[k].into();
            }
            domain
        };
        let patches = self.patches.as_ref().unwrap_or(&self.midog);
        let mut all = vec![named(Domain::icpr(&self.icpr.train), 0)];
        all.extend(patches.as_ref().map(|p| named(Domain::ami(p), 1)));
        let foreign = self.foreign.iter();
        all.extend(foreign.map(|(name, scenes)| Domain::unlabelled(name, scenes.clone())));
        all
    }
}
