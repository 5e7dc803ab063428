//! Calibrated scores: Platt scaling, and the expected calibration error.
//!
//! A score is the mean over several logits (one per symmetry of a crop) of
//! `sigmoid(slope * logit + offset)`, so that a fitted scale can be written into a network's last
//! layer and gives the same score there.

use crate::error::{StatsError, same_length};

/// `sigmoid(slope * logit + offset)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Platt {
    /// Factor of the logit; 1 leaves it.
    pub slope: f64,
    /// Added to it; 0 leaves it.
    pub offset: f64,
}

/// The prior of [`Platt::fit_near_identity`] on how far a scale is from the identity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlattPrior {
    /// Standard deviation of the logarithm of the slope, above 0.
    pub log_slope_sd: f64,
    /// Standard deviation of the offset, in units of the logit, above 0.
    pub offset_sd: f64,
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

impl Platt {
    /// Changes nothing.
    pub const IDENTITY: Self = Self { slope: 1.0, offset: 0.0 };

    /// The score of one item from its logits.
    #[must_use]
    pub fn score(&self, logits: &[f64]) -> f64 {
        let sum: f64 = logits.iter().map(|z| sigmoid(self.slope * z + self.offset)).sum();
        sum / logits.len().max(1) as f64
    }

    /// The scale with the least mean log loss.
    ///
    /// # Shapes
    /// `logits` and `positive` have one entry per item, `weight` too.
    ///
    /// # Errors
    /// When the lengths differ, an item has no logit, one is not finite, or a class is missing.
    pub fn fit(logits: &[Vec<f64>], positive: &[bool], weight: &[f64]) -> Result<Self, StatsError> {
        if positive.iter().all(|&p| p) || positive.iter().all(|&p| !p) {
            return Err(StatsError::Empty { what: "items of one of the two classes" });
        }
        Self::search(logits, positive, weight, |_| 0.0)
    }

    /// The scale with the least sum of log losses and of a penalty for leaving the identity, so that a
    /// few items move it little: the maximum a posteriori under normal priors of `ln(slope)` and `offset`
    /// around 0 with the standard deviations of `prior`. One class alone moves the offset only as far
    /// as the prior lets it.
    ///
    /// # Shapes
    /// As [`Self::fit`]; the weights count items, so that 50 items weigh 50.
    ///
    /// # Errors
    /// When the lengths differ, an item has no logit, or one is not finite.
    pub fn fit_near_identity(
        logits: &[Vec<f64>],
        positive: &[bool],
        weight: &[f64],
        prior: &PlattPrior,
    ) -> Result<Self, StatsError> {
        let penalty = |at: Self| {
            let slope = at.slope.ln() / prior.log_slope_sd;
            let offset = at.offset / prior.offset_sd;
            (slope * slope + offset * offset) / 2.0
        };
        Self::search(logits, positive, weight, penalty)
    }

    fn search(
        logits: &[Vec<f64>],
        positive: &[bool],
        weight: &[f64],
        penalty: impl Fn(Self) -> f64,
    ) -> Result<Self, StatsError> {
        same_length("logits and classes", logits.len(), positive.len())?;
        same_length("logits and weights", logits.len(), weight.len())?;
        for (index, z) in logits.iter().enumerate() {
            if z.is_empty() {
                return Err(StatsError::Empty { what: "logits of an item" });
            }
            if let Some(&value) = z.iter().find(|v| !v.is_finite()) {
                return Err(StatsError::NotFinite { what: "logit", index, value });
            }
        }
        let loss = |slope: f64, offset: f64| -> f64 {
            let at = Self { slope, offset };
            let mut sum = penalty(at);
            for ((z, &p), w) in logits.iter().zip(positive).zip(weight) {
                let s = at.score(z).clamp(1e-9, 1.0 - 1e-9);
                sum -= w * if p { s.ln() } else { (1.0 - s).ln() };
            }
            sum
        };
        // Two parameters and a smooth loss: a pattern search with a halving step is enough.
        let (mut slope, mut offset, mut step) = (1.0_f64, 0.0_f64, 0.5_f64);
        let mut best = loss(slope, offset);
        while step > 1e-4 {
            let tries = [(step, 0.0), (-step, 0.0), (0.0, 2.0 * step), (0.0, -2.0 * step)];
            let found = tries.into_iter().find_map(|(ds, d)| {
                let (s, o) = (slope * ds.exp(), offset + d);
                let l = loss(s, o);
                (l < best - 1e-12).then_some((s, o, l))
            });
            match found {
                Some((s, o, l)) => (slope, offset, best) = (s, o, l),
                None => step /= 2.0,
            }
        }
        Ok(Self { slope, offset })
    }
}

/// Expected calibration error: the mean distance between score and share of positives over `bins`
/// equal intervals of the score, weighted by their items' `weight`s. 0 without items.
#[must_use]
pub fn ece(scores: &[f64], positive: &[bool], weight: &[f64], bins: usize) -> f64 {
    let mut sums = vec![(0.0, 0.0, 0.0); bins.max(1)];
    for ((&s, &p), &w) in scores.iter().zip(positive).zip(weight) {
        let bin = ((s * bins as f64) as usize).min(bins.max(1) - 1);
        sums[bin].0 += w;
        sums[bin].1 += w * s;
        sums[bin].2 += if p { w } else { 0.0 };
    }
    let n: f64 = sums.iter().map(|b| b.0).sum();
    let gap: f64 = sums.iter().map(|b| (b.1 - b.2).abs()).sum();
    if n > 0.0 { gap / n } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Items whose true odds are `sigmoid(0.5 z - 1)`, by strata rather than by chance.
    fn items() -> (Vec<Vec<f64>>, Vec<bool>) {
        let (mut z, mut p) = (vec![], vec![]);
        for i in -40..=40 {
            let logit = f64::from(i) / 5.0;
            let share = sigmoid(0.5 * logit - 1.0);
            for k in 0..200 {
                z.push(vec![logit]);
                p.push((f64::from(k) + 0.5) / 200.0 < share);
            }
        }
        (z, p)
    }

    #[test]
    fn finds_the_scale_and_lowers_the_error() {
        let (z, p) = items();
        let fit = Platt::fit(&z, &p, &vec![1.0; z.len()]).unwrap();
        assert!((fit.slope - 0.5).abs() < 0.01, "{fit:?}");
        assert!((fit.offset + 1.0).abs() < 0.03, "{fit:?}");
        let ece_of = |at: Platt| {
            let s: Vec<f64> = z.iter().map(|z| at.score(z)).collect();
            ece(&s, &p, &vec![1.0; s.len()], 10)
        };
        assert!(ece_of(fit) < 0.01, "{}", ece_of(fit));
        assert!(ece_of(Platt::IDENTITY) > 0.1);
    }

    #[test]
    fn a_prior_holds_a_few_items_back_and_lets_many_through() {
        let (z, p) = items();
        let prior = PlattPrior { log_slope_sd: 0.3, offset_sd: 1.5 };
        let many = Platt::fit_near_identity(&z, &p, &vec![1.0; z.len()], &prior).unwrap();
        assert!((many.slope - 0.5).abs() < 0.02 && (many.offset + 1.0).abs() < 0.05, "{many:?}");
        let few = Platt::fit_near_identity(&z, &p, &vec![1e-4; z.len()], &prior).unwrap();
        assert!(few.slope > 0.8 && few.slope < 1.0 && few.offset > -0.8, "{few:?}");
        // One class alone: `fit` has no answer, the prior has.
        let ones = vec![true; 20];
        let z = vec![vec![-1.0]; 20];
        assert!(Platt::fit(&z, &ones, &[1.0; 20]).is_err());
        let one = Platt::fit_near_identity(&z, &ones, &[1.0; 20], &prior).unwrap();
        assert!(one.offset > 1.0 && one.offset < 4.0, "{one:?}");
    }

    #[test]
    fn the_score_is_the_mean_over_symmetries() {
        let at = Platt { slope: 2.0, offset: 1.0 };
        let want = (sigmoid(3.0) + sigmoid(-1.0)) / 2.0;
        assert!((at.score(&[1.0, -1.0]) - want).abs() < 1e-12);
    }

    #[test]
    fn what_cannot_be_fitted_is_refused() {
        let one = [vec![0.3], vec![0.4]];
        assert!(Platt::fit(&one, &[true, true], &[1.0; 2]).is_err());
        assert!(Platt::fit(&[vec![], vec![0.4]], &[true, false], &[1.0; 2]).is_err());
        assert!(Platt::fit(&one, &[true, false], &[1.0]).is_err());
    }

    #[test]
    fn ece_by_hand() {
        // Two bins: 0.2 with no positive, 0.9 with one of two.
        let e = ece(&[0.2, 0.2, 0.9, 0.9], &[false, false, true, false], &[1.0; 4], 2);
        assert!((e - (0.4 + 0.8) / 4.0).abs() < 1e-12, "{e}");
    }
}
