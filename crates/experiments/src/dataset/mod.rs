//! Data sets by name: what they consist of, where they are to be had, and what a folder contains of them.
//!
//! One file per data set in `datasets/`, contained in the program.

mod check;
mod part;

pub use check::{Check, Checked, Count, Lacking, PieceCheck, State, check};
pub use part::part;

use crate::embedded;
use crate::error::{ExperimentError, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A data set as it is distributed.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataSet {
    /// Version of this form, 1.
    pub schema: u32,
    /// Name in experiments and on the command line.
    pub name: String,
    /// One line.
    pub title: String,
    /// Where it is to be had.
    pub page: String,
    /// Its terms.
    pub licence: String,
    /// The publication.
    pub cite: String,
    /// `open`, `registration`, `not public`, or a sentence.
    pub access: String,
    /// What it contains and what the paper makes of it.
    pub about: String,
    /// What a user should know.
    pub notes: Vec<String>,
    /// The files it consists of.
    #[serde(rename = "piece")]
    pub pieces: Vec<Piece>,
    /// Tumour types or collections, with scanners.
    #[serde(rename = "part", default)]
    pub parts: Vec<Part>,
    /// Divisions that were published, or named in the paper.
    #[serde(rename = "split", default)]
    pub splits: Vec<PublishedSplit>,
    /// Commands of this program that import it, by what they make.
    #[serde(default)]
    pub import: BTreeMap<String, Vec<String>>,
}

/// A part of a data set that shares tumour type or origin.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// Tumour type or collection, in the words of the labels.
    pub name: String,
    /// human or canine.
    pub species: String,
    /// Labelled images, where they are counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub images: Option<u64>,
    /// Scanners of its images.
    pub scanners: Vec<String>,
}

/// A division into folds or parts.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedSplit {
    /// Its name in the publication or in the paper.
    pub name: String,
    /// What it divides, and how.
    pub about: String,
    /// Whether the lists can be had.
    pub published: bool,
}

/// Files of one kind.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Piece {
    /// Name in import commands.
    pub id: String,
    /// One line.
    pub what: String,
    /// Places below the data root, in the order they are looked at.
    pub at: Vec<String>,
    /// Without it the data set is complete all the same.
    #[serde(default)]
    pub optional: bool,
    /// Which form its files have, and what they should contain.
    #[serde(flatten)]
    pub kind: Kind,
}

/// What a piece is, and what it should contain.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Kind {
    /// Labels that `corpus import` reads.
    Annotations {
        /// The import format.
        format: String,
        /// Tumour types that count; all without any.
        #[serde(default)]
        types: Vec<String>,
        /// Counts of the public files.
        expect: Expected,
        /// Counts that the paper states.
        #[serde(default)]
        paper: Option<Stated>,
    },
    /// Images that a piece of labels names.
    Images {
        /// That piece.
        named_by: String,
    },
    /// Files by their extensions, at any depth.
    Files {
        /// Extensions without dot, any case.
        extensions: Vec<String>,
        /// How many.
        count: u64,
    },
    /// A table whose rows are counted.
    Table {
        /// What is counted.
        rows: Vec<Rows>,
    },
    /// A folder that is handed over whole.
    Folder,
}

/// Numbers of labels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    /// Images with labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub images: Option<u64>,
    /// Mitotic figures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub figures: Option<u64>,
    /// Non-mitotic look-alikes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mimickers: Option<u64>,
    /// Typical figures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub typical: Option<u64>,
    /// Atypical figures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub atypical: Option<u64>,
}

impl Expected {
    /// The numbers by name.
    #[must_use]
    pub fn named(&self) -> [(&'static str, Option<u64>); 5] {
        [
            ("images", self.images),
            ("figures", self.figures),
            ("mimickers", self.mimickers),
            ("typical", self.typical),
            ("atypical", self.atypical),
        ]
    }
}

/// Numbers of the paper.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Stated {
    /// Line of its source.
    pub line: u32,
    /// The numbers.
    #[serde(flatten)]
    pub counts: Expected,
}

/// Rows of a table that share values.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rows {
    /// What the counted rows are, as the check prints it.
    pub name: String,
    /// How many.
    pub count: u64,
    /// Column and value; all rows without any.
    #[serde(default, rename = "where")]
    pub filter: BTreeMap<String, String>,
    /// What the paper states.
    #[serde(default)]
    pub paper: Option<StatedRows>,
}

/// A number of the paper.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatedRows {
    /// Line of its source.
    pub line: u32,
    /// The number.
    pub count: u64,
}

impl Piece {
    /// The first of its places that is there.
    #[must_use]
    pub fn find(&self, root: &Path) -> Option<PathBuf> {
        let folder = matches!(self.kind, Kind::Files { .. } | Kind::Images { .. } | Kind::Folder);
        let there = |p: &PathBuf| if folder { p.is_dir() } else { p.is_file() };
        self.at.iter().map(|p| root.join(p)).find(there)
    }
}

impl DataSet {
    /// The piece of this name.
    #[must_use]
    pub fn piece(&self, id: &str) -> Option<&Piece> {
        self.pieces.iter().find(|p| p.id == id)
    }

    /// Where the pieces are below a data root, and the reason where one is missing.
    #[must_use]
    pub fn located(&self, root: &Path) -> BTreeMap<String, Option<PathBuf>> {
        self.pieces.iter().map(|p| (p.id.clone(), p.find(root))).collect()
    }

    /// Tumour types that its labels are restricted to.
    #[must_use]
    pub fn types(&self) -> &[String] {
        self.pieces
            .iter()
            .find_map(|p| match &p.kind {
                Kind::Annotations { types, .. } => Some(types.as_slice()),
                _ => None,
            })
            .unwrap_or(&[])
    }
}

/// All data sets, by name.
///
/// # Errors
/// A file that does not follow the form.
pub fn all() -> Result<Vec<DataSet>> {
    let mut found = embedded::DATASETS
        .iter()
        .map(|(file, text)| {
            let file = format!("datasets/{file}");
            let set: DataSet =
                toml::from_str(text).map_err(|e| ExperimentError::form(&file, e.message()))?;
            if set.schema == 1 {
                Ok(set)
            } else {
                Err(ExperimentError::form(file, format!("schema {} is not 1", set.schema)))
            }
        })
        .collect::<Result<Vec<_>>>()?;
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

/// The data set of this name; case does not matter.
///
/// # Errors
/// [`ExperimentError::Unknown`] with the names that there are.
pub fn find(name: &str) -> Result<DataSet> {
    let all = all()?;
    let known = all.iter().map(|d| d.name.as_str()).collect::<Vec<_>>().join(", ");
    all.into_iter()
        .find(|d| d.name.eq_ignore_ascii_case(name))
        .ok_or_else(|| ExperimentError::Unknown { what: "data set", name: name.into(), known })
}

impl std::fmt::Display for DataSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{}: {}", self.name, self.title)?;
        writeln!(f, "{}\n", self.about.trim())?;
        for (name, text) in [
            ("page", &self.page),
            ("licence", &self.licence),
            ("access", &self.access),
            ("cite", &self.cite),
        ] {
            writeln!(f, "{name:<8} {text}")?;
        }
        for piece in &self.pieces {
            let optional = if piece.optional { " (optional)" } else { "" };
            writeln!(f, "\n{}{optional}: {}", piece.id, piece.what)?;
            writeln!(f, "  at     {}", piece.at.join(", or "))?;
            writeln!(f, "  counts {}", piece.kind)?;
        }
        for part in &self.parts {
            let images = part.images.map_or_else(String::new, |n| format!(", {n} images"));
            writeln!(
                f,
                "\n{} ({}{images}): {}",
                part.name,
                part.species,
                part.scanners.join(", ")
            )?;
        }
        for split in &self.splits {
            let had = if split.published { "published" } else { "not published" };
            writeln!(f, "\nsplit {} ({had}): {}", split.name, split.about)?;
        }
        for note in &self.notes {
            writeln!(f, "\nnote: {note}")?;
        }
        for (what, words) in &self.import {
            writeln!(f, "\nas {what}: mithras {}", words.join(" "))?;
        }
        Ok(())
    }
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let numbers = |e: &Expected| {
            let parts =
                e.named().into_iter().filter_map(|(name, n)| Some(format!("{} {name}", n?)));
            parts.collect::<Vec<_>>().join(", ")
        };
        match self {
            Self::Annotations { format, types, expect, paper } => {
                write!(f, "{} (format {format})", numbers(expect))?;
                if !types.is_empty() {
                    write!(f, " of {}", types.join(", "))?;
                }
                match paper {
                    Some(p) => write!(f, "; paper, line {}: {}", p.line, numbers(&p.counts)),
                    None => Ok(()),
                }
            }
            Self::Images { named_by } => write!(f, "every image that `{named_by}` names"),
            Self::Files { extensions, count } => {
                write!(f, "{count} files ({})", extensions.join(", "))
            }
            Self::Table { rows } => {
                let counts = rows.iter().map(|r| format!("{} {}", r.count, r.name));
                f.write_str(&counts.collect::<Vec<_>>().join(", "))
            }
            Self::Folder => f.write_str("the whole folder"),
        }
    }
}
