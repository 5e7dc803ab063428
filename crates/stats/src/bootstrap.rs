//! Resampling with replacement, the same whatever the number of threads.
//!
//! Replicate `b` of seed `s` draws from ChaCha8 seeded by `s` on stream `b`, so that a replicate
//! depends on nothing else.

use crate::error::StatsError;
use crate::interval::{Interval, percentile_interval};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

/// How to resample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Plan {
    /// How many replicates; the paper's protocol has 1,000.
    pub replicates: usize,
    /// Of the random draws.
    pub seed: u64,
    /// Confidence of the interval.
    pub level: f64,
}

impl Default for Plan {
    fn default() -> Self {
        Self { replicates: 1000, seed: 0, level: 0.95 }
    }
}

/// A percentile interval and how it came about.
#[derive(Debug, Clone, PartialEq)]
pub struct Bootstrap {
    /// Estimate on the data as given, and the percentile bounds.
    pub interval: Interval,
    /// Replicates in which the statistic exists.
    pub defined: usize,
    /// Replicates drawn.
    pub replicates: usize,
    /// The defined values, in replicate order.
    pub values: Vec<f64>,
}

/// Draws `units` units with replacement and reports how often each was drawn.
pub fn draw_counts(units: usize, seed: u64, replicate: u64, counts: &mut Vec<u32>) {
    counts.clear();
    counts.resize(units, 0);
    let Ok(span) = u32::try_from(units) else { return };
    if span == 0 {
        return;
    }
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(replicate);
    for _ in 0..units {
        counts[rng.random_range(0..span) as usize] += 1;
    }
}

/// The percentile bootstrap of a statistic that takes how often each of `units` units was drawn.
/// It returns `None` where the statistic does not exist; such replicates are left out and counted.
///
/// `state` makes the scratch space that every thread keeps between its replicates.
///
/// # Errors
/// Without units or replicates, when no replicate is defined, or the level is bad.
pub fn bootstrap_counts<S>(
    units: usize,
    plan: Plan,
    estimate: f64,
    state: impl Fn() -> S + Sync + Send,
    statistic: impl Fn(&mut S, &[u32]) -> Option<f64> + Sync + Send,
) -> Result<Bootstrap, StatsError> {
    if units == 0 || u32::try_from(units).is_err() {
        return Err(StatsError::Range {
            what: "resampled units",
            value: units as f64,
            range: "1..2^32",
        });
    }
    let drawn: Vec<Option<f64>> = (0..plan.replicates as u64)
        .into_par_iter()
        .map_init(
            || (state(), Vec::new()),
            |(scratch, counts), replicate| {
                draw_counts(units, plan.seed, replicate, counts);
                statistic(scratch, counts)
            },
        )
        .collect();
    let values: Vec<f64> = drawn.into_iter().flatten().collect();
    Ok(Bootstrap {
        interval: percentile_interval(estimate, &values, plan.level)?,
        defined: values.len(),
        replicates: plan.replicates,
        values,
    })
}

/// The percentile bootstrap of a statistic that takes the drawn indices (with repeats).
///
/// # Errors
/// As [`bootstrap_counts`].
pub fn bootstrap_indices(
    n: usize,
    plan: Plan,
    estimate: f64,
    statistic: impl Fn(&[usize]) -> Option<f64> + Sync + Send,
) -> Result<Bootstrap, StatsError> {
    bootstrap_counts(n, plan, estimate, Vec::new, |indices: &mut Vec<usize>, counts| {
        indices.clear();
        for (i, &count) in counts.iter().enumerate() {
            indices.extend(std::iter::repeat_n(i, count as usize));
        }
        statistic(indices)
    })
}
