//! Test items that the models of a run were trained on.

use super::{Result, TrainingError};
use net::checkpoint::{self, TrainedOn};
use regions::task::TestSet;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use train::protocol::{About, Items, Part};
use train::run::MODEL;
use train::seen::{Names, Seen, shown};

/// What the models of a run have seen of a test set.
pub(crate) struct Overlap {
    /// Slides of the set that they were trained on, and images with the same pixels as a training image.
    trained: Vec<String>,
    /// Slides of the set whose images they were pretrained on without labels.
    pretrained: Vec<String>,
    /// Models that list nothing.
    unlisted: Vec<String>,
}

impl Overlap {
    /// Compares the lists of a run's models with a test set.
    ///
    /// # Errors
    /// Models or tables that cannot be read.
    pub fn find(run: &Path, about: &About, set: &TestSet) -> Result<Self> {
        let (mut trained_on, mut pretrained_on) = (TrainedOn::default(), TrainedOn::default());
        let mut unlisted = vec![];
        for part in (0..about.folds).map(Part::Fold).chain([Part::Final]) {
            let path = part.dir(run).join(MODEL);
            if !path.is_file() {
                continue;
            }
            let spec = checkpoint::description(&path)?;
            match spec.as_ref().and_then(|s| s.trained_on.as_ref()) {
                Some(list) => trained_on.extend(list),
                None => unlisted.push(path.display().to_string()),
            }
            if let Some(list) = spec.as_ref().and_then(|s| s.pretrained_on.as_ref()) {
                pretrained_on.extend(list);
            }
        }
        let items = Items::read(run).map_err(TrainingError::from)?;
        let (trained_on, pretrained_on) = (Seen::new(&trained_on), Seen::new(&pretrained_on));
        let (mut slides, mut images) = (BTreeSet::new(), BTreeMap::new());
        let mut pretrained = BTreeSet::new();
        for item in set.items() {
            let names = Names::from(item);
            if trained_on.has(&names) && !items.only_named_alike(item) {
                slides.insert(item.slide.clone());
            } else if let Some(file) = items.same_pixels(item) {
                images.insert(&item.file, format!("{}, which has the pixels of {file}", item.file));
            }
            if pretrained_on.has(&names) {
                pretrained.insert(item.slide.clone());
            }
        }
        let trained = slides.into_iter().chain(images.into_values()).collect();
        Ok(Self { trained, pretrained: pretrained.into_iter().collect(), unlisted })
    }

    /// Refuses a set that was trained on, unless this is allowed. Returns notes for the reader of the results.
    ///
    /// # Errors
    /// [`TrainingError::TestSeen`].
    pub fn notes(&self, run: &Path, allowed: bool) -> Result<Vec<String>> {
        let mut notes = vec![];
        if !self.trained.is_empty() {
            let (count, shown) = (self.trained.len(), list(&self.trained));
            let refused = TrainingError::TestSeen { run: run.to_path_buf(), count, shown };
            if !allowed {
                return Err(refused);
            }
            notes.push(refused.to_string());
        }
        if !self.pretrained.is_empty() {
            notes.push(format!(
                "the encoder was pretrained, without labels, on {} of the slides of this test set ({}); results on \
                 other slides may be lower",
                self.pretrained.len(),
                list(&self.pretrained)
            ));
        }
        if !self.unlisted.is_empty() {
            notes.push(format!(
                "not checked against the test set: {} (made by an older version) list no slides that they were \
                 trained on",
                list(&self.unlisted)
            ));
        }
        Ok(notes)
    }
}

fn list(names: &[String]) -> String {
    shown(names.iter().map(String::as_str))
}
