//! What a chain runs on, and where.

use super::preset::DetectorPreset;
use infer::ModelPackage;
use std::path::PathBuf;
use train::data::Source;
use train::protocol::Part;

/// Where a chain runs: nothing here changes a number.
#[derive(Clone, Debug)]
pub struct ChainOptions {
    /// The run's folder.
    pub out: PathBuf,
    /// Starting weights of the segmenter, where its preset asks for some.
    pub segment_init: Option<PathBuf>,
    /// Starting weights of the classifier.
    pub finetune_init: Option<PathBuf>,
    /// Take of those files what fits, and leave the rest as drawn.
    pub allow_partial: bool,
    /// A detector to start from: its networks are the initial weights where no file is given.
    pub package: Option<ModelPackage>,
    /// A finished chain on the same folds whose first stages, and their hard negatives, are taken as they are; only
    /// the second stages are trained.
    pub first_stage: Option<PathBuf>,
    /// A manifest of folds in place of those that the preset asks for, as of a published split, or of the classifiers
    /// on the same slides.
    pub folds: Option<PathBuf>,
    /// `auto`, `cpu`, `cuda`, `cuda:1`.
    pub device: String,
    /// Only the models of these folds are trained (`None` is `final`), together with other processes on the
    /// same folder; nothing is calibrated or packaged. Without it, the whole chain.
    pub only: Option<Vec<Option<usize>>>,
}

/// The run of a second stage that is trained on crops, in the chain's.
pub(super) const CLASSIFIER: &str = "classifier";

/// A fold's model in that run, or the one of all crops.
pub(super) fn part(fold: Option<usize>) -> Part {
    fold.map_or(Part::Final, Part::Fold)
}

/// The models of a fold, by its number, or the final ones: `0`, `final`.
#[derive(Clone, Copy, Debug)]
pub struct ModelsOf(pub Option<usize>);

impl std::str::FromStr for ModelsOf {
    type Err = &'static str;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        match (word, word.parse()) {
            ("final", _) => Ok(Self(None)),
            (_, Ok(k)) => Ok(Self(Some(k))),
            _ => Err("give a number from 0, or `final`"),
        }
    }
}

/// A chain on its data.
pub struct Chain<'a> {
    pub(super) preset: &'a DetectorPreset,
    pub(super) source: Source,
    pub(super) options: &'a ChainOptions,
    pub(super) made_from: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_of_a_fold_by_its_number_or_final() {
        for wrong in ["", "last", "-1", "1.5"] {
            let why = wrong.parse::<ModelsOf>().unwrap_err();
            assert_eq!(why, "give a number from 0, or `final`", "{wrong}");
        }
        for (word, fold) in [("0", Some(0)), ("7", Some(7)), ("final", None)] {
            assert_eq!(word.parse::<ModelsOf>().unwrap().0, fold);
        }
    }
}
