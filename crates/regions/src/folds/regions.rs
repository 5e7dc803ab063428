//! Folds of a regions dataset. Only a [`TrainingPart`] can be folded; test images have no way in.

use super::{FoldManifest, FoldsError, Place, Result, Sought};
use crate::dataset::{Image, TrainingPart};

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
    /// Both sides of fold `k`.
    ///
    /// # Errors
    /// [`FoldsError`]: images whose slides are in no group, a fold that holds none of them out, or no such fold.
    pub fn regions<'a>(&self, part: &TrainingPart<'a>, k: usize) -> Result<RegionFold<'a>> {
        self.known(k)?;
        let mut fold =
            RegionFold { name: self.folds[k].clone(), train: vec![], validation: vec![] };
        let places = self.places(part)?;
        let held = |(i, p): &(&Image, Place)| *p == Place::Fold(k) && i.exhaustive;
        if !places.iter().any(held) {
            return Err(FoldsError::Invalid(format!(
                "fold `{}` holds out no exhaustively labelled image of this dataset; the folds were made for \
                 other slides",
                self.folds[k]
            )));
        }
        for (image, place) in places {
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
        let sought = part.images().iter().map(|i| Sought {
            slide: &i.slide,
            patient: i.patient.as_deref(),
            content: [Some(&i.sha256), i.pixels.as_deref()],
        });
        let places = self.find_places(sought)?;
        Ok(part.images().iter().copied().zip(places).collect())
    }
}
