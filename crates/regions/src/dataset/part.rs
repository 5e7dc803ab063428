//! Training images and test images as two types. Trainers take a [`TrainingPart`]; nothing turns a
//! [`TestPart`] into one.

use std::ops::Deref;

use super::{Counts, Dataset, Image, Part};

/// Images of one part.
#[derive(Clone, Debug)]
pub struct PartImages<'a> {
    set: &'a Dataset,
    images: Vec<&'a Image>,
}

impl<'a> PartImages<'a> {
    fn select(set: &'a Dataset, part: Part) -> Self {
        Self { set, images: set.images().iter().filter(|i| i.part == part).collect() }
    }

    /// The dataset that the images are a part of.
    #[must_use]
    pub fn dataset(&self) -> &'a Dataset {
        self.set
    }

    /// The images, in the dataset's order.
    #[must_use]
    pub fn images(&self) -> &[&'a Image] {
        &self.images
    }

    /// Sums over the images of this part.
    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts::count(self.images.iter().copied())
    }
}

/// The images of a dataset that may be trained on, validated on and calibrated with.
#[derive(Clone, Debug)]
pub struct TrainingPart<'a>(PartImages<'a>);

/// The images of a dataset that may be scored once, at the end.
#[derive(Clone, Debug)]
pub struct TestPart<'a>(PartImages<'a>);

impl<'a> TrainingPart<'a> {
    pub(super) fn new(set: &'a Dataset) -> Self {
        Self(PartImages::select(set, Part::Train))
    }
}

impl<'a> TestPart<'a> {
    pub(super) fn new(set: &'a Dataset) -> Self {
        Self(PartImages::select(set, Part::Test))
    }
}

impl<'a> Deref for TrainingPart<'a> {
    type Target = PartImages<'a>;
    fn deref(&self) -> &PartImages<'a> {
        &self.0
    }
}

impl<'a> Deref for TestPart<'a> {
    type Target = PartImages<'a>;
    fn deref(&self) -> &PartImages<'a> {
        &self.0
    }
}
