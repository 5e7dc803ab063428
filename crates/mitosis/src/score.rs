//! Probabilities that can be compared.

use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::fmt;

/// A probability in [0, 1], never NaN, totally ordered.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "f32", into = "f32")]
pub struct Score(f32);

/// The number is NaN or outside [0, 1].
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("score {0} is not a probability in [0, 1]")]
pub struct ScoreError(pub f32);

impl Score {
    /// Probability zero.
    pub const ZERO: Score = Score(0.0);
    /// Probability one.
    pub const ONE: Score = Score(1.0);

    /// Checks and wraps a probability.
    ///
    /// # Errors
    /// [`ScoreError`] when `p` is NaN or outside [0, 1].
    pub fn new(p: f32) -> Result<Self, ScoreError> {
        if (0.0..=1.0).contains(&p) { Ok(Self(p)) } else { Err(ScoreError(p)) }
    }

    /// A score written in the source.
    ///
    /// # Panics
    /// When `p` is not a probability (at compile time, in a `const`).
    #[must_use]
    pub const fn literal(p: f32) -> Self {
        assert!(p >= 0.0 && p <= 1.0, "a literal score is in [0, 1]");
        Self(p)
    }

    /// The probability.
    #[must_use]
    pub const fn get(self) -> f32 {
        self.0
    }
}

impl Eq for Score {}

impl Ord for Score {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Score {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl TryFrom<f32> for Score {
    type Error = ScoreError;
    fn try_from(p: f32) -> Result<Self, ScoreError> {
        Self::new(p)
    }
}

impl From<Score> for f32 {
    fn from(s: Score) -> f32 {
        s.0
    }
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_probabilities() {
        for bad in [f32::NAN, -0.001, 1.001, f32::INFINITY] {
            assert!(Score::new(bad).is_err());
        }
        assert!(Score::new(0.3).unwrap() < Score::new(0.31).unwrap());
    }
}
