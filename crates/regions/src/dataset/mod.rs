//! Regions: images or slides whose figures are labelled, the second kind of training data.
//!
//! A dataset is a folder with a `regions.json` (`docs/artifacts.md`) that names its images, wherever
//! they are stored, with digest, resolution, origin and labels. Crops ([`crops::Corpus`]) are the only
//! other kind.
//!
//! ```no_run
//! use regions::Dataset;
//! use mitosis::Mpp;
//! let set = Dataset::open("midog")?;
//! for image in set.training().images() {
//!     let region = set.load(image, Mpp::PAPER)?;
//!     println!("{}: {} px wide, {} labels", image.name, region.tile.width, region.labels.len());
//! }
//! # Ok::<(), regions::RegionsError>(())
//! ```

mod build;
mod class;
mod display;
mod error;
mod images;
pub mod import;
mod manifest;
mod merge;
mod part;
mod pixels;
mod read;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub use build::{Builder, Given, GivenMpp, Probe, probe};
pub use class::{ClassInfo, Kind};
pub use error::{RegionsError, Result};
pub use images::{Area, Counts, Image, Label, MppSource, Part, Resolution};
pub use manifest::{Dataset, FILE, FORMAT, SCHEMA};
pub use merge::merge;
pub use part::{TestPart, TrainingPart};
pub(crate) use pixels::pixel_digest;
pub use read::{PlacedLabel, Region};

impl Dataset {
    /// Opens a dataset: its folder, or the `regions.json` in it. The manifest is checked throughout,
    /// and every image must be there with its recorded size; digests are checked when images are
    /// read ([`Dataset::load`]) and by [`Dataset::verify`].
    ///
    /// # Errors
    /// [`RegionsError`] naming the manifest or the image.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        manifest::open(path.as_ref())
    }

    /// Whether a folder (or file) is a regions dataset, by the manifest's name.
    #[must_use]
    pub fn is_dataset(path: &Path) -> bool {
        path.join(FILE).is_file() || (path.is_file() && path.file_name() == Some(FILE.as_ref()))
    }

    /// The folder of the manifest.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The dataset's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.head.name
    }

    /// Program and version that wrote it.
    #[must_use]
    pub fn builder(&self) -> &str {
        &self.head.builder
    }

    /// How it was made: notes of the importers, by dataset.
    #[must_use]
    pub fn notes(&self) -> &BTreeMap<String, String> {
        &self.head.notes
    }

    /// The classes, in order.
    #[must_use]
    pub fn classes(&self) -> &[ClassInfo] {
        &self.head.classes
    }

    /// The word of the positive class.
    #[must_use]
    pub fn positive(&self) -> &str {
        self.head.positive()
    }

    /// SHA-256 over everything but the places of the files.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.head.digest
    }

    /// Every image, training and test, in order. Trainers take a [`TrainingPart`].
    #[must_use]
    pub fn images(&self) -> &[Image] {
        &self.images
    }

    /// The image of that name.
    #[must_use]
    pub fn image(&self, name: &str) -> Option<&Image> {
        self.images.iter().find(|i| i.name == name)
    }

    /// Counts of all images.
    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts::count(&self.images)
    }

    /// The images that may be trained on.
    #[must_use]
    pub fn training(&self) -> TrainingPart<'_> {
        TrainingPart::new(self)
    }

    /// The images that may only be scored at the end.
    #[must_use]
    pub fn test(&self) -> TestPart<'_> {
        TestPart::new(self)
    }

    /// The images that no model trains on and that set the scale of scores, in order.
    #[must_use]
    pub fn calibration(&self) -> Vec<&Image> {
        self.images.iter().filter(|i| i.part == Part::Calibration).collect()
    }

    /// The path of an image's file.
    #[must_use]
    pub fn path(&self, image: &Image) -> PathBuf {
        self.folder.join(&image.file)
    }
}
