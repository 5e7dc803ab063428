//! From the data of others to a regions dataset: annotation files of every format that
//! [`crate::annotations`] reads, and four collections that are folders of images.

mod ami;
mod annotations;
mod close;
mod folder;
mod icpr;
mod mitos;
mod report;

pub use ami::ami_br;
pub use annotations::annotated;
pub use folder::he_folder;
pub use icpr::icpr;
pub use mitos::mitos;
pub(crate) use report::write_same_pixels;
pub use report::{ImportedRegions, RegionsPlan};

use super::{Builder, Given, Image, Part, Probe, RegionsError, Result, probe};
use crate::annotations::Problem;
use base::table::Unread;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// A collection that is a folder of images, and its reader.
pub struct FolderImporter {
    /// Name on the command line.
    pub name: &'static str,
    /// One line of help.
    pub about: &'static str,
    /// The reader.
    pub read: fn(&Path, &Options) -> Result<Imported>,
}

/// Every such collection.
pub static FOLDER_IMPORTERS: &[FolderImporter] = &[
    FolderImporter {
        name: "icpr",
        about: "ICPR 2012 contest folder: frames, partial frames, negatives",
        read: icpr,
    },
    FolderImporter {
        name: "mitos",
        about: "MITOS-ATYPIA-14 folder: frames and labels.csv with figures and reviewed look-alikes",
        read: mitos,
    },
    FolderImporter {
        name: "ami-br",
        about: "AMi-Br folder of patches: MIDOG21 trains, TUPAC16 is the test part",
        read: ami_br,
    },
    FolderImporter {
        name: "he-folder",
        about: "folder of H&E images without labels, at any depth",
        read: he_folder,
    },
];

/// The collection of that name.
#[must_use]
pub fn folder_importer(name: &str) -> Option<&'static FolderImporter> {
    FOLDER_IMPORTERS.iter().find(|i| i.name == name)
}

/// Which images count as exhaustively labelled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exhaustive {
    /// As the importer knows it: of annotation files, images with at least one label.
    #[default]
    Known,
    /// All of them; one without labels has no figure.
    All,
    /// None of them; unlabelled figures may occur anywhere.
    None,
}

impl std::str::FromStr for Exhaustive {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        match word {
            "known" => Ok(Self::Known),
            "all" => Ok(Self::All),
            "none" => Ok(Self::None),
            _ => Err(format!("`{word}` is not one of known, all, none")),
        }
    }
}

/// What the user decides.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Name of the dataset.
    pub name: String,
    /// Program and version, for the manifest.
    pub program: String,
    /// um/px of images that state none.
    pub given: Given,
    /// Which images count as exhaustively labelled.
    pub exhaustive: Exhaustive,
    /// Leave out images and records that cannot be used, and count them.
    pub lenient: bool,
    /// Part of every image, unless the source fixes one.
    pub part: Part,
    /// Name of the collection, for images whose source names none.
    pub source: Option<String>,
    /// Images without labels whose names begin with one of these are for calibration: nothing trains on them.
    pub calibration: Vec<String>,
    /// Word of the positive class instead of `mitotic_figure`.
    pub positive: Option<String>,
}

/// What was found, ready to be written, and what was left out.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The dataset to be written.
    pub dataset: Builder,
    /// Images and records that were left out, each with its reason.
    pub left_out: Vec<Problem>,
    /// Columns of the source's own table that are not read and may be misspelt.
    pub unread_columns: Option<Unread>,
}

impl Options {
    fn builder(&self) -> Builder {
        use super::{ClassInfo, Kind};
        let class = |name: &str, kind| ClassInfo { name: name.into(), kind };
        let figure = self.positive.as_deref().unwrap_or(Builder::FIGURE);
        let classes = vec![class(figure, Kind::Figure), class(Builder::MIMICKER, Kind::Mimicker)];
        Builder::with_classes(&self.name, &self.program, classes)
    }

    fn figure(&self) -> &str {
        self.positive.as_deref().unwrap_or(Builder::FIGURE)
    }

    fn is_exhaustive(&self, known: bool) -> bool {
        match self.exhaustive {
            Exhaustive::Known => known,
            Exhaustive::All => true,
            Exhaustive::None => false,
        }
    }
}

/// An image to be looked at.
struct Wanted<T> {
    file: PathBuf,
    given: Option<super::GivenMpp>,
    what: T,
}

/// Looks at all files at once, in order. What cannot be read is an error, or left out and counted
/// when lenient; a missing um/px is always an error, with the number of files that lack it.
fn probe_all<T: Send + Sync>(
    wanted: Vec<Wanted<T>>,
    lenient: bool,
    left_out: &mut Vec<Problem>,
) -> Result<Vec<(Probe, T)>> {
    let looked: Vec<_> =
        wanted.into_par_iter().map(|w| (probe(&w.file, w.given), w.file, w.what)).collect();
    let without = |r: &Result<Probe>| matches!(r, Err(RegionsError::MissingMpp { .. }));
    let missing = looked.iter().filter(|(r, ..)| without(r)).count();
    let mut out = Vec::with_capacity(looked.len());
    for (found, file, what) in looked {
        match found {
            Ok(p) => out.push((p, what)),
            Err(RegionsError::MissingMpp { path, .. }) => {
                return Err(RegionsError::MissingMpp { path, others: missing - 1 });
            }
            Err(e) if lenient => {
                left_out.push(Problem { record: file.display().to_string(), reason: e.to_string() })
            }
            Err(e) => return Err(e),
        }
    }
    Ok(out)
}

/// Refuses an import that found nothing.
fn some(images: &[Image], path: &Path) -> Result<()> {
    if images.is_empty() {
        return Err(RegionsError::file(path, "no image of this kind was found"));
    }
    Ok(())
}
