//! A detector's preset: everything that changes a number, in one TOML file.

use super::super::folds::Calibrate;
use super::super::frames::Candidates;
use mitosis::matching::Rule;
use net::encoder::EncoderConfig;
use pixels::perturb::Grid;
use regions::folds::Scheme;
use regions::task::Task;
use serde::{Deserialize, Serialize};
use train::preset::{Fault, FinetunePreset, Init, Preset, SegmentPreset};
use train::protocol::CropsPreset;

/// How the data are split.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FoldsPreset {
    /// Number of folds; 0: one per slide; 1: none, and the operating point of the package that the training
    /// starts from is kept.
    pub count: usize,
    /// Seed of ties.
    pub seed: u64,
}

impl FoldsPreset {
    /// Leave-one-out for 0 folds, no held-out images for 1, else stratified.
    #[must_use]
    pub fn scheme(&self) -> Scheme {
        match self.count {
            0 => Scheme::LeaveOneOut,
            1 => Scheme::Whole,
            n => Scheme::Stratified(n),
        }
    }
}

/// How the operating point is chosen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CalibratePreset {
    /// Matching rule, `midog` or `optimal`.
    pub rule: String,
    /// Flips and quarter turns of a crop whose probabilities are averaged, 1 to 8.
    pub symmetries: u8,
    /// Named points (`balanced`, `sensitive`, `specific`) on calibrated scores, chosen over the held-out
    /// images and these changes of them, `short` or `full`; without it one pair over the images as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grid: Option<Grid>,
}

/// What the package is called.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackagePreset {
    /// Its name.
    pub name: String,
    /// Licence of the weights.
    pub license: String,
    /// Keep f32 weights instead of f16.
    pub f32: bool,
}

/// All of a detector.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DetectorPreset {
    /// Further seeds of the second stage: it is trained once with each, too, and has the mean of all
    /// weights ([`net::checkpoint::load_mean`]).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub average_seeds: Vec<u64>,
    /// The split.
    pub folds: FoldsPreset,
    /// From probabilities to candidates.
    pub candidates: Candidates,
    /// The operating point.
    pub calibrate: CalibratePreset,
    /// The package.
    pub package: PackagePreset,
    /// The first stage. Its AMi-Br keys do not matter here: the dataset defines the data.
    pub segment: SegmentPreset,
    /// The second stage, on pools of places; `pools` name the domains `frames`, `patches` and `unlabelled`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finetune: Option<FinetunePreset>,
    /// Or the second stage as the classifier of figures and mimickers is trained by itself, on crops around
    /// the labels (`task = "crops"`), over the same folds: the paper's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crops: Option<CropsPreset>,
}

/// How the second stage is trained.
#[derive(Clone, Copy, Debug)]
pub enum Second<'a> {
    /// On pools of places, mined ones among them.
    Pools(&'a FinetunePreset),
    /// On crops around labels.
    Crops(&'a CropsPreset),
}

impl<'a> Second<'a> {
    /// Side of its crops, px at 0.25 um/px.
    #[must_use]
    pub fn crop(self) -> usize {
        match self {
            Self::Pools(p) => p.data.crop,
            Self::Crops(p) => p.data.crop,
        }
    }

    /// Its network.
    #[must_use]
    pub fn model(self) -> &'a EncoderConfig {
        match self {
            Self::Pools(p) => &p.model,
            Self::Crops(p) => &p.model,
        }
    }
}

impl Preset for DetectorPreset {
    fn check(&self) -> Result<(), Fault> {
        self.segment.check().map_err(|e| e.below("segment"))?;
        match (&self.finetune, &self.crops) {
            (Some(p), None) => p.check().map_err(|e| e.below("finetune"))?,
            (None, Some(p)) => {
                p.check().map_err(|e| e.below("crops"))?;
                if p.task != Task::Crops || p.model.classes != 2 {
                    return Err(Fault::new("crops.task", "must be `crops`, with two classes"));
                }
                if p.data.folds_file.is_some() {
                    return Err(Fault::new(
                        "crops.data.folds_file",
                        "the folds are the detector's",
                    ));
                }
            }
            _ => {
                let why = "[finetune] or [crops] trains the second stage: one of the two";
                return Err(Fault::new("finetune", why));
            }
        }
        self.rule().map_err(|e| Fault::new("calibrate.rule", e))?;
        let mut seeds = self.seeds();
        seeds.sort_unstable();
        if seeds.windows(2).any(|w| w[0] == w[1]) {
            return Err(Fault::new("average_seeds", "must differ, from finetune.train.seed, too"));
        }
        if !self.average_seeds.is_empty() && self.crops.is_some() {
            return Err(Fault::new("average_seeds", "belongs to [finetune]"));
        }
        let scratch = self.finetune.as_ref().is_some_and(|p| p.init == Init::Scratch);
        if !self.average_seeds.is_empty() && scratch {
            let why = "trainings that begin apart have no mean: `finetune.init` names no weights";
            return Err(Fault::new("average_seeds", why));
        }
        if !(1..=8).contains(&self.calibrate.symmetries) {
            return Err(Fault::new("calibrate.symmetries", "must be from 1 to 8"));
        }
        if !(0.0..=1.0).contains(&self.candidates.threshold) {
            return Err(Fault::new("candidates.threshold", "must be from 0 to 1"));
        }
        Ok(())
    }
}

impl DetectorPreset {
    /// Every seed that the second stage is trained with.
    #[must_use]
    pub fn seeds(&self) -> Vec<u64> {
        let own = match self.second() {
            Second::Pools(p) => p.train.seed,
            Second::Crops(p) => p.train.seed,
        };
        [own].into_iter().chain(self.average_seeds.iter().copied()).collect()
    }

    /// How the second stage is trained.
    ///
    /// # Panics
    /// Never for a preset that was checked: it has one of the two.
    #[must_use]
    pub fn second(&self) -> Second<'_> {
        match (&self.finetune, &self.crops) {
            (Some(p), _) => Second::Pools(p),
            (None, Some(p)) => Second::Crops(p),
            (None, None) => panic!("a preset of a detector without a second stage"),
        }
    }

    /// Calibrates as this preset does: candidates, rule, crops and their symmetric copies.
    ///
    /// # Errors
    /// As [`Self::rule`].
    pub fn apply_to(&self, what: &mut Calibrate) -> Result<(), mitosis::matching::MatchError> {
        what.candidates = self.candidates;
        what.rule = self.rule()?;
        what.crop = self.second().crop() as u32;
        what.symmetries = self.calibrate.symmetries;
        Ok(())
    }

    /// The matching rule.
    ///
    /// # Errors
    /// An unknown word.
    pub fn rule(&self) -> Result<Rule, mitosis::matching::MatchError> {
        self.calibrate.rule.parse()
    }
}
