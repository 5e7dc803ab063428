//! Times and events, and what can be wrong with them.

use thiserror::Error;

/// Why a survival analysis is impossible. Rows and columns count from zero.
#[derive(Debug, Clone, PartialEq, Error)]
#[expect(missing_docs, reason = "fields whose names state what they are")]
#[non_exhaustive]
pub enum SurvivalError {
    /// Two inputs that describe the same rows differ in length.
    #[error("{what}: {got} values for {rows} rows")]
    Length {
        what: &'static str,
        /// Rows of the table.
        rows: usize,
        got: usize,
    },
    /// No rows.
    #[error("no rows are left to analyse")]
    Empty,
    /// A time that is negative or not finite.
    #[error("row {row}: time {value} is not a finite number >= 0")]
    Time { row: usize, value: f64 },
    /// A weight that is not allowed.
    #[error("row {row}: weight {value} is not a finite number > 0")]
    Weight { row: usize, value: f64 },
    /// A covariate or risk that is not finite.
    #[error("row {row}, covariate {column}: {value} is not a finite number")]
    Covariate { row: usize, column: usize, value: f64 },
    /// No event happened, so nothing can be estimated.
    #[error("no events: all {rows} rows are censored, so there is nothing to estimate")]
    NoEvents { rows: usize },
    /// No covariate carries information.
    #[error(
        "no covariate can be estimated: each is constant (within strata), or no event has a \
         comparable row at risk"
    )]
    NoInformation,
    /// No covariates were given.
    #[error("no covariates were given")]
    NoCovariates,
    /// Only one group.
    #[error("only one group: a log-rank test compares at least two")]
    OneGroup,
    /// No pair of rows can be ordered.
    #[error("no comparable pairs: no event is known to precede another row's time")]
    NoPairs,
    /// The models compared are not on the same rows.
    #[error("the models are not nested on the same data: {reason}")]
    NotNested { reason: String },
    /// The information matrix cannot be inverted.
    #[error("{what} is singular and cannot be inverted")]
    Singular { what: &'static str },
    /// A confidence level outside (0, 1).
    #[error("confidence level {value} is outside (0, 1)")]
    Level { value: f64 },
    /// The bootstrap failed.
    #[error("bootstrap: {0}")]
    Bootstrap(#[from] crate::StatsError),
}

/// Right-censored outcomes: per row a time >= 0 and whether the event happened then.
///
/// Times that differ by less than R's tolerance are made equal, as `survival::aeqSurv` does:
/// neighbours among the sorted distinct times are tied when their difference, or the difference
/// over the mean distinct time, is at most 1.49e-8. Arithmetic on dates makes such near-ties, and
/// an undetected tie moves every result.
#[derive(Debug, Clone, PartialEq)]
pub struct Survival {
    time: Vec<f64>,
    event: Vec<bool>,
    merged: usize,
}

impl Survival {
    /// Checks and keeps times and events.
    ///
    /// # Errors
    /// When lengths differ, nothing is given, or a time is negative or not finite.
    pub fn new(time: &[f64], event: &[bool]) -> Result<Self, SurvivalError> {
        let mut outcome = Self::exact(time, event)?;
        outcome.merge_near_ties();
        Ok(outcome)
    }

    /// As [`Survival::new`], with times taken literally.
    ///
    /// # Errors
    /// As [`Survival::new`].
    pub fn exact(time: &[f64], event: &[bool]) -> Result<Self, SurvivalError> {
        if time.len() != event.len() {
            return Err(SurvivalError::Length {
                what: "event",
                rows: time.len(),
                got: event.len(),
            });
        }
        if time.is_empty() {
            return Err(SurvivalError::Empty);
        }
        if let Some((row, &value)) =
            time.iter().enumerate().find(|(_, t)| !(t.is_finite() && **t >= 0.0))
        {
            return Err(SurvivalError::Time { row, value });
        }
        // -0.0 and 0.0 must be one time.
        let time = time.iter().map(|t| t + 0.0).collect();
        Ok(Self { time, event: event.to_vec(), merged: 0 })
    }

    /// Rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.time.len()
    }

    /// Never: a `Survival` has at least one row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.time.is_empty()
    }

    /// Times, near-ties merged.
    #[must_use]
    pub fn time(&self) -> &[f64] {
        &self.time
    }

    /// Whether the event happened.
    #[must_use]
    pub fn event(&self) -> &[bool] {
        &self.event
    }

    /// How many events.
    #[must_use]
    pub fn events(&self) -> usize {
        self.event.iter().filter(|&&e| e).count()
    }

    /// How many rows had their time moved onto a near-tied one.
    #[must_use]
    pub fn merged(&self) -> usize {
        self.merged
    }

    /// The rows `rows`, in that order, without merging again.
    ///
    /// # Errors
    /// When `rows` is empty.
    ///
    /// # Panics
    /// When a row is out of range.
    pub fn select(&self, rows: &[usize]) -> Result<Self, SurvivalError> {
        let time: Vec<f64> = rows.iter().map(|&r| self.time[r]).collect();
        let event: Vec<bool> = rows.iter().map(|&r| self.event[r]).collect();
        Self::exact(&time, &event)
    }

    fn merge_near_ties(&mut self) {
        let tolerance = f64::EPSILON.sqrt();
        let mut distinct = self.time.clone();
        distinct.sort_unstable_by(f64::total_cmp);
        distinct.dedup();
        let mean = distinct.iter().sum::<f64>() / distinct.len() as f64;
        let tied = |a: f64, b: f64| b - a <= tolerance || (b - a) / mean <= tolerance;
        let cuts: Vec<f64> = std::iter::once(distinct[0])
            .chain(distinct.windows(2).filter(|w| !tied(w[0], w[1])).map(|w| w[1]))
            .collect();
        if cuts.len() == distinct.len() {
            return;
        }
        for t in &mut self.time {
            let cut = cuts[cuts.partition_point(|c| c <= t) - 1];
            self.merged += usize::from(cut != *t);
            *t = cut;
        }
    }
}

pub(crate) fn check_length(
    what: &'static str,
    rows: usize,
    got: usize,
) -> Result<(), SurvivalError> {
    if rows == got { Ok(()) } else { Err(SurvivalError::Length { what, rows, got }) }
}

pub(crate) fn check_weights(weights: &[f64], rows: usize) -> Result<(), SurvivalError> {
    check_length("weights", rows, weights.len())?;
    match weights.iter().enumerate().find(|(_, w)| !(w.is_finite() && **w > 0.0)) {
        Some((row, &value)) => Err(SurvivalError::Weight { row, value }),
        None => Ok(()),
    }
}

/// A key that is ordered as `v` is. Sorting plain keys is several times faster than sorting row
/// numbers that look their values up.
#[inline]
pub(crate) fn order_key(v: f64) -> u64 {
    let bits = v.to_bits();
    if v.is_sign_negative() { !bits } else { bits | 1 << 63 }
}

/// Rows ordered by stratum, then by time, both ascending.
pub(crate) fn order_by_time(survival: &Survival, strata: Option<&[usize]>) -> Vec<usize> {
    let key = |(i, &t): (usize, &f64)| (strata.map_or(0, |s| s[i]), order_key(t), i);
    let mut keys: Vec<(usize, u64, usize)> = survival.time().iter().enumerate().map(key).collect();
    keys.sort_unstable();
    keys.into_iter().map(|k| k.2).collect()
}
