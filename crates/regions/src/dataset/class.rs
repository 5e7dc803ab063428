//! The classes of labels.

use serde::{Deserialize, Serialize};

/// The meaning of a class.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The positive class: a mitotic figure.
    Figure,
    /// Resembles a figure but is not one.
    Mimicker,
    /// Another labelled object; neither a figure nor a hard negative.
    #[default]
    Other,
}

/// A class by the dataset's own word.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClassInfo {
    /// The word that labels use.
    pub name: String,
    /// Its meaning. Exactly one class of a dataset is [`Kind::Figure`].
    pub kind: Kind,
}
