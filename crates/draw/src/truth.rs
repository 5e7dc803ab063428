//! What was drawn, known exactly.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A mitotic figure or something that only looks like one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A mitotic figure.
    Mitotic,
    /// A mimicker.
    Mimicker,
}

/// What exactly was drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Late prophase: a round nucleus of condensed threads.
    Prophase,
    /// A clump with projections.
    Prometaphase,
    /// The plate seen from the side.
    Metaphase,
    /// The plate seen along the spindle: a ring.
    Ring,
    /// Two plates drawing apart.
    Anaphase,
    /// Two dark bars in a cleaving cell.
    Telophase,
    /// An atypical figure with three poles.
    Multipolar,
    /// A shrunken, smooth, dark nucleus in eosinophilic cytoplasm.
    Pyknotic,
    /// Several smooth globules in eosinophilic cytoplasm.
    Apoptotic,
    /// A dark round lymphocyte.
    DarkLymphocyte,
    /// A large smudged, hyperchromatic nucleus.
    Smudged,
}

impl Phase {
    /// Phases of a mitotic figure, in the order they are dealt out.
    pub const MITOTIC: [Self; 9] = [
        Self::Metaphase,
        Self::Prometaphase,
        Self::Anaphase,
        Self::Ring,
        Self::Metaphase,
        Self::Telophase,
        Self::Prophase,
        Self::Multipolar,
        Self::Prometaphase,
    ];

    /// Kinds of mimicker, in the order they are dealt out.
    pub const MIMICKER: [Self; 4] =
        [Self::Pyknotic, Self::DarkLymphocyte, Self::Smudged, Self::Apoptotic];

    /// Whether the cell needs more room than one rounded cell.
    pub(crate) const fn is_wide(self) -> bool {
        matches!(self, Self::Anaphase | Self::Telophase | Self::Multipolar)
    }
}

/// Writes the name used in `truth.csv`.
impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Prophase => "prophase",
            Self::Prometaphase => "prometaphase",
            Self::Metaphase => "metaphase",
            Self::Ring => "ring",
            Self::Anaphase => "anaphase",
            Self::Telophase => "telophase",
            Self::Multipolar => "multipolar",
            Self::Pyknotic => "pyknotic",
            Self::Apoptotic => "apoptotic",
            Self::DarkLymphocyte => "dark-lymphocyte",
            Self::Smudged => "smudged",
        })
    }
}

/// One row of `truth.csv`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TruthPoint {
    /// Level-0 px.
    pub x_px: f64,
    /// Level-0 px.
    pub y_px: f64,
    /// Figure or mimicker.
    pub kind: Kind,
    /// What was drawn.
    pub phase: Phase,
}
