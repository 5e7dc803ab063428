//! Folds of whole images: no source image on both sides, checked when a fold is made.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// Which source is held out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeftOut {
    /// Every image of this source (an ICPR slide such as `A01`) is for validation.
    Source(String),
    /// Nothing: the final model sees every image and has no validation set.
    Nothing,
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Source(s) => s,
            Self::Nothing => "none",
        })
    }
}

impl FromStr for LeftOut {
    type Err = std::convert::Infallible;
    fn from_str(s: &str) -> Result<Self, Self::Err> {
        Ok(if s == "none" { Self::Nothing } else { Self::Source(s.to_string()) })
    }
}

/// A fold that is no fold.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum FoldError {
    /// The same source image stands on both sides.
    #[error("image `{0}` is both trained on and validated on")]
    Leak(String),
    /// The held-out source is not among the images.
    #[error("no image of source `{asked}`; there are {known}")]
    Unknown {
        /// As asked.
        asked: String,
        /// Sources found.
        known: String,
    },
}

/// Indices of images on either side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fold {
    /// Images to train on.
    pub train: Vec<usize>,
    /// Images held out.
    pub validation: Vec<usize>,
}

impl Fold {
    /// Splits images named by (source, image): those of the left-out source validate.
    ///
    /// # Errors
    /// [`FoldError::Unknown`] when no image has the source, [`FoldError::Leak`] when an image name
    /// appears on both sides.
    pub fn new<'a>(
        images: impl IntoIterator<Item = (&'a str, &'a str)>,
        left_out: &LeftOut,
    ) -> Result<Self, FoldError> {
        let (mut train, mut validation) = (vec![], vec![]);
        let (mut seen, mut held, mut known) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for (i, (source, image)) in images.into_iter().enumerate() {
            known.insert(source);
            if matches!(left_out, LeftOut::Source(s) if s == source) {
                validation.push(i);
                held.insert(image);
            } else {
                train.push(i);
                seen.insert(image);
            }
        }
        if let LeftOut::Source(asked) = left_out
            && validation.is_empty()
        {
            let known = known.into_iter().collect::<Vec<_>>().join(", ");
            return Err(FoldError::Unknown { asked: asked.clone(), known });
        }
        match seen.intersection(&held).next() {
            Some(image) => Err(FoldError::Leak((*image).to_string())),
            None => Ok(Self { train, validation }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_and_refuses_leaks() {
        let images = [("A00", "A00_01"), ("A01", "A01_01"), ("A00", "A00_02")];
        let fold = Fold::new(images, &LeftOut::Source("A00".into())).unwrap();
        assert_eq!(fold, Fold { train: vec![1], validation: vec![0, 2] });
        assert_eq!(Fold::new(images, &LeftOut::Nothing).unwrap().train.len(), 3);
        let unknown = Fold::new(images, &LeftOut::Source("B".into()));
        assert!(matches!(unknown, Err(FoldError::Unknown { .. })));
        let leak = [("A00", "x"), ("A01", "x")];
        assert_eq!(
            Fold::new(leak, &LeftOut::Source("A00".into())),
            Err(FoldError::Leak("x".into()))
        );
    }
}
