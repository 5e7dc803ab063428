//! What a run trains on: one fold of a regions dataset.

use base::table::Unmatched;
use std::path::Path;

use mitosis::Mpp;
use net::checkpoint::TrainedOn;
use regions::augment::{Domain, NamedPlace};
use regions::folds::{FoldManifest, FoldScenes, RegionFold};
use regions::scene::{Mark, MarkKind};
use regions::{Dataset, Image};

use crate::error::{Result, TrainError};
use crate::seen::Names;

/// Domains in `pools`: exhaustively labelled frames, patches around figures, images without labels.
pub const DOMAINS: [&str; 3] = ["frames", "patches", "unlabelled"];

/// The class of everything that is not a figure, in addition to the dataset's own word.
pub const OTHER: &str = "other";

/// A label that a detector gave a place of an image without labels; pixels at the working resolution.
#[derive(Clone, Debug, PartialEq)]
pub struct Pseudo {
    /// Name of the image.
    pub frame: String,
    /// Rightwards.
    pub x: f32,
    /// Downwards.
    pub y: f32,
    /// A mitotic figure, or a mimicker.
    pub mitotic: bool,
}

/// A regions dataset and its folds.
#[derive(Debug)]
pub struct Source {
    /// The dataset.
    pub set: Dataset,
    /// Its folds.
    pub folds: FoldManifest,
}

impl Source {
    /// Opens both.
    ///
    /// # Errors
    /// No regions dataset, folds of other slides, unreadable files.
    pub fn open(data: &Path, folds: &Path) -> Result<Self> {
        Self::read_folds(Dataset::open(data)?, folds)
    }

    /// A dataset with the folds of a file.
    ///
    /// # Errors
    /// Folds of other slides, an unreadable file.
    pub fn read_folds(set: Dataset, folds: &Path) -> Result<Self> {
        let folds = FoldManifest::read(folds)?;
        folds.all_regions(&set.training())?;
        Ok(Self { set, folds })
    }

    /// A fold by its name, or with `none` all of the training part.
    ///
    /// # Errors
    /// An unknown name.
    pub fn fold(&self, name: &str) -> Result<RegionFold<'_>> {
        let part = self.set.training();
        match self.folds.number(name) {
            Some(k) => Ok(self.folds.regions(&part, k)?),
            None if name == "none" => Ok(self.folds.all_regions(&part)?),
            None => {
                let known = self.folds.folds.join(", ");
                let reason =
                    format!("fold `{name}` does not exist; the folds are {known} and none");
                Err(TrainError::run(Path::new("folds"), reason))
            }
        }
    }

    /// The images of a fold in memory.
    ///
    /// # Errors
    /// As [`Source::fold`] and [`Data::read`].
    pub fn data(&self, fold: &str) -> Result<Data> {
        Data::read(&self.set, &self.fold(fold)?, Mpp::PAPER)
    }
}

/// Images of one fold.
pub struct Data {
    /// Both sides.
    pub scenes: FoldScenes,
    /// The fold's name.
    pub left_out: String,
    /// Class names of the second stage, the positive one last.
    pub classes: [String; 2],
    /// Pseudo-labelled mimickers.
    pub mimickers: Vec<NamedPlace>,
    /// Slides and patients of the training side.
    pub trained_on: TrainedOn,
    /// The images held out, by name.
    pub held_out: Vec<Names>,
    /// SHA-256 over the digests, resolutions and labels of these.
    pub held_out_digest: String,
}

/// SHA-256 over the files of some images and what is known of them.
fn digest_images(images: &[&Image]) -> String {
    let mut all = vec![];
    for i in images {
        all.extend(i.sha256.as_bytes());
        all.extend(format!("{:?}", (i.mpp.x, i.mpp.y)).as_bytes());
        all.extend(serde_json::to_vec(&(&i.labels, &i.ignore)).unwrap_or_default());
    }
    base::digest::sha256(all)
}

/// Half of the side of the paper's box around a pseudo-label: 50 px at 0.25 um/px.
const HALF: f32 = 25.0;

impl Data {
    /// Reads a fold at `mpp`.
    ///
    /// # Errors
    /// Images that cannot be read or changed since they were imported; a fold without frames.
    pub fn read(set: &Dataset, fold: &RegionFold<'_>, mpp: Mpp) -> Result<Self> {
        Ok(Self {
            scenes: FoldScenes::load(set, fold, mpp)?,
            left_out: fold.name.clone(),
            classes: [OTHER.into(), set.positive().into()],
            mimickers: vec![],
            trained_on: TrainedOn {
                slides: fold.train.iter().map(|i| i.slide.clone()).collect(),
                patients: fold.train.iter().filter_map(|i| i.patient.clone()).collect(),
            },
            held_out: fold.validation.iter().map(|i| Names::from(*i)).collect(),
            held_out_digest: digest_images(&fold.validation),
        })
    }

    /// Marks pseudo-labels in the images without labels: figures for both stages, mimickers for the second.
    ///
    /// # Errors
    /// An image that is not among those of this fold's training side.
    pub fn mark(&mut self, pseudo: &[Pseudo]) -> Result<()> {
        let there = self.scenes.unlabelled.iter().flat_map(|u| &u.scenes).map(|s| s.name.as_str());
        let listed = pseudo.iter().map(|p| p.frame.as_str());
        let join =
            Unmatched::between(("the pseudo-labels", "the unlabelled images"), listed, there)
                .map_or_else(String::new, |join| format!(": {join}"));
        for p in pseudo {
            let mut scenes = self.scenes.unlabelled.iter_mut().flat_map(|u| u.scenes.iter_mut());
            let scene = scenes.find(|s| s.name == p.frame).ok_or_else(|| TrainError::Preset {
                path: "pseudo-labels".into(),
                reason: format!(
                    "image {} is not an unlabelled one on the training side of this fold{join}",
                    p.frame
                ),
            })?;
            if p.mitotic {
                scene.marks.push(Mark { x: p.x, y: p.y, half: HALF, kind: MarkKind::Figure });
            } else {
                self.mimickers.push(NamedPlace { image: p.frame.clone(), x: p.x, y: p.y });
            }
            let word = if p.mitotic { "figure" } else { "mimicker" };
            self.scenes.digest.push_str(&format!("+{word} {}:{:.1},{:.1}", p.frame, p.x, p.y));
        }
        if !pseudo.is_empty() {
            self.scenes.digest = base::digest::sha256(&self.scenes.digest);
        }
        Ok(())
    }

    /// The training side by domain.
    #[must_use]
    pub fn domains(&self) -> Vec<Domain> {
        let s = &self.scenes;
        let mut all = vec![Domain::frames(DOMAINS[0], &s.frames)];
        if !s.patches.is_empty() {
            all.push(Domain::patches(DOMAINS[1], s.patches.clone()));
        }
        if s.unlabelled.iter().any(|u| !u.scenes.is_empty()) {
            let scenes = s.unlabelled.iter().flat_map(|u| u.scenes.iter().cloned());
            all.push(Domain::unlabelled(DOMAINS[2], scenes.collect()));
        }
        all
    }
}
