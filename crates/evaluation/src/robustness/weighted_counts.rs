//! Counting folds: as they are, or each as one mm2 of tissue with so many figures.

use mitosis::matching::{Case, Tally};
use mitosis::{Microns, OperatingPoint, Score};
use stats::platt::Platt;

use super::fold::FoldRun;
use super::result::{score, scored};
use super::{Robustness, RobustnessError, ScoredCandidate};

/// Figures found, false ones and figures missed; in parts, where folds are weighed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Counts {
    pub(super) tp: f64,
    pub(super) fp: f64,
    pub(super) fn_: f64,
}

impl Counts {
    /// A fold's counts over `mm2`; with a density, of one mm2 that holds so many figures.
    fn new(t: Tally, mm2: f64, density: Option<f64>) -> Self {
        let Some(density) = density else {
            return Self { tp: t.tp as f64, fp: t.fp as f64, fn_: t.fn_ as f64 };
        };
        let recall = t.recall().unwrap_or(0.0);
        Self { tp: density * recall, fp: t.fp as f64 / mm2, fn_: density * (1.0 - recall) }
    }

    /// `(1 + b2) TP / ((1 + b2) TP + b2 FN + FP)`; 0 where nothing was to be found and nothing was.
    pub(super) fn f_beta(&self, beta: f64) -> f64 {
        let b2 = beta * beta;
        let all = (1.0 + b2) * self.tp + b2 * self.fn_ + self.fp;
        if all > 0.0 { (1.0 + b2) * self.tp / all } else { 0.0 }
    }

    pub(super) fn precision(&self) -> Option<f64> {
        let all = self.tp + self.fp;
        (all > 0.0).then(|| self.tp / all)
    }

    pub(super) fn recall(&self) -> Option<f64> {
        let all = self.tp + self.fn_;
        (all > 0.0).then(|| self.tp / all)
    }
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.tp += other.tp;
        self.fp += other.fp;
        self.fn_ += other.fn_;
    }
}

/// Over the folds, per perturbation.
pub(super) fn pooled(all: &[Vec<Counts>]) -> Vec<Counts> {
    let mut sum = vec![Counts::default(); all[0].len()];
    for fold in all {
        sum.iter_mut().zip(fold).for_each(|(s, c)| *s += *c);
    }
    sum
}

/// A fold, and the offset of its model's logits from the scale that all models share.
pub(super) struct OnScale<'a> {
    pub(super) fold: &'a FoldRun,
    pub(super) shift: f64,
}

impl<'a> OnScale<'a> {
    /// Every fold on one scale, where all of them were measured on the same tissue.
    ///
    /// # Errors
    /// Some folds alone with tissue, other images than another's, or too few candidates on it.
    pub(super) fn all(folds: &'a [FoldRun]) -> Result<Vec<Self>, RobustnessError> {
        let images = |f: &FoldRun| f.tissue.as_ref().map(Robustness::images);
        if let Some(other) = folds.iter().find(|f| images(f) != images(&folds[0])) {
            return Err(RobustnessError::Nothing(format!(
                "the fold {} was not measured on the tissue that {} was: one scale needs the same images for all",
                other.name, folds[0].name
            )));
        }
        let mut all = vec![];
        for fold in folds {
            let shift = fold.tissue.as_ref().map_or(Ok(0.0), Robustness::tissue_logit)?;
            all.push(Self { fold, shift });
        }
        Ok(all)
    }
}

/// Candidates of folds under all changes.
#[derive(Default)]
pub(super) struct Items {
    /// One logit each, of the last stage, on the scale that its fold's model shares with the others.
    pub(super) logits: Vec<Vec<f64>>,
    /// The same as the model gives it.
    pub(super) raw: Vec<f64>,
    /// Which are figures.
    pub(super) figure: Vec<bool>,
    /// Every fold and change counts alike.
    pub(super) weight: Vec<f64>,
}

impl Items {
    /// With a density, candidates get the weight that they have in tissue with so many figures per mm2.
    pub(super) fn gather(folds: &[&OnScale<'_>], density: Option<f64>) -> Self {
        let mut all = Self::default();
        for OnScale { fold, shift } in folds {
            let set = &fold.labelled;
            for row in &set.rows {
                let first = all.weight.len();
                for l in &row.images {
                    for (f, near) in l.found.iter().zip(l.near_figures(set.radius_um)) {
                        let raw = FoldRun::raw(f);
                        all.raw.push(raw);
                        all.logits.push(vec![raw - shift]);
                        all.figure.push(near);
                        all.weight.push(match density {
                            Some(d) if near => d / set.figures.max(1) as f64,
                            Some(_) => 1.0 / set.mm2,
                            None => 1.0,
                        });
                    }
                }
                let sum: f64 = all.weight[first..].iter().sum();
                all.weight[first..].iter_mut().for_each(|w| *w /= sum);
            }
        }
        all
    }
}

/// A fold on calibrated scores.
pub(super) struct Prepared<'a> {
    pub(super) fold: &'a FoldRun,
    /// Per perturbation.
    pub(super) cases: Vec<Vec<Case>>,
    /// Foreign candidates, clean.
    foreign: Option<ForeignScores>,
}

/// Candidates on tissue where no figure is known.
struct ForeignScores {
    /// First and second stage of each.
    pairs: Vec<(Score, Score)>,
    mm2: f64,
}

/// What a threshold pair accepts on foreign tissue.
#[derive(Clone, Copy)]
pub(super) struct Foreign {
    pub(super) accepted: usize,
    pub(super) mm2: f64,
}

impl Foreign {
    /// Of both.
    pub(super) fn with(self, other: Self) -> Self {
        Self { accepted: self.accepted + other.accepted, mm2: self.mm2 + other.mm2 }
    }
}

impl<'a> Prepared<'a> {
    pub(super) fn new(&OnScale { fold, shift }: &OnScale<'a>, platt: &Platt) -> Self {
        let scaled = |f: &ScoredCandidate| {
            let s = f.s_cls.map(|_| score(platt.score(&[FoldRun::raw(f) - shift]) as f32));
            scored(f, s)
        };
        let rows = &fold.labelled.rows;
        let cases =
            rows.iter().map(|r| r.images.iter().map(|l| l.case(scaled)).collect()).collect();
        let foreign = fold.foreign.as_ref().map(|f| {
            let all = f.rows[0].images.iter().flat_map(|l| &l.found);
            let pairs = all.map(|c| {
                let s = scaled(c);
                (s.s_seg, s.s_cls.unwrap_or(Score::ONE))
            });
            ForeignScores { pairs: pairs.collect(), mm2: f.mm2 }
        });
        Self { fold, cases, foreign }
    }

    /// Over the images: for every point, each perturbation. Distances are measured once for all points.
    pub(super) fn counts(
        &self,
        points: &[OperatingPoint],
        density: Option<f64>,
    ) -> Result<Vec<Vec<Counts>>, RobustnessError> {
        let set = &self.fold.labelled;
        let mut at = vec![Vec::with_capacity(self.cases.len()); points.len()];
        for cases in &self.cases {
            let cases = cases.iter().map(|c| c.within(Microns(set.radius_um)));
            let cases = cases.collect::<Result<Vec<_>, _>>()?;
            for (point, at) in points.iter().zip(&mut at) {
                let sum: Tally = cases.iter().map(|c| c.tally(point, set.rule)).sum();
                at.push(Counts::new(sum, set.mm2, density));
            }
        }
        Ok(at)
    }

    /// Accepted on foreign tissue.
    pub(super) fn foreign(&self, point: &OperatingPoint) -> Option<Foreign> {
        let ForeignScores { pairs, mm2 } = self.foreign.as_ref()?;
        let accepted = pairs.iter().filter(|(s, c)| *s >= point.seg && *c >= point.cls).count();
        Some(Foreign { accepted, mm2: *mm2 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_weighted_f_score_by_hand() {
        let t = Counts::new(Tally { tp: 6, fp: 2, fn_: 3 }, 4.0, None);
        assert!((t.f_beta(1.0) - 12.0 / 17.0).abs() < 1e-12);
        assert!((t.f_beta(2.0) - 30.0 / (30.0 + 12.0 + 2.0)).abs() < 1e-12);
    }

    #[test]
    fn a_fold_at_a_density_by_hand() {
        // Two of three found and one false on 4 mm2: of 15 per mm2, 10 and 5, with a quarter of a false one.
        let t = Counts::new(Tally { tp: 6, fp: 1, fn_: 3 }, 4.0, Some(15.0));
        assert_eq!(t.precision(), Some(10.0 / 10.25));
        assert_eq!(t.recall(), Some(2.0 / 3.0));
        assert!((t.f_beta(1.0) - 20.0 / 25.25).abs() < 1e-12);
    }
}
