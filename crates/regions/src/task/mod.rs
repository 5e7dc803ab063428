//! Labelled crops of a classification task, as two types: a [`TrainingSet`] and a
//! [`TestSet`].
//!
//! Training takes a [`TrainingSet`] and nothing else. One type cannot be converted into the other:
//! a test part cannot be trained on, validated on, or used to choose anything by mistake.
//!
//! | task | classes | training part | test part |
//! |---|---|---|---|
//! | `ami-br` | typical, atypical (majority of three experts) | AMi-Br, MIDOG21 | AMi-Br, TUPAC16 |
//! | `ami-br-benchmark` | the same | AMi-Br, what `benchmark_split.csv` lists | AMi-Br, all else (other slides) |
//! | `ami-morph` | eight morphologies (expert 1) | as `ami-br` | as `ami-br` |
//! | `crops` | mimicker, mitotic_figure | the crops of a dataset that are not test data | its test data |
//! | `folder` | names of the folders | `DIR/train` or `DIR` | `DIR/test` |

mod folds;
mod part;
mod read;
mod regions;
mod shards;

use std::collections::BTreeMap;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use mitosis::RgbTile;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use base::digest::hex;
pub use folds::Folds;

/// Classes of `ami-morph`, in output order: the typical four, then the atypical four.
pub const MORPHOLOGY: [&str; 8] = [
    "prometaphase",
    "metaphase",
    "ring_shape",
    "anaphase_telophase",
    "bipolar_asymmetric",
    "multipolar",
    "segregation",
    "other",
];

/// Classes of `ami-br`, in output order; the second is the positive one.
pub const ATYPIA: [&str; 2] = ["typical", "atypical"];

/// What is classified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Task {
    /// Typical or atypical mitotic figure.
    AmiBr,
    /// The same on the split of the published benchmark, whose training part holds figures of TUPAC16, too.
    AmiBrBenchmark,
    /// Eight morphologies of mitotic figures.
    AmiMorph,
    /// Mimicker or mitotic figure, of a dataset of crops.
    Crops,
    /// One folder per class.
    Folder,
}

impl std::str::FromStr for Task {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let all = [Self::AmiBr, Self::AmiBrBenchmark, Self::AmiMorph, Self::Crops, Self::Folder];
        let found = all.into_iter().find(|t| t.name() == word);
        let names = || all.map(Self::name).join(", ");
        found.ok_or_else(|| format!("unknown task `{word}` ({})", names()))
    }
}

/// A coarser task over the same images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coarser {
    /// The task.
    pub task: Task,
    /// Its name in file names.
    pub name: &'static str,
    /// Its classes.
    pub classes: &'static [&'static str],
    /// The class there of each class of the finer task.
    pub of: &'static [usize],
}

impl Task {
    /// As presets write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::AmiBr => "ami-br",
            Self::AmiBrBenchmark => "ami-br-benchmark",
            Self::AmiMorph => "ami-morph",
            Self::Crops => "crops",
            Self::Folder => "folder",
        }
    }

    /// The positive class, where the task itself has one; of a folder's classes a preset states it.
    #[must_use]
    pub fn positive(self) -> Option<&'static str> {
        match self {
            Self::AmiBr | Self::AmiBrBenchmark => Some(ATYPIA[1]),
            Self::Crops => Some(shards::LABELS[1]),
            Self::AmiMorph | Self::Folder => None,
        }
    }

    /// The coarser task, if there is one: `ami-morph` has `ami-br`, as four of its morphologies
    /// are typical and four atypical.
    #[must_use]
    pub fn coarser(self) -> Option<Coarser> {
        let of = &[0, 0, 0, 0, 1, 1, 1, 1];
        let coarser = Coarser { task: Task::AmiBr, name: "ami-br", classes: &ATYPIA, of };
        (self == Task::AmiMorph).then_some(coarser)
    }
}

/// An item's place in the coarser task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coarse {
    /// Its class there.
    pub class: usize,
    /// The class that each expert saw, those included who named none of the finer classes. Never
    /// empty.
    pub votes: Vec<usize>,
}

/// Why labelled crops or their folds cannot be used.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "fields whose names state what they are")]
pub enum TaskError {
    /// A file or folder.
    #[error("{path}: {reason}")]
    File {
        path: PathBuf,
        /// Why, and what to do.
        reason: String,
    },
    /// A label that the task does not know.
    #[error("{path}: image `{image}` has the unknown label `{label}`; known: {known}")]
    UnknownLabel {
        /// Path of the table.
        path: PathBuf,
        image: String,
        label: String,
        known: String,
    },
    /// The same pixels under two labels.
    #[error(
        "`{first}` ({first_class}) and `{second}` ({second_class}) are the same image under two \
         labels; remove one"
    )]
    Contradiction { first: String, first_class: String, second: String, second_class: String },
    /// A fold that lacks a class.
    #[error(
        "fold {fold} has no `{class}` to {side} ({count} images of it in all); take fewer folds or another \
         data.split_seed, which may help, or leave the class out"
    )]
    MissingClass {
        /// Number of the fold.
        fold: usize,
        /// Name of the class.
        class: String,
        /// `train on` or `validate on`.
        side: &'static str,
        /// Images of the class in the whole set.
        count: usize,
    },
}

impl TaskError {
    pub(crate) fn file(path: &Path, reason: impl ToString) -> Self {
        Self::File { path: path.to_path_buf(), reason: reason.to_string() }
    }
}

/// Shorthand.
pub type Result<T, E = TaskError> = std::result::Result<T, E>;

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
struct LabelledCrop {
    item: Item,
    image: RgbTile,
}

/// Crops with their labels: what [`TrainingSet`] and [`TestSet`] have in common.
#[derive(Clone, Debug)]
pub struct Crops {
    task: Task,
    classes: Vec<String>,
    items: Vec<Item>,
    images: Vec<RgbTile>,
    dataset: Option<String>,
}

impl Crops {
    fn new(task: Task, classes: Vec<String>, found: Vec<LabelledCrop>) -> Result<Self> {
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

/// Crops that may train models.
#[derive(Clone, Debug)]
pub struct TrainingSet(Crops);

/// Crops to be scored once, at the end; no training function takes them.
#[derive(Clone, Debug)]
pub struct TestSet(Crops);

impl TrainingSet {
    /// Reads the training part of a task from the data folder `dir` (holding `ami_br/`, or the
    /// classes' folders). No file of a test part is opened.
    ///
    /// # Errors
    /// [`TaskError`]: missing, unreadable or wrong-sized images, unknown labels, the same image
    /// under two labels.
    pub fn open(task: Task, dir: &Path) -> Result<Self> {
        read::open(task, dir, part::Part::Training, None).map(Self)
    }
}

impl TestSet {
    /// Reads the test part of a task from the data folder `dir`.
    ///
    /// # Errors
    /// As [`TrainingSet::open`].
    pub fn open(task: Task, dir: &Path) -> Result<Self> {
        read::open(task, dir, part::Part::Test, None).map(Self)
    }

    /// The same with the classes of a model, of which the test part may lack some.
    ///
    /// # Errors
    /// As [`TestSet::open`], and for a folder that is not one of the classes.
    pub fn of_classes(task: Task, dir: &Path, classes: &[String]) -> Result<Self> {
        read::open(task, dir, part::Part::Test, Some(classes)).map(Self)
    }
}

impl Deref for TrainingSet {
    type Target = Crops;
    fn deref(&self) -> &Crops {
        &self.0
    }
}

impl Deref for TestSet {
    type Target = Crops;
    fn deref(&self) -> &Crops {
        &self.0
    }
}

#[cfg(test)]
mod tests;
