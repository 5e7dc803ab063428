//! A regions dataset from the data of others, written and summed up.

use super::close::close_labels;
use super::{Imported, Options, annotated, folder_importer};
use crate::annotations::{CloseLabels, Contradiction, ImportOptions, Problem, Summary, importer};
use crate::dataset::{Counts, Dataset, Image, RegionsError, Result};
use base::file::FileError;
use base::table::Unread;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::{Path, PathBuf};

/// What is read, and where it goes.
#[derive(Clone, Copy, Debug)]
pub struct RegionsPlan<'a> {
    /// Name of a collection or of a format of annotations.
    pub format: &'a str,
    /// The collection's folder, or the annotations.
    pub file: &'a Path,
    /// Folder of the images, for annotations.
    pub images: Option<&'a Path>,
    /// How annotations are read.
    pub annotations: &'a ImportOptions,
    /// What the user decided about the dataset.
    pub options: &'a Options,
    /// The dataset's folder.
    pub out: &'a Path,
}

/// What came of it; `import.json`.
#[derive(Clone, Debug, Serialize)]
pub struct ImportedRegions {
    #[serde(rename = "dataset")]
    name: String,
    digest: String,
    positive: String,
    #[serde(flatten)]
    counts: Counts,
    test_images: usize,
    left_out: Vec<Problem>,
    /// Records of categories that are left out, by category.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    ignored: BTreeMap<String, u64>,
    /// Places with two labels, both of which are kept.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    contradictions: Vec<Contradiction>,
    /// Labels that may be of one cell, all of which are kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    close_labels: Option<CloseLabels>,
    /// Labels whose box reaches into the image and whose middle is outside; they are kept.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    outside: Vec<String>,
    /// Images that are the same file as another one under another name; they are kept.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    same_files: Vec<String>,
    /// Images whose files differ and whose pixels are those of another one; they are kept, and stay in its fold.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    same_pixels: Vec<String>,
    /// Columns of a table of any form that are not read.
    #[serde(skip_serializing_if = "Option::is_none")]
    unread_columns: Option<Unread>,
    #[serde(skip)]
    words: String,
}

impl RegionsPlan<'_> {
    /// Reads and writes the dataset, and `import.json` next to it.
    ///
    /// # Errors
    /// [`RegionsError`]; annotations without a folder of images among them.
    pub fn run(&self) -> Result<ImportedRegions> {
        let mut summary = None;
        let close;
        let Imported { dataset, left_out, unread_columns } = match folder_importer(self.format) {
            Some(_) if !self.annotations.is_whole() => {
                return Err(RegionsError::Invalid(format!(
                    "`{}` is a folder that is taken whole; types, lists of images, tables of splits, meanings of \
                     categories and an assumed class belong to formats of annotations",
                    self.format
                )));
            }
            Some(folder) => {
                let made = (folder.read)(self.file, self.options)?;
                close = close_labels(made.dataset.images(), self.options.figure());
                made
            }
            None => {
                let invalid = |what: String| RegionsError::Invalid(what);
                let unknown = || invalid(format!("`{}` is not a known format", self.format));
                let format = importer(self.format).ok_or_else(unknown)?;
                let needed = || invalid("annotations need a folder of images".into());
                let images = self.images.ok_or_else(needed)?;
                let all = format.annotations(self.file, self.annotations)?;
                let made = annotated(&all, images, self.options)?;
                let images = made.dataset.images().iter();
                let mpp = images.map(|i| (i.name.as_str(), [i.mpp.x.get(), i.mpp.y.get()]));
                let mpp: HashMap<&str, [f64; 2]> = mpp.collect();
                close = all.close_labels(|i| mpp.get(all.images[i].name.as_str()).copied());
                summary = Some(all.summary());
                made
            }
        };
        let set = dataset.write(self.out)?;
        let mut done = ImportedRegions::new(&set, left_out);
        done.unread_columns = unread_columns;
        if let Some(Summary { ignored, contradictions, unread_columns, .. }) = summary {
            (done.ignored, done.contradictions) = (ignored, contradictions);
            done.unread_columns = unread_columns;
        }
        done.close_labels = close;
        let path: PathBuf = self.out.join("import.json");
        base::file::write(&path, &base::json::pretty(&done)).map_err(FileError::from)?;
        Ok(done)
    }
}

impl ImportedRegions {
    fn new(set: &Dataset, left_out: Vec<Problem>) -> Self {
        Self {
            name: set.name().into(),
            digest: set.digest().into(),
            positive: set.positive().into(),
            counts: set.counts(),
            test_images: set.test().images().len(),
            left_out,
            ignored: BTreeMap::new(),
            contradictions: Vec::new(),
            close_labels: None,
            outside: outside(set.images()),
            same_files: same_files(set.images()),
            same_pixels: same_pixels(set.images()),
            unread_columns: None,
            words: set.to_string(),
        }
    }
}

/// Labels whose middle is outside their image, named by their places.
fn outside(images: &[Image]) -> Vec<String> {
    let labels = images.iter().flat_map(|image| image.labels.iter().map(move |l| (image, l)));
    let is_inside = |v: f64, side: u32| (0.0..f64::from(side)).contains(&v);
    labels
        .filter(|(image, l)| !is_inside(l.x, image.width) || !is_inside(l.y, image.height))
        .map(|(image, l)| format!("{}, ({}, {}) px", image.name, l.x, l.y))
        .collect()
}

/// Images whose bytes are those of an earlier one, with its name.
fn same_files(images: &[Image]) -> Vec<String> {
    let mut known: HashMap<&str, &str> = HashMap::new();
    let again = images.iter().filter_map(|image| {
        let first = *known.entry(&image.sha256).or_insert(&image.name);
        (first != image.name).then(|| format!("{} and {first}", image.name))
    });
    again.collect()
}

/// Writes how many images have the pixels of another one.
pub(crate) fn write_same_pixels(f: &mut fmt::Formatter<'_>, pairs: &[String]) -> fmt::Result {
    let Some(first) = pairs.first() else { return Ok(()) };
    let n = pairs.len();
    let images = if n == 1 { "image has" } else { "images have" };
    writeln!(f, "{n:>9} {images} the same pixels as another (kept): first {first}")
}

/// Images whose pixels are those of an earlier one in another file, with its name.
fn same_pixels(images: &[Image]) -> Vec<String> {
    let mut known: HashMap<&str, &Image> = HashMap::new();
    let again = images.iter().filter_map(|image| {
        let first = *known.entry(image.pixels.as_deref()?).or_insert(image);
        (first.sha256 != image.sha256).then(|| format!("{} and {}", image.name, first.name))
    });
    again.collect()
}

impl fmt::Display for ImportedRegions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)?;
        for (name, n) in &self.ignored {
            writeln!(f, "{n:>9} `{name}` ignored")?;
        }
        if !self.contradictions.is_empty() {
            writeln!(f, "{:>9} places with two labels (kept)", self.contradictions.len())?;
        }
        self.contradictions.iter().take(10).try_for_each(|c| writeln!(f, "          {c}"))?;
        self.close_labels.iter().try_for_each(|close| write!(f, "{close}"))?;
        if let Some(first) = self.outside.first() {
            let n = self.outside.len();
            let labels = if n == 1 { "label has its" } else { "labels have their" };
            writeln!(f, "{n:>9} {labels} middle outside the image (kept): first at {first}")?;
        }
        if let Some(first) = self.same_files.first() {
            let n = self.same_files.len();
            let images = if n == 1 { "image is" } else { "images are" };
            writeln!(f, "{n:>9} {images} the same file as another (kept): first {first}")?;
        }
        write_same_pixels(f, &self.same_pixels)?;
        self.unread_columns.iter().try_for_each(|unread| writeln!(f, "note: {unread}"))?;
        self.left_out.iter().take(20).try_for_each(|p| writeln!(f, "          left out: {p}"))?;
        match self.left_out.len() {
            0..=20 => Ok(()),
            n => writeln!(f, "          left out: {} more", n - 20),
        }
    }
}
