//! Intervals for proportions and for resampled statistics.

use crate::distribution::{normal_critical, poisson_below};
use crate::error::{StatsError, level as check_level};

/// An estimate with its lower and upper bound.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The point estimate.
    pub estimate: f64,
    /// Lower bound.
    pub lower: f64,
    /// Upper bound.
    pub upper: f64,
}

/// Wilson's score interval of a proportion at confidence `level` (0.95 for 95 %).
///
/// ```
/// let i = stats::interval::wilson(8, 199, 0.95).unwrap();
/// assert!((i.lower - 0.0205).abs() < 5e-5 && (i.upper - 0.0773).abs() < 5e-5);
/// ```
///
/// Reference: Wilson, J. Am. Stat. Assoc. 22 (1927) 209-212.
///
/// # Errors
/// Without trials, with more successes than trials, or a level outside (0, 1).
#[doc(alias = "A2")]
pub fn wilson(successes: u64, trials: u64, level: f64) -> Result<Interval, StatsError> {
    let z = normal_critical(check_level(level)?);
    if trials == 0 {
        return Err(StatsError::Empty { what: "trials" });
    }
    if successes > trials {
        return Err(StatsError::Successes { successes, trials });
    }
    let n = trials as f64;
    let p = successes as f64 / n;
    let z2 = z * z;
    let centre = (p + z2 / (2.0 * n)) / (1.0 + z2 / n);
    let half = z / (1.0 + z2 / n) * (p * (1.0 - p) / n + z2 / (4.0 * n * n)).sqrt();
    // The bounds at 0 and 1 are exact in theory; rounding must not move them.
    let lower = if successes == 0 { 0.0 } else { centre - half };
    let upper = if successes == trials { 1.0 } else { centre + half };
    Ok(Interval { estimate: p, lower, upper })
}

/// The exact interval of a Poisson count at confidence `level` (Garwood): the means at which so many
/// or more, and so many or fewer, are as rare as half of what `level` leaves.
///
/// ```
/// // R: poisson.test(10)$conf.int
/// let i = stats::interval::poisson(10, 0.95).unwrap();
/// assert!((i.lower - 4.795389).abs() < 5e-7 && (i.upper - 18.390356).abs() < 5e-7);
/// // R: poisson.test(0)$conf.int
/// let none = stats::interval::poisson(0, 0.95).unwrap();
/// assert!(none.lower == 0.0 && (none.upper - 3.688879).abs() < 5e-7);
/// ```
///
/// Reference: Garwood, Biometrika 28 (1936) 437-442.
///
/// # Errors
/// For a level outside (0, 1).
pub fn poisson(count: u64, level: f64) -> Result<Interval, StatsError> {
    let tail = (1.0 - check_level(level)?) / 2.0;
    let n = count as f64;
    // Neither bound is so far away; z of 40 standard deviations is beyond any level.
    let far = n + 40.0 * (n + 1.0).sqrt() + 1000.0;
    let root = |above: &dyn Fn(f64) -> bool| {
        let (mut low, mut high) = (0.0, far);
        for _ in 0..200 {
            let middle = 0.5 * (low + high);
            if above(middle) { high = middle } else { low = middle }
        }
        0.5 * (low + high)
    };
    // P(X >= n) grows with the mean, P(X <= n) falls with it.
    let lower =
        if count == 0 { 0.0 } else { root(&|mean| poisson_below(count - 1, mean) <= 1.0 - tail) };
    let upper = root(&|mean| poisson_below(count, mean) <= tail);
    Ok(Interval { estimate: n, lower, upper })
}

/// Precision of a review with unsure verdicts: unsure counted wrong at the lower endpoint and
/// right at the upper, each with its Wilson interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PrecisionRange {
    /// Unsure counted as not confirmed.
    pub unsure_wrong: Interval,
    /// Unsure counted as confirmed.
    pub unsure_right: Interval,
}

/// The precision range of `confirmed`, `not_confirmed` and `unsure` verdicts.
///
/// # Errors
/// As [`wilson`].
#[doc(alias = "A2")]
pub fn precision_range(
    confirmed: u64,
    not_confirmed: u64,
    unsure: u64,
    level: f64,
) -> Result<PrecisionRange, StatsError> {
    let trials = confirmed + not_confirmed + unsure;
    Ok(PrecisionRange {
        unsure_wrong: wilson(confirmed, trials, level)?,
        unsure_right: wilson(confirmed + unsure, trials, level)?,
    })
}

/// One stratum (cohort) of a review: how many of the reviewed were right, and how large the pool
/// is that it was drawn from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stratum {
    /// Right among the reviewed.
    pub successes: u64,
    /// Reviewed.
    pub trials: u64,
    /// Size of the pool; any positive unit.
    pub pool: f64,
}

/// Mean proportion with weights proportional to the pools, sum W_k p_k with W_k = pool_k / total.
///
/// The interval is the stratified normal one, variance sum W_k^2 p_k (1 - p_k) / n_k, with each
/// p_k in the variance replaced by its Agresti-Coull centre so that a stratum without failures
/// still contributes; it is cut to [0, 1].
///
/// # Errors
/// Without strata, with an empty stratum, a pool that is not positive, or a bad level.
#[doc(alias = "A2")]
pub fn pool_weighted(strata: &[Stratum], level: f64) -> Result<Interval, StatsError> {
    let z = normal_critical(check_level(level)?);
    if strata.is_empty() {
        return Err(StatsError::Empty { what: "strata" });
    }
    let total: f64 = strata.iter().map(|s| s.pool).sum();
    let (mut estimate, mut variance) = (0.0, 0.0);
    for s in strata {
        if !(s.pool.is_finite() && s.pool > 0.0) {
            return Err(StatsError::Range { what: "pool size", value: s.pool, range: "(0, inf)" });
        }
        let p = wilson(s.successes, s.trials, level)?.estimate;
        let weight = s.pool / total;
        estimate += weight * p;
        let n = s.trials as f64 + z * z;
        let centre = (s.successes as f64 + z * z / 2.0) / n;
        variance += weight * weight * centre * (1.0 - centre) / n;
    }
    let half = z * variance.sqrt();
    Ok(Interval { estimate, lower: (estimate - half).max(0.0), upper: (estimate + half).min(1.0) })
}

/// The quantile of sorted values at `q` in [0, 1] by linear interpolation (R's type 7, numpy's
/// default).
///
/// # Panics
/// When `sorted` is empty or `q` is outside [0, 1].
#[must_use]
pub fn quantile_sorted(sorted: &[f64], q: f64) -> f64 {
    assert!(!sorted.is_empty() && (0.0..=1.0).contains(&q), "quantile {q} of {}", sorted.len());
    let h = (sorted.len() - 1) as f64 * q;
    let (low, fraction) = (h.floor() as usize, h - h.floor());
    let high = (low + 1).min(sorted.len() - 1);
    sorted[low] + fraction * (sorted[high] - sorted[low])
}

/// The middle value (type 7).
///
/// # Errors
/// When nothing is given or a value is NaN.
pub fn median(values: &[f64]) -> Result<f64, StatsError> {
    let sorted = sorted(values)?;
    Ok(quantile_sorted(&sorted, 0.5))
}

/// The percentile interval of resampled statistics: their quantiles at (1 - level)/2 and
/// (1 + level)/2 (type 7).
///
/// # Errors
/// When nothing is given, a value is NaN, or the level is bad.
pub fn percentile_interval(
    estimate: f64,
    resampled: &[f64],
    level: f64,
) -> Result<Interval, StatsError> {
    let level = check_level(level)?;
    let sorted = sorted(resampled)?;
    let tail = (1.0 - level) / 2.0;
    Ok(Interval {
        estimate,
        lower: quantile_sorted(&sorted, tail),
        upper: quantile_sorted(&sorted, 1.0 - tail),
    })
}

fn sorted(values: &[f64]) -> Result<Vec<f64>, StatsError> {
    if values.is_empty() {
        return Err(StatsError::Empty { what: "values" });
    }
    if let Some((index, &value)) = values.iter().enumerate().find(|(_, v)| v.is_nan()) {
        return Err(StatsError::NotFinite { what: "values", index, value });
    }
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    Ok(sorted)
}

/// Holm's step-down adjustment of p-values, in the order given (R's `p.adjust(method = "holm")`).
///
/// Reference: Holm, Scand. J. Stat. 6 (1979) 65-70.
///
/// # Errors
/// When a p-value is outside [0, 1].
pub fn holm(p: &[f64]) -> Result<Vec<f64>, StatsError> {
    if let Some(&value) = p.iter().find(|v| !(0.0..=1.0).contains(*v)) {
        return Err(StatsError::Range { what: "p-value", value, range: "[0, 1]" });
    }
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&a, &b| p[a].total_cmp(&p[b]));
    let mut adjusted = vec![0.0; p.len()];
    let mut running = 0.0_f64;
    for (rank, &i) in order.iter().enumerate() {
        running = running.max((p.len() - rank) as f64 * p[i]).min(1.0);
        adjusted[i] = running;
    }
    Ok(adjusted)
}
