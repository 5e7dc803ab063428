//! Why nothing was matched.

/// Why nothing was matched.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum MatchError {
    /// A radius must be a finite number, zero or more.
    #[error("matching radius {0} um is not a finite number >= 0")]
    Radius(f64),
    /// A coordinate is NaN or infinite.
    #[error("{list} point {index} has a coordinate that is not a finite number")]
    NotFinite {
        /// `ground truth` or `prediction`.
        list: &'static str,
        /// Its place in the list.
        index: usize,
    },
    /// No rule of this name.
    #[error("unknown matching rule `{0}` (known: midog, optimal)")]
    UnknownRule(String),
}
