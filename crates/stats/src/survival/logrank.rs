//! The log-rank test and its G-rho family, stratified or not.

use super::ChiSquared;
use super::data::{Survival, SurvivalError, check_length, order_by_time};
use super::linear::Ldl;

/// Observed and expected events of one group, summed over strata.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GroupCounts {
    /// Rows.
    pub n: usize,
    /// Events that happened.
    pub observed: f64,
    /// Events expected if all groups had one hazard.
    pub expected: f64,
}

/// A log-rank test.
#[derive(Debug, Clone, PartialEq)]
pub struct LogRank {
    /// Per group, in the order of the group numbers.
    pub groups: Vec<GroupCounts>,
    /// Covariance of observed minus expected, row-major groups x groups.
    pub variance: Vec<f64>,
    /// The test; degrees of freedom = groups with expected events, less one.
    pub test: ChiSquared,
}

/// Compares the hazards of groups `group[i]` in `0..groups`, within strata if given.
///
/// `rho` weights event times by S(t-)^rho: 0 is the log-rank (Mantel-Haenszel) test, 1 is
/// Peto-Peto's. Equal to R's `survdiff`.
///
/// Reference: Harrington and Fleming, Biometrika 69 (1982) 553-566.
///
/// # Errors
/// Without events, with fewer than two groups present, or when lengths differ.
///
/// # Panics
/// When a group number is not below `groups`.
#[doc(alias = "S2")]
#[expect(clippy::too_many_lines, reason = "one pass over the event times")]
pub fn logrank(
    survival: &Survival,
    group: &[usize],
    groups: usize,
    strata: Option<&[usize]>,
    rho: f64,
) -> Result<LogRank, SurvivalError> {
    let n = survival.len();
    check_length("group", n, group.len())?;
    if let Some(strata) = strata {
        check_length("strata", n, strata.len())?;
    }
    let mut sizes = vec![0; groups];
    for &g in group {
        assert!(g < groups, "group {g} is not below {groups}");
        sizes[g] += 1;
    }
    if sizes.iter().filter(|&&s| s > 0).count() < 2 {
        return Err(SurvivalError::OneGroup);
    }
    if survival.events() == 0 {
        return Err(SurvivalError::NoEvents { rows: n });
    }
    let (time, event) = (survival.time(), survival.event());
    let order = order_by_time(survival, strata);
    let stratum = |i: usize| strata.map_or(0, |s| s[i]);
    let mut observed = vec![0.0; groups];
    let mut expected = vec![0.0; groups];
    let mut variance = vec![0.0; groups * groups];
    for block in order.chunk_by(|&a, &b| stratum(a) == stratum(b)) {
        let mut at_risk = vec![0.0; groups];
        for &i in block {
            at_risk[group[i]] += 1.0;
        }
        let mut total = block.len() as f64;
        let mut km = 1.0_f64;
        for tied in block.chunk_by(|&a, &b| time[a] == time[b]) {
            let deaths = tied.iter().filter(|&&i| event[i]).count() as f64;
            if deaths > 0.0 {
                let weight = if rho == 0.0 { 1.0 } else { km.powf(rho) };
                for &i in tied.iter().filter(|&&i| event[i]) {
                    observed[group[i]] += weight;
                }
                for g in 0..groups {
                    expected[g] += weight * deaths * at_risk[g] / total;
                }
                if total > 1.0 {
                    let scale =
                        weight * weight * deaths * (total - deaths) / (total * (total - 1.0));
                    for g in 0..groups {
                        let share = scale * at_risk[g];
                        variance[g * groups + g] += share;
                        for h in 0..groups {
                            variance[g * groups + h] -= share * at_risk[h] / total;
                        }
                    }
                }
                km *= (total - deaths) / total;
            }
            for &i in tied {
                at_risk[group[i]] -= 1.0;
            }
            total -= tied.len() as f64;
        }
    }
    let live: Vec<usize> = (0..groups).filter(|&g| expected[g] > 0.0).collect();
    let test = if live.len() < 2 {
        ChiSquared::new(0.0, 0)
    } else {
        let kept = &live[1..];
        let matrix: Vec<f64> = kept
            .iter()
            .flat_map(|&g| kept.iter().map(move |&h| (g, h)))
            .map(|(g, h)| variance[g * groups + h])
            .collect();
        let excess: Vec<f64> = kept.iter().map(|&g| observed[g] - expected[g]).collect();
        let factor = Ldl::new(&matrix, kept.len(), 1e-12);
        if factor.rank() < kept.len() {
            return Err(SurvivalError::Singular {
                what: "the log-rank covariance (the groups are never at risk together)",
            });
        }
        let chi2 = factor.solve(&excess).iter().zip(&excess).map(|(x, e)| x * e).sum();
        ChiSquared::new(chi2, kept.len())
    };
    if test.df == 0 {
        return Err(SurvivalError::Singular {
            what: "the log-rank covariance (only one group is at risk when events happen)",
        });
    }
    let groups = (0..groups)
        .map(|g| GroupCounts { n: sizes[g], observed: observed[g], expected: expected[g] })
        .collect();
    Ok(LogRank { groups, variance, test })
}
