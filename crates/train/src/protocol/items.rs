//! `items.csv`: what a run over folds was trained on, crop by crop.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use base::table::{Format, Table, Writer};
use regions::task::{Item, TrainingSet};

use crate::error::{Result, TrainError};

/// File name in a run.
const FILE: &str = "items.csv";

/// Writes the items of a set into a run.
pub(super) fn write(run: &Path, set: &TrainingSet) -> Result<()> {
    let mut table = Writer::new(["file", "source", "slide", "class", "sha256"]);
    for item in set.items() {
        let class = &set.classes()[item.class];
        table.push([&item.file, &item.source, &item.slide, class, &item.hash]);
    }
    let path = run.join(FILE);
    table.write(&path).map_err(|e| TrainError::run(&path, e))
}

/// The items of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Items {
    /// File by the digest of its size and pixels.
    files: BTreeMap<String, String>,
    /// Items that name neither slide nor patient: their files.
    alone: BTreeSet<String>,
}

impl Items {
    /// Of a run; empty for a run of an older version.
    ///
    /// # Errors
    /// A table that was changed.
    pub fn read(run: &Path) -> Result<Self> {
        let path = run.join(FILE);
        if !path.is_file() {
            return Ok(Self::default());
        }
        let table = Table::read(&path, &Format::default())?;
        let [file, slide, sha256] = ["file", "slide", "sha256"].map(|c| table.need(&[c]));
        let (file, slide, sha256) = (file?, slide?, sha256?);
        let mut items = Self::default();
        for row in 0..table.len() {
            let name = table.cell(row, file);
            items.files.insert(table.cell(row, sha256).to_owned(), name.to_owned());
            if table.cell(row, slide) == name {
                items.alone.insert(name.to_owned());
            }
        }
        Ok(items)
    }

    /// The file of the item with the same pixels.
    #[must_use]
    pub fn same_pixels(&self, item: &Item) -> Option<&str> {
        self.files.get(&item.hash).map(String::as_str)
    }

    /// Whether an item shares only the file's name with one of these, which names no slide either: two images of two
    /// folders, as `train/a/1.png` and `test/a/1.png`.
    #[must_use]
    pub fn only_named_alike(&self, item: &Item) -> bool {
        item.slide == item.file
            && self.alone.contains(&item.file)
            && self.same_pixels(item).is_none()
    }
}
