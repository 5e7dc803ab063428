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

mod error;
mod folds;
mod item;
mod labels;
mod read;
mod regions;
mod shards;

use labels::Part;
use std::ops::Deref;
use std::path::Path;

pub use error::{Result, TaskError};
pub use folds::Folds;
pub use item::{Crops, Item};
pub use labels::{ATYPIA, Coarse, Coarser, LABELS, MORPHOLOGY, Task};

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
        read::open(task, dir, Part::Training, None).map(Self)
    }
}

impl TestSet {
    /// Reads the test part of a task from the data folder `dir`.
    ///
    /// # Errors
    /// As [`TrainingSet::open`].
    pub fn open(task: Task, dir: &Path) -> Result<Self> {
        read::open(task, dir, Part::Test, None).map(Self)
    }

    /// The same with the classes of a model, of which the test part may lack some.
    ///
    /// # Errors
    /// As [`TestSet::open`], and for a folder that is not one of the classes.
    pub fn of_classes(task: Task, dir: &Path, classes: &[String]) -> Result<Self> {
        read::open(task, dir, Part::Test, Some(classes)).map(Self)
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
