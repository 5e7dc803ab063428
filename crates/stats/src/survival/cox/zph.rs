//! The score test of proportional hazards.

use super::risk::Sorted;
use super::{ChiSquared, CoxData, CoxFit};
use crate::survival::data::{Survival, SurvivalError};
use crate::survival::km::{KaplanMeierOptions, kaplan_meier};
use crate::survival::linear::quadratic;

/// The function of time whose interaction with a covariate is tested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TimeTransform {
    /// 1 - S(t-) of the pooled Kaplan-Meier curve (R's default).
    #[default]
    Km,
    /// t.
    Identity,
    /// Rank of t among all rows.
    Rank,
    /// log t.
    Log,
}

crate::spelling::spelled!(TimeTransform { Km = "km", Identity = "identity", Rank = "rank", Log = "log" });

/// Tests per term and of all together.
#[derive(Debug, Clone, PartialEq)]
pub struct ZphTest {
    /// Per term, in term order; a term whose covariates were all left out is absent.
    pub terms: Vec<Option<ChiSquared>>,
    /// All terms.
    pub global: ChiSquared,
}

impl CoxFit {
    /// Tests proportional hazards: the score test of beta + theta g(t) at theta = 0, exact in the
    /// sense of Therneau (R's `cox.zph` since 3.0).
    ///
    /// `terms[j]` is the term of covariate j (the dummies of one factor share a term); terms count
    /// from zero.
    ///
    /// Reference: Grambsch and Therneau, Biometrika 81 (1994) 515-526.
    ///
    /// # Errors
    /// When the data are not those of the fit, `terms` has a wrong length, a log of time zero is
    /// asked for, or the information matrix is singular.
    pub fn proportional_hazards(
        &self,
        data: &CoxData,
        transform: TimeTransform,
        terms: &[usize],
    ) -> Result<ZphTest, SurvivalError> {
        self.check(data)?;
        crate::survival::data::check_length("terms", data.columns, terms.len())?;
        let keep: Vec<usize> = (0..data.columns).filter(|&j| !self.left_out[j]).collect();
        let q = keep.len();
        let g = transformed(data.survival, transform)?;
        let centre: Vec<f64> = keep.iter().map(|&j| self.means[j]).collect();
        let sorted = Sorted::new(data, &keep, &centre, &vec![1.0; q]);
        let score: Vec<f64> =
            sorted.order.iter().map(|&i| self.linear_predictor[i].exp()).collect();
        let mut u = vec![0.0; q];
        let mut v = vec![0.0; q * q];
        let mut gv = vec![0.0; q * q];
        let mut ggv = vec![0.0; q * q];
        let mut mean = vec![0.0; q];
        sorted.walk(self.ties, &score, |group, sums| {
            let time = g[sorted.order[group.start]];
            for k in (group.start..group.end).filter(|&k| sorted.event[k]) {
                let w = time * sorted.weight[k];
                u.iter_mut().zip(sorted.row(k)).for_each(|(u, x)| *u += w * x);
            }
            let (count, weight) = sums.terms(self.ties);
            for k in 0..count {
                let d = sums.term(k, count, &mut mean);
                u.iter_mut().zip(&mean).for_each(|(u, m)| *u -= time * weight * m);
                let share = k as f64 / count as f64;
                sums.add_variance(share, d, &mean, weight, &mut v);
                sums.add_variance(share, d, &mean, weight * time, &mut gv);
                sums.add_variance(share, d, &mean, weight * time * time, &mut ggv);
            }
        });
        let at = |m: &[f64], i: usize, j: usize| m[i.max(j) * q + i.min(j)];
        let full = |i: usize, j: usize| match (i < q, j < q) {
            (true, true) => at(&v, i, j),
            (false, false) => at(&ggv, i - q, j - q),
            _ => at(&gv, i % q, j % q),
        };
        let test = |columns: &[usize]| {
            let index: Vec<usize> = (0..q).chain(columns.iter().map(|c| c + q)).collect();
            let matrix: Vec<f64> = index
                .iter()
                .flat_map(|&i| index.iter().map(move |&j| (i, j)))
                .map(|(i, j)| full(i, j))
                .collect();
            let mut score = vec![0.0; q];
            score.extend(columns.iter().map(|&c| u[c]));
            quadratic(&matrix, &score).map(|chi2| ChiSquared::new(chi2, columns.len())).ok_or(
                SurvivalError::Singular {
                    what: "the information of the proportional-hazards test (too few event times)",
                },
            )
        };
        let count = terms.iter().max().map_or(0, |m| m + 1);
        let per_term = (0..count)
            .map(|t| {
                let columns: Vec<usize> = (0..q).filter(|&c| terms[keep[c]] == t).collect();
                if columns.is_empty() { Ok(None) } else { test(&columns).map(Some) }
            })
            .collect::<Result<Vec<_>, _>>()?;
        let global = test(&(0..q).collect::<Vec<_>>())?;
        Ok(ZphTest { terms: per_term, global })
    }
}

/// g(t) per row, less its mean over the events.
fn transformed(survival: &Survival, transform: TimeTransform) -> Result<Vec<f64>, SurvivalError> {
    let time = survival.time();
    let mut g: Vec<f64> = match transform {
        TimeTransform::Identity => time.to_vec(),
        TimeTransform::Log => {
            if let Some(row) = (0..time.len()).find(|&i| time[i] <= 0.0 && survival.event()[i]) {
                return Err(SurvivalError::Time { row, value: time[row] });
            }
            time.iter().map(|t| t.ln()).collect()
        }
        TimeTransform::Rank => {
            let mut sorted = time.to_vec();
            sorted.sort_unstable_by(f64::total_cmp);
            let rank = |t: &f64| {
                let below = sorted.partition_point(|s| s < t);
                let through = sorted.partition_point(|s| s <= t);
                (below + through + 1) as f64 / 2.0
            };
            time.iter().map(rank).collect()
        }
        TimeTransform::Km => {
            let curve = kaplan_meier(survival, &KaplanMeierOptions::default())?;
            let before = |t: &f64| {
                let next = curve.points.partition_point(|p| p.time < *t);
                1.0 - next.checked_sub(1).map_or(1.0, |i| curve.points[i].survival)
            };
            time.iter().map(before).collect()
        }
    };
    let events = survival.events() as f64;
    let mean =
        g.iter().zip(survival.event()).filter(|(_, e)| **e).map(|(g, _)| g).sum::<f64>() / events;
    g.iter_mut().for_each(|g| *g -= mean);
    Ok(g)
}
