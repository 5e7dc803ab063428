//! What may be chosen.

use mitosis::{OperatingPoint, Score};

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

impl std::str::FromStr for Thresholds {
    type Err = String;

    /// A name, or two numbers: `sensitive`, `0.3,0.5`.
    fn from_str(asked: &str) -> Result<Self, String> {
        let Some((seg, cls)) = asked.split_once(',') else {
            return Ok(Self::Named(asked.to_owned()));
        };
        let number = |text: &str| {
            let value = text.trim().parse().map_err(|_| format!("`{text}` is not a number"))?;
            Score::new(value).map_err(|e| e.to_string())
        };
        let provenance = format!("given by hand: {asked}");
        Ok(Self::Given(OperatingPoint { seg: number(seg)?, cls: number(cls)?, provenance }))
    }
}
