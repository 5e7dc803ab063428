//! How many known candidates a scale is fitted to.

/// Fewest known candidates.
pub const FEWEST: usize = 20;
/// Fewest of each kind, figures and others.
pub const FEWEST_OF_KIND: usize = 5;

/// Too few known candidates to fit a scale to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{figures} figures and {others} other candidates are known; a scale needs {FEWEST}, and {FEWEST_OF_KIND} of each \
     kind: judge or measure more candidates on both sides of the threshold"
)]
pub struct TooFew {
    /// Known figures.
    pub figures: usize,
    /// Known others.
    pub others: usize,
}

impl TooFew {
    /// Whether a scale can be fitted to so many.
    ///
    /// # Errors
    /// [`TooFew`].
    pub fn check(figures: usize, others: usize) -> Result<(), Self> {
        match figures + others < FEWEST || figures.min(others) < FEWEST_OF_KIND {
            true => Err(Self { figures, others }),
            false => Ok(()),
        }
    }
}
