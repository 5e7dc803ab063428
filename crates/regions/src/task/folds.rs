//! The folds of a training set: the one manifest of [`crate::folds`], read item by item.

use std::path::Path;

use super::{Result, TaskError, TrainingSet};
use crate::fold::Fold;
use crate::folds::{FoldManifest, Place, Scheme, Sought, Stratum, Unit};

/// Which item is held out by which fold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folds {
    manifest: FoldManifest,
    /// Per item of the set; `None` where every fold trains on it.
    holding_folds: Vec<Option<usize>>,
}

impl Folds {
    /// Deals whole sources, stratified by class and domain; copies of one image stay together.
    ///
    /// # Errors
    /// [`TaskError::MissingClass`], or fewer sources than folds.
    pub fn new(set: &TrainingSet, folds: usize, seed: u64) -> Result<Self> {
        let positive = set.task().positive();
        let units = set.items().iter().map(|item| Unit {
            slide: &item.slide,
            patient: item.patient.as_deref(),
            copy: Some(&item.hash),
            pixels: None,
            // Two digits, so that classes keep their order.
            strata: vec![Stratum { name: format!("{:02} {}", item.class, item.domain), count: 1 }],
            figures: u64::from(positive == Some(set.classes()[item.class].as_str())),
            test: false,
            validates: true,
        });
        let scheme = Scheme::Stratified(folds);
        let made = FoldManifest::of_task(&dataset(set), units.collect(), scheme, seed);
        Self::apply(set, made.map_err(|e| TaskError::file(Path::new("data.folds"), e))?)
    }

    /// The folds of a manifest on the items of a set: this run's own, one of `corpus split`, or that of a
    /// detector, which was made for regions of the same slides. Items are found by slide and patient.
    ///
    /// # Errors
    /// Items whose slides are in no fold or are test data, or a class that a fold has on one side alone.
    pub fn apply(set: &TrainingSet, manifest: FoldManifest) -> Result<Self> {
        let fail = |reason: String| TaskError::file(Path::new("folds"), reason);
        // Older versions wrote the folds of a task with patients in place of slides.
        let patients = manifest.groups.iter().any(|g| !g.patients.is_empty());
        let by_source = !patients && manifest.dataset == dataset(set);
        let sought = set.items().iter().map(|i| match by_source {
            true => Sought { slide: &i.source, patient: None, content: [None; 2] },
            false => Sought { slide: &i.slide, patient: i.patient.as_deref(), content: [None; 2] },
        });
        let places = manifest.find_places(sought).map_err(|e| fail(e.to_string()))?;
        let held = places.into_iter().zip(set.items()).map(|(place, item)| match place {
            Place::Fold(k) => Ok(Some(k)),
            Place::Train => Ok(None),
            Place::Test => Err(fail(format!(
                "`{}` of `{}` is test data in these folds, but not in this dataset",
                item.file, item.slide
            ))),
        });
        let folds = Self { holding_folds: held.collect::<Result<_>>()?, manifest };
        folds.has_every_class_on_both_sides(set)?;
        Ok(folds)
    }

    /// Reads a manifest and checks it against the set it belongs to.
    ///
    /// # Errors
    /// When it is not a manifest, was changed, has a source on both sides, or as [`Self::apply`].
    pub fn read(path: &Path, set: &TrainingSet) -> Result<Self> {
        let fail = |e: crate::folds::FoldsError| TaskError::file(path, e);
        Self::apply(set, FoldManifest::read(path).map_err(fail)?)
    }

    /// Writes the manifest.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn write(&self, path: &Path) -> Result<()> {
        self.manifest.write(path).map_err(|e| TaskError::file(path, e))
    }

    /// How many folds there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.manifest.folds.len()
    }

    /// The manifest's digest.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.manifest.digest
    }

    /// Groups and folds as the manifest of folds has them.
    #[must_use]
    pub fn manifest(&self) -> &FoldManifest {
        &self.manifest
    }

    /// The fold that holds each item out, in the set's order; `None` where every fold trains on it.
    #[must_use]
    pub fn holding_folds(&self) -> &[Option<usize>] {
        &self.holding_folds
    }

    /// Both sides of fold `k`, as indices into the set.
    ///
    /// # Errors
    /// When the fold does not exist.
    pub fn fold(&self, k: usize) -> Result<Fold> {
        if k >= self.count() {
            let reason = format!("fold {k} does not exist; folds are 0 to {}", self.count() - 1);
            return Err(TaskError::file(Path::new("folds"), reason));
        }
        let (validation, train) =
            (0..self.holding_folds.len()).partition(|&i| self.holding_folds[i] == Some(k));
        Ok(Fold { train, validation })
    }

    fn has_every_class_on_both_sides(&self, set: &TrainingSet) -> Result<()> {
        let (folds, classes) = (self.count(), set.classes());
        let mut held = vec![vec![0_usize; folds]; classes.len()];
        let mut all = vec![0_usize; classes.len()];
        for (item, k) in set.items().iter().zip(&self.holding_folds) {
            all[item.class] += 1;
            if let Some(k) = k {
                held[item.class][*k] += 1;
            }
        }
        for ((class, per_fold), count) in classes.iter().zip(&held).zip(all) {
            for (fold, &n) in per_fold.iter().enumerate() {
                let side = match n {
                    0 => "validate on",
                    n if n == count => "train on",
                    _ => continue,
                };
                return Err(TaskError::MissingClass { fold, class: class.clone(), side, count });
            }
        }
        Ok(())
    }
}

/// What the manifest of a set's folds names as its data: the dataset that the set was read from, or
/// else its items.
fn dataset(set: &TrainingSet) -> String {
    set.dataset().map_or_else(|| set.digest(), str::to_owned)
}
