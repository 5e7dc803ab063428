//! Folds of a regions dataset. Only a [`TrainingPart`] can be folded; test images have no way in.

use super::{DataKind, FoldManifest, FoldsError, Place, Result, Scheme, Unit};
use crate::dataset::{Dataset, Image, Part, TrainingPart};

/// Both sides of one fold.
#[derive(Clone, Debug)]
pub struct RegionFold<'a> {
    /// Name of the fold; `none` when nothing is held out.
    pub name: String,
    /// Images to train on.
    pub train: Vec<&'a Image>,
    /// Exhaustively labelled images held out. What else belongs to the held-out groups is on
    /// neither side.
    pub validation: Vec<&'a Image>,
}

impl FoldManifest {
    /// Splits a regions dataset, stratified by figures and images per source.
    ///
    /// # Errors
    /// As [`FoldManifest::new`].
    pub fn of_regions(set: &Dataset, scheme: Scheme, seed: u64) -> Result<Self> {
        let units = set.images().iter().map(|i| Unit {
            slide: &i.slide,
            patient: i.patient.as_deref(),
            copy: Some(&i.sha256),
            strata: vec![
                (format!("{} figures", i.source), i.figures().count() as u64),
                (format!("{} images", i.source), 1),
            ],
            figures: i.figures().count() as u64,
            test: i.part != Part::Train,
            validates: i.exhaustive,
        });
        Self::new(DataKind::Regions, set.digest(), units, scheme, seed)
    }

    /// Both sides of fold `k`.
    ///
    /// # Errors
    /// [`FoldsError`]: the manifest belongs to other data, or there is no such fold.
    pub fn regions<'a>(&self, part: &TrainingPart<'a>, k: usize) -> Result<RegionFold<'a>> {
        self.known(k)?;
        let mut fold =
            RegionFold { name: self.folds[k].clone(), train: vec![], validation: vec![] };
        for (image, place) in self.places(part)? {
            match place {
                Place::Fold(f) if f == k && image.exhaustive => fold.validation.push(image),
                Place::Fold(f) if f == k => {}
                Place::Fold(_) | Place::Train => fold.train.push(image),
                Place::Test => {}
            }
        }
        Ok(fold)
    }

    /// Everything to train on, for a final model that has no held-out side.
    ///
    /// # Errors
    /// As [`FoldManifest::regions`].
    pub fn all_regions<'a>(&self, part: &TrainingPart<'a>) -> Result<RegionFold<'a>> {
        let train = self.places(part)?.into_iter().filter(|(_, p)| *p != Place::Test);
        let train = train.map(|(i, _)| i).collect();
        Ok(RegionFold { name: "none".into(), train, validation: vec![] })
    }

    fn places<'a>(&self, part: &TrainingPart<'a>) -> Result<Vec<(&'a Image, Place)>> {
        self.check_dataset(part.dataset().digest())?;
        let index = self.index()?;
        let place = |image: &&'a Image| {
            let known = index.slides.get(image.slide.as_str());
            let of = |p: &String| index.patients.get(p.as_str());
            if image.patient.as_ref().is_some_and(|p| of(p) != known) {
                return Err(FoldsError::Invalid(format!(
                    "image `{}`: its slide and its patient are in two groups",
                    image.name
                )));
            }
            let group = known.ok_or_else(|| {
                FoldsError::Invalid(format!("slide `{}` is in no group of folds", image.slide))
            })?;
            Ok((*image, self.groups[*group].place))
        };
        part.images().iter().map(place).collect()
    }
}
