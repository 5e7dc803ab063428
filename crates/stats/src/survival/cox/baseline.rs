//! The baseline hazard that goes with the fit's tie rule.

use super::risk::Sorted;
use super::{CoxData, CoxFit};
use crate::survival::data::SurvivalError;

/// The cumulative baseline hazard just after one distinct time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BaselinePoint {
    /// In the unit of the data.
    pub time: f64,
    /// Cumulative hazard at the fit's centre ([`CoxFit::means`]): R's `basehaz(fit)`.
    pub centred: f64,
    /// Cumulative hazard with all covariates zero: R's `basehaz(fit, centered = FALSE)`.
    pub at_zero: f64,
}

/// One stratum's baseline.
#[derive(Debug, Clone, PartialEq)]
pub struct Baseline {
    /// The stratum's number.
    pub stratum: usize,
    /// One point per distinct time, ascending.
    pub points: Vec<BaselinePoint>,
}

impl Baseline {
    /// Predicted survival at `time` of a row with linear predictor `lp` (as in
    /// [`CoxFit::linear_predictor`]).
    #[must_use]
    pub fn survival(&self, time: f64, lp: f64) -> f64 {
        let after = self.points.partition_point(|p| p.time <= time);
        let hazard = after.checked_sub(1).map_or(0.0, |i| self.points[i].centred);
        (-hazard * lp.exp()).exp()
    }
}

impl CoxFit {
    /// The baseline hazard per stratum (Breslow's estimator, or Efron's for Efron fits), from the
    /// data of the fit.
    ///
    /// # Errors
    /// When `data` has other rows or columns than the fit.
    pub fn baseline(&self, data: &CoxData) -> Result<Vec<Baseline>, SurvivalError> {
        self.check(data)?;
        let sorted = Sorted::new(data, &[], &[], &[]);
        let score: Vec<f64> =
            sorted.order.iter().map(|&i| self.linear_predictor[i].exp()).collect();
        let mut steps = vec![0.0; sorted.groups.len()];
        let index = |start: usize| sorted.groups.partition_point(|g| g.start < start);
        sorted.walk(self.ties, &score, |group, sums| {
            let (terms, weight) = sums.terms(self.ties);
            steps[index(group.start)] =
                (0..terms).map(|k| weight / sums.term(k, terms, &mut [])).sum();
        });
        let shift: f64 = self.means.iter().zip(&self.beta).map(|(m, b)| m * b).sum();
        let mut strata = Vec::new();
        let mut points = Vec::new();
        let mut hazard = 0.0;
        for (group, step) in sorted.groups.iter().zip(&steps).rev() {
            let row = sorted.order[group.start];
            hazard += step;
            points.push(BaselinePoint {
                time: data.survival.time()[row],
                centred: hazard,
                at_zero: hazard * (-shift).exp(),
            });
            if group.first {
                let points = std::mem::take(&mut points);
                strata.push(Baseline { stratum: data.stratum(row), points });
                hazard = 0.0;
            }
        }
        strata.reverse();
        Ok(strata)
    }

    pub(crate) fn check(&self, data: &CoxData) -> Result<(), SurvivalError> {
        if (data.survival.len(), data.columns) == (self.n, self.beta.len()) {
            return Ok(());
        }
        Err(SurvivalError::NotNested {
            reason: format!(
                "the fit has {} rows and {} covariates, the data {} and {}",
                self.n,
                self.beta.len(),
                data.survival.len(),
                data.columns
            ),
        })
    }
}
