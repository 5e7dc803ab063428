//! Annotated images, whatever file they were read from.

use super::category::Class;
use super::error::Problem;
use crate::units::Units;
use base::table::Unread;
use crops::schema::Split;
use mitosis::{Level0, Point};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// An image that the source lists, labelled or not.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct ImageEntry {
    /// Unique name: the file name, with its folder where file names repeat.
    pub name: String,
    /// Width in level-0 pixels, when stated.
    pub width: Option<u32>,
    /// Height in level-0 pixels, when stated.
    pub height: Option<u32>,
    /// Cohort or tumour type, when stated.
    pub cohort: Option<String>,
    /// The slide that it was cut from, when stated; else it is a slide of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slide: Option<String>,
    /// Patient or case, when stated.
    pub patient: Option<String>,
    /// Scanner, when stated.
    pub scanner: Option<String>,
    /// Evaluation side, when a table fixes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub split: Option<Split>,
    /// What its records state of um/px and in um.
    #[serde(skip)]
    pub units: Units,
}

impl ImageEntry {
    /// Width and height in level-0 pixels, when both are stated.
    pub(crate) fn size(&self) -> Option<(f64, f64)> {
        self.width.zip(self.height).map(|(w, h)| (f64::from(w), f64::from(h)))
    }
}

impl ImageEntry {
    /// Name of the slide that it belongs to.
    #[must_use]
    pub fn slide_name(&self) -> &str {
        self.slide.as_deref().unwrap_or(&self.name)
    }

    /// The names by which its um/px may be given.
    pub(crate) fn names_of<'a>(&'a self, file: &'a Path) -> Vec<&'a str> {
        let more = [file.file_name().and_then(|n| n.to_str()), self.slide.as_deref()];
        let own = [Some(self.name.as_str())].into_iter().chain(more);
        own.chain([self.scanner.as_deref()]).flatten().collect()
    }

    /// Compares the size that the annotations state with that of the image file: where they differ,
    /// the labels were drawn on another image, a shrunken copy or a turned view of it.
    ///
    /// # Errors
    /// Both sizes, and what is likely.
    pub fn agrees(&self, (width, height): (u64, u64)) -> Result<(), SizesDiffer> {
        let (Some(w), Some(h)) = (self.width.map(u64::from), self.height.map(u64::from)) else {
            return Ok(());
        };
        if (w, h) == (width, height) {
            return Ok(());
        }
        let likely = if (w, h) == (height, width) {
            "the labels belong to a turned view of it"
        } else {
            "the labels belong to another copy of it"
        };
        Err(SizesDiffer { stated: [w, h], found: [width, height], likely })
    }
}

/// Annotations and image state different sizes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the annotations state {} x {} px, the image has {} x {} px: {likely}",
    stated[0], stated[1], found[0], found[1]
)]
pub struct SizesDiffer {
    /// Width and height in the annotations, px.
    pub stated: [u64; 2],
    /// Width and height of the image file, px.
    pub found: [u64; 2],
    /// The likely cause.
    pub likely: &'static str,
}

/// A labelled place of an image, as the source has it.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Annotation {
    /// Number of its image in [`Annotations::images`].
    pub image: usize,
    /// The source's own number or line.
    pub record: String,
    /// What it is.
    pub class: Class,
    /// The source's word for it.
    pub category: String,
    /// `typical`, `atypical`, or the source's finer class.
    pub subtype: Option<String>,
    /// Centre in level-0 pixels.
    pub centre: Point<Level0>,
    /// Box `[x0, y0, x1, y1]` in level-0 pixels, when the source draws one.
    #[serde(rename = "box")]
    pub bbox: Option<[f64; 4]>,
    /// Whether the box reaches over the image's edge.
    pub clipped: bool,
    /// Single annotators' words, by annotator.
    pub votes: BTreeMap<String, String>,
    /// Ready-made patch file, when the source comes with patches.
    pub patch: Option<String>,
    /// Evaluation side, when the source fixes it.
    pub split: Option<Split>,
}

impl Annotation {
    /// The same, so many level-0 px to the right and down.
    #[must_use]
    pub fn moved(&self, [x, y]: [f64; 2]) -> Self {
        let mut at = self.clone();
        at.centre = Point::new(self.centre.x + x, self.centre.y + y);
        at.bbox = self.bbox.map(|[x0, y0, x1, y1]| [x0 + x, y0 + y, x1 + x, y1 + y]);
        at
    }
}

/// What a file holds.
#[derive(Clone, Debug, Default)]
pub struct Annotations {
    /// Importer name.
    pub format: &'static str,
    /// Path of the file of annotations.
    pub file: PathBuf,
    /// Coordinates count from the slide's bounds where it has some, as QuPath's do; else from its corner.
    pub from_bounds: bool,
    /// Image sizes in the file are known to be wrong at times: they refuse nothing.
    pub sizes_are_hearsay: bool,
    /// Images, in the source's order.
    pub images: Vec<ImageEntry>,
    /// Annotations, in the source's order, without ignored ones.
    pub annotations: Vec<Annotation>,
    /// Names of the file's categories, also of those without annotations; none where the format fixes the classes.
    pub categories: BTreeSet<String>,
    /// Annotations left out by category (regions, and what the user maps to ignore), by name.
    pub ignored: BTreeMap<String, u64>,
    /// Annotations that the source itself marks as deleted.
    pub deleted: u64,
    /// Records left out because of `lenient`.
    pub skipped: Vec<Problem>,
    /// Images that the user did not select, by reason.
    pub not_selected: BTreeMap<String, u64>,
    /// Columns of a table of any form that are not read.
    pub unread_columns: Option<Unread>,
}
