//! Reads what annotators produced. One file per format, one table: [`IMPORTERS`].
//!
//! An importer turns a file into [`Annotations`]: images, and one entry per annotation with its
//! class, the source's own word for it, single annotators' verdicts, box and centre in level-0
//! pixels. Nothing is dropped silently: unknown categories and impossible records are errors that
//! name them, and with `lenient` they are left out and counted.
//!
//! From a table of labels and a folder of images to a regions dataset that trainers read:
//!
//! ```
//! use regions::annotations::{ImportOptions, importer};
//! use regions::Given;
//! use regions::import::{Options, annotated};
//! use mitosis::Mpp;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let dir = tempfile::tempdir()?;
//! let (images, table) = (dir.path().join("images"), dir.path().join("labels.csv"));
//! std::fs::create_dir(&images)?;
//! image::RgbImage::from_pixel(256, 256, image::Rgb([230, 210, 225])).save(images.join("a.png"))?;
//! // Positions are level-0 pixels.
//! std::fs::write(&table, "image,x,y,label\na.png,60,80,mf\na.png,150,90,imposter\n")?;
//!
//! let csv = importer("csv").ok_or("no such format")?;
//! let labels = (csv.read)(&table, &ImportOptions::default())?;
//! // A PNG states no micrometres per pixel, and none are guessed.
//! let given = Given { all: Some(Mpp::new(0.25)?), ..Given::default() };
//! let options = Options { name: "mine".into(), given, ..Options::default() };
//! let dataset = annotated(&labels, &images, &options)?.dataset.write(&dir.path().join("mine"))?;
//!
//! let counts = dataset.counts();
//! assert_eq!((counts.images, counts.classes["mitotic_figure"], counts.classes["mimicker"]), (1, 1, 1));
//! # Ok(())
//! # }
//! ```

mod asap;
mod boxes;
mod category;
mod collect;
pub mod columns;
mod display;
mod error;
mod geojson;
mod json;
mod named;
mod select;
mod sheet;
mod sliderunner;
mod summary;
mod table;
mod tupac;
mod twice;

pub use boxes::BoxOrder;
pub use category::{COUNTED, Class, Mapping, MappingError, Meaning};
pub use error::{ImportError, Problem};
pub use select::{Selection, SplitTable};
pub use summary::{Contradiction, Summary};

use crate::units::Units;
use crops::schema::Split;
use mitosis::{Level0, Point};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A format and its reader.
pub struct Importer {
    /// Name on the command line.
    pub name: &'static str,
    /// One line of help.
    pub about: &'static str,
    /// The reader.
    pub read: fn(&Path, &ImportOptions) -> Result<Annotations, ImportError>,
}

impl Importer {
    /// The annotations of a file, or the part of them that the options select.
    ///
    /// # Errors
    /// What the reader refuses, [`ImportError::Mapped`], and what [`Annotations::select`] refuses.
    pub fn annotations(
        &self,
        path: &Path,
        options: &ImportOptions,
    ) -> Result<Annotations, ImportError> {
        let all = (self.read)(path, options)?;
        let is_fixed = all.categories.is_empty() && !all.annotations.is_empty();
        let names = options.mapping.unmatched(&all.categories, is_fixed);
        if !names.is_empty() {
            let (file, known) = (path.into(), all.categories.into_iter().collect());
            return Err(ImportError::Mapped { file, names, known });
        }
        all.select(&options.select)
    }
}

/// Every format that can be imported.
pub static IMPORTERS: &[Importer] = &[
    Importer {
        name: "midog-json",
        about: "MIDOG 2021, 2022, MIDOG++ and CCMCT JSON; boxes are x1, y1, x2, y2",
        read: json::midog,
    },
    Importer {
        name: "sliderunner",
        about: "SlideRunner SQLite: MIDOG, CCMCT, CMC, TUPAC alternative labels",
        read: sliderunner::read,
    },
    Importer {
        name: "midog25-csv",
        about: "MIDOG 2025 typical / atypical table",
        read: named::midog25,
    },
    Importer {
        name: "ami-br",
        about: "AMi-Br and AMi-Morph table (labels.csv); its TUPAC16 part is marked as test data",
        read: named::ami_br,
    },
    Importer {
        name: "tupac-csv",
        about: "TUPAC16 ground truth: a folder of row,column CSV files, or one of them",
        read: tupac::read,
    },
    Importer {
        name: "csv",
        about: "any table with columns for image, position or box, and label",
        read: table::read,
    },
    Importer {
        name: "geojson",
        about: "QuPath GeoJSON, one file per image, or a folder of them",
        read: geojson::read,
    },
    Importer {
        name: "asap",
        about: "ASAP XML, one file per image, or a folder of them",
        read: asap::read,
    },
    Importer { name: "coco", about: "COCO JSON; boxes are x, y, width, height", read: json::coco },
];

/// The importer of that name.
#[must_use]
pub fn importer(name: &str) -> Option<&'static Importer> {
    IMPORTERS.iter().find(|i| i.name == name)
}

/// Whose labels count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LabelSource {
    /// The file's consensus: agreed class, category, majority.
    #[default]
    Agreed,
    /// One annotator, by the name the file uses.
    Annotator(String),
}

/// What the user may decide.
#[derive(Clone, Debug)]
pub struct ImportOptions {
    /// Meanings of category names.
    pub mapping: Mapping,
    /// Leave impossible records out and count them, instead of refusing the file.
    pub lenient: bool,
    /// States how boxes are written, against all evidence checks.
    pub boxes: Option<BoxOrder>,
    /// Whose labels count.
    pub labels: LabelSource,
    /// Class of every record of a table without a label column.
    pub assume: Option<Class>,
    /// Side of the box around a bare point, in level-0 pixels.
    pub box_px: f64,
    /// Cohort for sources that name none.
    pub cohort: Option<String>,
    /// Which images are taken.
    pub select: Selection,
}

impl ImportOptions {
    /// Whether nothing is set that only files of annotations can follow.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.select.is_all() && self.mapping.is_empty() && self.assume.is_none()
    }
}

impl Default for ImportOptions {
    fn default() -> Self {
        Self {
            mapping: Mapping::default(),
            lenient: false,
            boxes: None,
            labels: LabelSource::Agreed,
            assume: None,
            box_px: 50.0,
            cohort: None,
            select: Selection::default(),
        }
    }
}

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

/// One annotation.
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
}
