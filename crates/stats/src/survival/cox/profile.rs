//! Limits of a coefficient by the profile likelihood: where twice the drop of the likelihood, maximised
//! over all other coefficients, reaches the chi-squared quantile. They exist where the estimate is
//! infinite, too: one of them is then infinite itself (Heinze and Schemper, Biometrics 57 (2001)
//! 114-119; R's `coxphf(firth = FALSE)` gives the same).

use super::derivatives::Derivatives;
use super::fit::{centre_and_scale, pick};
use super::risk::Sorted;
use super::risk::Ties;
use super::stable::Stable;
use super::{ChiSquared, CoxData, CoxFit};
use crate::distribution::normal_critical;
use crate::survival::data::SurvivalError;
use crate::survival::linear::Ldl;

/// One coefficient by its profile likelihood.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Profile {
    /// Lower limit of the log hazard ratio; minus infinity where the likelihood never falls enough.
    pub lower: f64,
    /// Upper limit, which may be infinite.
    pub upper: f64,
    /// The likelihood-ratio test of the coefficient being zero.
    pub test: ChiSquared,
}

/// Largest size of a coefficient that is tried, in units of the covariate's spread.
const FAR: f64 = 1e4;
/// Evaluations for one limit at most.
const MOST: usize = 200;

impl CoxFit {
    /// The profile of coefficient `j` at confidence `level`; `None` if it was left out. `data` is that
    /// of the fit. Clusters play no part: the likelihood takes rows for independent.
    ///
    /// # Errors
    /// [`SurvivalError::Level`] when `level` is not between 0 and 1.
    ///
    /// # Panics
    /// When `j` is not below the number of covariates.
    pub fn profile(
        &self,
        data: &CoxData,
        j: usize,
        level: f64,
    ) -> Result<Option<Profile>, SurvivalError> {
        if !(level > 0.0 && level < 1.0) {
            return Err(SurvivalError::Level { value: level });
        }
        if self.left_out[j] {
            return Ok(None);
        }
        let (means, scale, _) = centre_and_scale(data);
        let keep: Vec<usize> = (0..self.beta.len()).filter(|&i| !self.left_out[i]).collect();
        let sorted = Sorted::new(data, &keep, &pick(&keep, &means), &pick(&keep, &scale));
        let at = keep.iter().take_while(|&&i| i != j).count();
        let start: Vec<f64> = keep.iter().map(|&i| self.beta[i] / scale[i]).collect();
        let search = Search { sorted: &sorted, ties: self.ties, at };
        let top = search.maximise(start, None);
        let z = normal_critical(level);
        let se = (self.naive_variance[j * self.beta.len() + j].sqrt() / scale[j]) * z;
        let infinite = self.infinite(j);
        let step = if infinite.is_some() || !se.is_finite() || se <= 0.0 { 1.0 } else { se };
        let limit = |sign: f64| {
            if infinite.is_some_and(|s| s * sign > 0.0) {
                return sign * f64::INFINITY;
            }
            search.limit(&top, sign * step, top.loglik - z * z / 2.0) * scale[j]
        };
        let mut null = top.beta.clone();
        null[at] = 0.0;
        let null = search.maximise(null, Some(at));
        let test = ChiSquared::new((2.0 * (top.loglik - null.loglik)).max(0.0), 1);
        Ok(Some(Profile { lower: limit(-1.0), upper: limit(1.0), test }))
    }
}

struct Search<'a> {
    sorted: &'a Sorted,
    ties: Ties,
    /// The coefficient.
    at: usize,
}

#[derive(Clone)]
struct Top {
    beta: Vec<f64>,
    loglik: f64,
}

impl Search<'_> {
    /// The largest likelihood near `beta`, with one coefficient held.
    fn maximise(&self, beta: Vec<f64>, held: Option<usize>) -> Top {
        let mut here = Derivatives::at(self.sorted, self.ties, &beta);
        let mut top = Top { beta, loglik: here.loglik };
        for _ in 0..100 {
            if !here.finite() {
                break;
            }
            let step = self.step(&top.beta, held);
            let mut part = 1.0;
            let gained = loop {
                let moved: Vec<f64> =
                    top.beta.iter().zip(&step).map(|(b, s)| b + part * s).collect();
                let next = Derivatives::at(self.sorted, self.ties, &moved);
                if next.finite() && next.loglik >= top.loglik {
                    let gain = next.loglik - top.loglik;
                    (top, here) = (Top { beta: moved, loglik: next.loglik }, next);
                    break gain;
                }
                part /= 2.0;
                if part < 1e-6 {
                    break 0.0;
                }
            };
            if gained <= 1e-12 * (1.0 + top.loglik.abs()) {
                break;
            }
        }
        top
    }

    fn step(&self, beta: &[f64], held: Option<usize>) -> Vec<f64> {
        let here = Stable::at(self.sorted, self.ties, beta);
        let q = self.sorted.p;
        let free: Vec<usize> = (0..q).filter(|i| Some(*i) != held).collect();
        let mut step = vec![0.0; q];
        let part: Vec<f64> = free
            .iter()
            .flat_map(|&i| free.iter().map(move |&k| (i.max(k), i.min(k))))
            .map(|(i, k)| here.information[i * q + k])
            .collect();
        let score: Vec<f64> = free.iter().map(|&i| here.score[i]).collect();
        let found = Ldl::new(&part, free.len(), 1e-12).solve(&score);
        for (&i, s) in free.iter().zip(found) {
            // Where the likelihood is flat a Newton step may leave the range of exp().
            let uphill = if s.is_finite() && s != 0.0 { s } else { here.score[i].signum() };
            step[i] = uphill.clamp(-5.0, 5.0);
        }
        step
    }

    /// Where the profile falls to `target` from `top` in the direction of `step`.
    fn limit(&self, top: &Top, step: f64, target: f64) -> f64 {
        let at = |from: &Top, b: f64| {
            let mut beta = from.beta.clone();
            beta[self.at] = b;
            let found = self.maximise(beta, Some(self.at));
            let over =
                if found.loglik.is_nan() { f64::NEG_INFINITY } else { found.loglik - target };
            (found, over)
        };
        let (mut inside, mut over) = (top.clone(), top.loglik - target);
        let (mut low, mut step) = (top.beta[self.at], step);
        let (mut high, mut under) = loop {
            let b = low + step;
            if b.abs() > FAR {
                return step.signum() * f64::INFINITY;
            }
            let (found, value) = at(&inside, b);
            if value < 0.0 {
                break (b, value);
            }
            (low, over, inside) = (b, value, found);
            step *= 2.0;
        };
        // Regula falsi of Illinois, and halves where a value is infinite.
        let mut side = 0;
        for _ in 0..MOST {
            if (high - low).abs() <= 1e-10 * (1.0 + low.abs()) {
                break;
            }
            let share = if under.is_finite() { over / (over - under) } else { 0.5 };
            let b = low + share.clamp(0.001, 0.999) * (high - low);
            let (found, value) = at(&inside, b);
            if value.abs() <= 1e-11 {
                return b;
            }
            if value >= 0.0 {
                (low, over, inside) = (b, value, found);
                if side == 1 {
                    under /= 2.0;
                }
                side = 1;
            } else {
                (high, under) = (b, value);
                if side == -1 {
                    over /= 2.0;
                }
                side = -1;
            }
        }
        // It ended where numbers do, and not where the likelihood falls.
        if under == f64::NEG_INFINITY { step.signum() * f64::INFINITY } else { low }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::survival::data::Survival;

    #[test]
    fn a_flat_likelihood_has_no_finite_limit() {
        // The covariate is that of a patient who is alone in the stratum: no comparison knows of it.
        let survival = Survival::exact(&[1.0, 2.0, 3.0], &[true; 3]).unwrap();
        let data = CoxData::new(&survival, &[0.0, 0.0, 1.0], 1).unwrap();
        let data = data.with_strata(&[0, 0, 1]).unwrap();
        let sorted = Sorted::new(&data, &[0], &[0.0], &[1.0]);
        let search = Search { sorted: &sorted, ties: Ties::Efron, at: 0 };
        let top = search.maximise(vec![0.0], None);
        for sign in [1.0, -1.0] {
            let limit = search.limit(&top, sign, top.loglik - 1.92);
            assert_eq!(limit, sign * f64::INFINITY);
        }
    }
}
