//! What may be chosen.

use mitosis::{OperatingPoint, Score};
use std::str::FromStr;

/// How many stages run.
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
    /// The default of the package's card.
    #[default]
    Package,
    /// One that the package's card names, e.g. `sensitive`.
    Named(String),
    /// One that the caller chose.
    Given(OperatingPoint),
}

/// Text that is not a threshold pair.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a number from 0 to 1")]
pub struct NoThreshold(String);

impl FromStr for Thresholds {
    type Err = NoThreshold;

    /// A name, or two numbers with a comma between them: first stage, second stage.
    fn from_str(text: &str) -> Result<Self, NoThreshold> {
        let Some((seg, cls)) = text.split_once(',') else {
            return Ok(Self::Named(text.to_owned()));
        };
        let number = |text: &str| {
            let score = text.trim().parse().ok().and_then(|v: f32| Score::new(v).ok());
            score.ok_or_else(|| NoThreshold(text.trim().to_owned()))
        };
        let provenance = format!("given by hand: {text}");
        Ok(Self::Given(OperatingPoint { seg: number(seg)?, cls: number(cls)?, provenance }))
    }
}
