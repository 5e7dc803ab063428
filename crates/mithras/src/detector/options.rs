//! What may be chosen.

use mitosis::OperatingPoint;

/// How many stages run (D4, D7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stages {
    /// Segmentation alone; `s_cls` stays empty.
    One,
    /// Segmentation, then classification.
    #[default]
    Two,
}

/// Which threshold pair accepts a figure.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Thresholds {
    /// The package's own.
    #[default]
    Package,
    /// One that the package's card names, e.g. `sensitive`.
    Named(String),
    /// This one.
    Given(OperatingPoint),
}
