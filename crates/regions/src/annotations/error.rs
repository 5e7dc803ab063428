//! What an importer refuses, with the file, the record and the way out.

use base::remedy::{Remedied, Remedy};
use base::text::Many;
use std::fmt;
use std::path::PathBuf;

/// One record that cannot be imported.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Problem {
    /// Which record, in the source's own numbering.
    pub record: String,
    /// Why not.
    pub reason: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.record, self.reason)
    }
}

/// Why a file was not imported.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "fields whose names state what they are")]
pub enum ImportError {
    /// The operating system refused.
    #[error("{file}: {reason}")]
    Io {
        /// Path of the file of annotations.
        file: PathBuf,
        reason: std::io::Error,
    },
    /// A table that cannot be read.
    #[error(transparent)]
    Table(base::table::TableError),
    /// Not a file of this format, or a broken one.
    #[error("{file}: {reason}")]
    Format {
        /// Path of the file of annotations.
        file: PathBuf,
        reason: String,
    },
    /// Columns or tables that the format needs are not there.
    #[error(
        "{file}: missing {}; found {}", missing.join(", "),
        if found.is_empty() { "nothing".to_owned() } else { found.join(", ") }
    )]
    Missing {
        /// Path of the file of annotations.
        file: PathBuf,
        /// What the format needs.
        missing: Vec<String>,
        found: Vec<String>,
    },
    /// Category names nobody has mapped.
    #[error(
        "{file}: unknown categories {}; state what they mean",
        categories.iter().map(|(n, c)| format!("`{n}` ({c} annotations)")).collect::<Vec<_>>().join(", ")
    )]
    Categories {
        /// Path of the file of annotations.
        file: PathBuf,
        /// Name and number of annotations.
        categories: Vec<(String, u64)>,
    },
    /// Categories that were given a meaning and that the file has in another spelling alone, or not at all where its
    /// format fixes the classes.
    #[error(
        "{file}: no category is named {}, but a meaning is given for it; {}", quoted(names),
        match known[..] {
            [] => "the format itself fixes the classes".to_owned(),
            _ => format!("the categories are {}", quoted(known)),
        }
    )]
    Mapped {
        /// Path of the file of annotations.
        file: PathBuf,
        /// The names, in lower case.
        names: Vec<String>,
        known: Vec<String>,
    },
    /// A class for all records of a file that states their classes.
    #[error(
        "{file}: {states} the classes, and a class was assumed for all records; that is for tables without labels"
    )]
    Assumed {
        /// Path of the file of annotations.
        file: PathBuf,
        /// Its part that states them, as the beginning of a sentence.
        states: String,
    },
    /// It is not certain how the boxes are written.
    #[error("{file}: {reason}")]
    Boxes {
        /// Path of the file of annotations.
        file: PathBuf,
        /// The evidence and the remedy.
        reason: String,
    },
    /// Records with impossible content; all of them were looked at.
    #[error(
        "{file}: {total} of the records cannot be used:\n{}{}",
        problems.iter().map(|p| format!("  {p}")).collect::<Vec<_>>().join("\n"),
        if *total > problems.len() { format!("\n  ... and {} more", *total - problems.len()) } else { String::new() }
    )]
    Records {
        /// Path of the file of annotations.
        file: PathBuf,
        /// The first of them.
        problems: Vec<Problem>,
        /// How many there are.
        total: usize,
    },
    /// Nothing to cut.
    #[error(
        "{file}: gives no crop ({} without a label that trains), and a corpus without crops is of no use; \
         give a file with labelled figures or look-alikes",
        Many(*unused, "annotation")
    )]
    NoCrops {
        /// Path of the file of annotations.
        file: PathBuf,
        /// Annotations that give no training crop.
        unused: u64,
    },
    /// The corpus could not be written.
    #[error(transparent)]
    Corpus(#[from] crops::CorpusError),
}

/// Names of categories that an error lists; more are counted.
const SHOWN: usize = 20;

fn quoted(names: &[String]) -> String {
    let shown = names.iter().take(SHOWN).map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

impl Remedied for ImportError {
    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Categories { .. } => Some(Remedy::Categories),
            Self::Records { .. } => Some(Remedy::Lenient),
            Self::Boxes { .. } => Some(Remedy::BoxOrder),
            Self::Missing { missing, .. } if missing.iter().any(|m| m.contains("label")) => {
                Some(Remedy::AssumeClass)
            }
            Self::Corpus(e) => e.remedy(),
            _ => None,
        }
    }
}
