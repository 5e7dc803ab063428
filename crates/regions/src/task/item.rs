//! Labelled crops in memory.

use super::error::{Result, TaskError};
use super::labels::{Coarse, Task};

use base::digest::hex;
use mitosis::RgbTile;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// One labelled crop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// File relative to the data folder.
    pub file: String,
    /// Index into the set's classes.
    pub class: usize,
    /// The class that each expert chose, if the data contain it; otherwise only `class`. Never empty.
    pub votes: Vec<usize>,
    /// The same for [`Task::coarser`], of a task that has one.
    pub coarse: Option<Coarse>,
    /// The patient, or the slide where no patient is known: the unit of folds.
    pub source: String,
    /// The patient, where known.
    pub patient: Option<String>,
    /// The slide it was cut from.
    pub slide: String,
    /// Scanner or collection, for figures per domain.
    pub domain: String,
    /// SHA-256 of size and pixels.
    pub hash: String,
}

/// A crop with its label.
pub(super) struct LabelledCrop {
    pub(super) item: Item,
    pub(super) image: RgbTile,
}

/// Crops with their labels: what [`TrainingSet`](super::TrainingSet) and [`TestSet`](super::TestSet) have in common.
#[derive(Clone, Debug)]
pub struct Crops {
    pub(super) task: Task,
    pub(super) classes: Vec<String>,
    pub(super) items: Vec<Item>,
    pub(super) images: Vec<RgbTile>,
    pub(super) dataset: Option<String>,
}

impl Crops {
    pub(super) fn new(task: Task, classes: Vec<String>, found: Vec<LabelledCrop>) -> Result<Self> {
        let mut seen: BTreeMap<&str, &Item> = BTreeMap::new();
        for LabelledCrop { item, .. } in &found {
            if let Some(first) = seen.insert(&item.hash, item)
                && first.class != item.class
            {
                return Err(TaskError::Contradiction {
                    first: first.file.clone(),
                    first_class: classes[first.class].clone(),
                    second: item.file.clone(),
                    second_class: classes[item.class].clone(),
                });
            }
        }
        let (items, images) = found.into_iter().map(|c| (c.item, c.image)).unzip();
        Ok(Self { task, classes, items, images, dataset: None })
    }

    /// Digest of the dataset of crops, where they are of one.
    #[must_use]
    pub fn dataset(&self) -> Option<&str> {
        self.dataset.as_deref()
    }

    /// The task.
    #[must_use]
    pub fn task(&self) -> Task {
        self.task
    }

    /// Class names, in output order.
    #[must_use]
    pub fn classes(&self) -> &[String] {
        &self.classes
    }

    /// The crops' labels, in file order.
    #[must_use]
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// The crops' pixels at 0.25 um/px, in the same order.
    #[must_use]
    pub fn images(&self) -> &[RgbTile] {
        &self.images
    }

    /// SHA-256 over names, classes, sources and pixels.
    #[must_use]
    pub fn digest(&self) -> String {
        let mut hash = Sha256::new();
        for i in &self.items {
            let class = &self.classes[i.class];
            hash.update(format!("{}\n{class}\n{}\n{}\n", i.file, i.source, i.hash));
        }
        hex(&hash.finalize())
    }
}
