//! The tasks and their labels.

use super::error::Result;
use serde::{Deserialize, Serialize};

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

/// Classes of a dataset of crops, in output order; the second is the positive one.
pub const LABELS: [&str; 2] = ["mimicker", "mitotic_figure"];

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

/// Which part is read; the one place that names both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Training,
    Test,
}

/// A coarser task over the same images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coarser {
    /// The task whose classes are the coarser ones.
    pub task: Task,
    /// Its name in file names.
    pub name: &'static str,
    /// In output order.
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
            Self::Crops => Some(LABELS[1]),
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
    /// Index into [`Coarser::classes`].
    pub class: usize,
    /// The class that each expert saw, those included who named none of the finer classes. Never
    /// empty.
    pub votes: Vec<usize>,
}
