//! Predictions against ground truth within a radius, pooled counts, and the threshold pair
//! chosen from them.
//!
//! Two rules, named in every output:
//!
//! - [`Rule::Midog`], as in the MIDOG challenge evaluation: ground truth in its given order takes
//!   the nearest prediction not yet taken. It can miss a pairing that exists.
//! - [`Rule::Optimal`]: one to one, as many pairs as possible, and among those the least total
//!   distance.
//!
//! Distances are Euclidean and in micrometres, because "30 px" means 7.5 um only at 0.25 um/px. The
//! radius belongs to the disc.

mod calibration;
mod optimal;
mod reach;

pub use calibration::{
    CalibrateError, Calibration, Case, Fold, FoldTally, Scored, Within, calibrate,
};
pub(crate) use reach::Reach;
pub use reach::{MatchError, Pair};

use crate::{Microns, Physical, Point};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign};
use std::str::FromStr;

/// The paper's radius: 30 px at 0.25 um/px.
pub const PAPER_RADIUS: Microns = Microns(7.5);

/// How predictions and ground truth are paired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// Greedy in ground-truth order, nearest unclaimed prediction; equal distances: the first.
    Midog,
    /// Most pairs, then least total distance.
    Optimal,
}

impl Rule {
    /// Every rule, in the order reports list them.
    pub const ALL: [Rule; 2] = [Rule::Midog, Rule::Optimal];
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Midog => "midog",
            Self::Optimal => "optimal",
        })
    }
}

impl FromStr for Rule {
    type Err = MatchError;
    fn from_str(s: &str) -> Result<Self, MatchError> {
        Self::ALL
            .into_iter()
            .find(|r| r.to_string() == s)
            .ok_or_else(|| MatchError::UnknownRule(s.to_owned()))
    }
}

/// True and false positives and false negatives; adding them pools cases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// True positives: pairs of a prediction and a figure.
    pub tp: usize,
    /// False positives: predictions without a figure.
    pub fp: usize,
    /// False negatives: figures without a prediction.
    #[serde(rename = "fn")]
    pub fn_: usize,
}

impl Tally {
    /// TP / (TP + FP); `None` when nothing was predicted.
    #[must_use]
    pub fn precision(&self) -> Option<f64> {
        share(self.tp, self.tp + self.fp)
    }

    /// TP / (TP + FN); `None` when there is nothing to find.
    #[must_use]
    pub fn recall(&self) -> Option<f64> {
        share(self.tp, self.tp + self.fn_)
    }

    /// 2 TP / (2 TP + FP + FN); `None` when nothing was predicted and there is nothing to find.
    #[must_use]
    pub fn f1(&self) -> Option<f64> {
        share(2 * self.tp, 2 * self.tp + self.fp + self.fn_)
    }
}

fn share(part: usize, whole: usize) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

impl Add for Tally {
    type Output = Self;
    fn add(self, o: Self) -> Self {
        Self { tp: self.tp + o.tp, fp: self.fp + o.fp, fn_: self.fn_ + o.fn_ }
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, o: Self) {
        *self = *self + o;
    }
}

impl Sum for Tally {
    fn sum<I: Iterator<Item = Self>>(tallies: I) -> Self {
        tallies.fold(Self::default(), Add::add)
    }
}

/// Predictions of one image matched with its figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Matched {
    /// The rule used.
    pub rule: Rule,
    /// The radius used.
    pub radius: Microns,
    /// True positives, in ground-truth order.
    pub pairs: Vec<Pair>,
    /// Their counts.
    pub tally: Tally,
}

/// Pairs predictions with ground truth within `radius`, border included.
///
/// Positions are micrometres ([`crate::Resolution::to_physical`]). The time grows with the number of
/// pairs in reach, not with the product of the lists: 1e5 points take well under a second.
///
/// # Errors
/// [`MatchError`] for a radius or coordinate that is not a finite number.
pub fn match_points(
    truth: &[Point<Physical>],
    predictions: &[Point<Physical>],
    radius: Microns,
    rule: Rule,
) -> Result<Matched, MatchError> {
    let reach = Reach::new(truth, predictions, radius)?;
    let pairs = reach.pairs(rule, predictions.len());
    let tp = pairs.len();
    let tally = Tally { tp, fp: predictions.len() - tp, fn_: truth.len() - tp };
    Ok(Matched { rule, radius, pairs, tally })
}

impl Reach {
    fn pairs(&self, rule: Rule, predictions: usize) -> Vec<Pair> {
        match rule {
            Rule::Midog => greedy(self, predictions),
            Rule::Optimal => optimal::assign(self, predictions),
        }
    }
}

fn greedy(reach: &Reach, predictions: usize) -> Vec<Pair> {
    let mut taken = vec![false; predictions];
    let mut pairs = Vec::new();
    for (truth, near) in reach.near.iter().enumerate() {
        if let Some(&(distance, prediction)) = near.iter().find(|&&(_, p)| !taken[p]) {
            taken[prediction] = true;
            pairs.push(Pair { truth, prediction, distance: Microns(distance) });
        }
    }
    pairs
}

#[cfg(test)]
mod tests;
