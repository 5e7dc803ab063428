//! Training images and test images as two types. Trainers take a [`TrainingPart`]; nothing turns a
//! [`TestPart`] into one.

use super::{Counts, Dataset, Image, Part};

/// The images of a dataset that may be trained on, validated on and calibrated with.
#[derive(Clone, Debug)]
pub struct TrainingPart<'a> {
    set: &'a Dataset,
    images: Vec<&'a Image>,
}

/// The images of a dataset that may be scored once, at the end.
#[derive(Clone, Debug)]
pub struct TestPart<'a> {
    set: &'a Dataset,
    images: Vec<&'a Image>,
}

fn of(set: &Dataset, part: Part) -> Vec<&Image> {
    set.images().iter().filter(|i| i.part == part).collect()
}

impl<'a> TrainingPart<'a> {
    pub(super) fn new(set: &'a Dataset) -> Self {
        Self { set, images: of(set, Part::Train) }
    }

    /// The dataset.
    #[must_use]
    pub fn dataset(&self) -> &'a Dataset {
        self.set
    }

    /// The images, in the dataset's order.
    #[must_use]
    pub fn images(&self) -> &[&'a Image] {
        &self.images
    }

    /// Counts of them.
    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts::of(self.images.iter().copied())
    }
}

impl<'a> TestPart<'a> {
    pub(super) fn new(set: &'a Dataset) -> Self {
        Self { set, images: of(set, Part::Test) }
    }

    /// The dataset.
    #[must_use]
    pub fn dataset(&self) -> &'a Dataset {
        self.set
    }

    /// The images, in the dataset's order.
    #[must_use]
    pub fn images(&self) -> &[&'a Image] {
        &self.images
    }

    /// Counts of them.
    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts::of(self.images.iter().copied())
    }
}
