//! Both sides of a fold, by number.

/// Indices of images on either side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fold {
    /// Images to train on.
    pub train: Vec<usize>,
    /// Images held out.
    pub validation: Vec<usize>,
}
