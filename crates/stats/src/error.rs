//! What can be wrong with labels, scores and counts.

use thiserror::Error;

/// Why a metric or an interval could not be computed.
#[derive(Debug, Clone, PartialEq, Error)]
#[expect(missing_docs, reason = "fields whose names state what they are")]
#[non_exhaustive]
pub enum StatsError {
    /// Two columns that describe the same items differ in length.
    #[error("{what}: {left} items against {right}")]
    Length {
        what: &'static str,
        /// Items in the first.
        left: usize,
        /// Items in the second.
        right: usize,
    },
    /// Nothing was given.
    #[error("{what}: no items; at least one is needed")]
    Empty { what: &'static str },
    /// A label outside `0..classes`.
    #[error("item {index}: class {label} is outside 0..{classes}")]
    Label {
        index: usize,
        label: usize,
        /// How many classes there are.
        classes: usize,
    },
    /// A number that is not finite.
    #[error("{what}, item {index}: {value} is not a finite number")]
    NotFinite { what: &'static str, index: usize, value: f64 },
    /// A parameter outside its range.
    #[error("{what} = {value} is outside {range}")]
    Range { what: &'static str, value: f64, range: &'static str },
    /// More successes than trials.
    #[error("{successes} successes of {trials} trials; successes cannot exceed trials")]
    Successes { successes: u64, trials: u64 },
}

pub(crate) fn same_length(what: &'static str, left: usize, right: usize) -> Result<(), StatsError> {
    if left == right { Ok(()) } else { Err(StatsError::Length { what, left, right }) }
}

pub(crate) fn level(value: f64) -> Result<f64, StatsError> {
    if value > 0.0 && value < 1.0 {
        Ok(value)
    } else {
        Err(StatsError::Range { what: "confidence level", value, range: "(0, 1)" })
    }
}
