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

mod annotation;
mod asap;
mod boxes;
mod category;
mod close;
mod collect;
pub mod columns;
mod display;
mod error;
mod files;
mod geojson;
mod json;
mod named;
mod options;
mod select;
mod sheet;
mod sliderunner;
mod summary;
mod table;
mod tupac;
mod twice;

pub use annotation::{Annotation, Annotations, ImageEntry, SizesDiffer};
pub use boxes::BoxOrder;
pub use category::{COUNTED, Class, Mapping, MappingError, Meaning};
pub(crate) use close::Mark;
pub use close::{CloseLabels, ClosePair};
pub use error::{ImportError, Problem};
pub use geojson::NOT_A_LABEL;
pub use options::{ImportOptions, LabelSource};
pub use select::{Selection, SplitTable};
pub use summary::{Contradiction, Summary};

use std::path::Path;

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
