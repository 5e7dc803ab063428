//! Which images each fold leaves out, as it is stored.

use base::file::FileError;
use serde::{Deserialize, Serialize};

/// Why folds cannot be made or used.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "fields whose names state what they are")]
pub enum FoldsError {
    /// The manifest cannot be read or written, is not valid, was changed, or belongs to other data.
    #[error(transparent)]
    File(#[from] FileError),
    /// The data cannot be split as asked.
    #[error("{0}")]
    Invalid(String),
    /// A slide or patient on two sides.
    #[error(
        "{what} `{name}` belongs to the groups `{first}` and `{second}`; no fold can keep it whole"
    )]
    Leak { what: &'static str, name: String, first: String, second: String },
}

/// Shorthand.
pub type Result<T, E = FoldsError> = std::result::Result<T, E>;

/// Which kind of dataset was split.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DataKind {
    /// Images with labelled figures ([`crate::dataset`]).
    Regions,
    /// Labelled crops.
    Crops,
    /// Several datasets, of one kind or both.
    Several,
}

/// How groups become folds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scheme {
    /// So many folds of whole groups, each with its share of figures per source.
    Stratified(usize),
    /// One fold per group: every slide (with all else of its patient) is held out once.
    LeaveOneOut,
    /// No fold: all is trained on, and nothing can be measured.
    Whole,
    /// By a table, e.g. a published split.
    Given,
}

/// What becomes of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// Held out by this fold, trained on by the others.
    Fold(usize),
    /// Trained on by every fold, because it cannot validate.
    Train,
    /// In no fold.
    Test,
}

/// The contents of a group, for people and for stratifying.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// Its first patient or, without one, its first slide.
    pub name: String,
    /// By name.
    pub slides: Vec<String>,
    /// Those that are known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub patients: Vec<String>,
    /// What becomes of it.
    pub place: Place,
    /// Images or crops in it.
    pub items: u64,
    /// Objects of the positive class in it.
    pub figures: u64,
}

/// The folds of one dataset.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FoldManifest {
    /// Always [`FORMAT`](super::FORMAT).
    pub format: String,
    /// Always [`SCHEMA`](super::SCHEMA).
    pub schema: u32,
    /// What was split.
    pub kind: DataKind,
    /// Digest of the dataset that was split.
    pub dataset: String,
    /// How groups were dealt to folds.
    pub scheme: Scheme,
    /// Seed of ties.
    pub seed: u64,
    /// Names of the folds: their numbers, or the groups that they leave out.
    pub folds: Vec<String>,
    /// Every group once.
    pub groups: Vec<Group>,
    /// SHA-256 over the fields above.
    pub digest: String,
}
