//! The few tail probabilities and quantiles that the tests and intervals need.

use statrs::function::erf::{erfc, erfc_inv};
use statrs::function::gamma::gamma_ur;
use std::f64::consts::SQRT_2;

/// P(X > x) for a chi-squared variable with `df` degrees of freedom. NaN for a NaN statistic.
#[must_use]
pub fn chi2_upper(x: f64, df: usize) -> f64 {
    if x.is_nan() || df == 0 {
        return f64::NAN;
    }
    if x <= 0.0 {
        return 1.0;
    }
    match df {
        1 => erfc((x / 2.0).sqrt()),
        2 => (-x / 2.0).exp(),
        _ => gamma_ur(df as f64 / 2.0, x / 2.0),
    }
}

/// P(X <= k) for a Poisson variable of this mean.
#[must_use]
pub fn poisson_below(k: u64, mean: f64) -> f64 {
    if mean <= 0.0 { 1.0 } else { gamma_ur(k as f64 + 1.0, mean) }
}

/// Two-sided p-value of a standard normal statistic.
#[must_use]
pub fn normal_two_sided(z: f64) -> f64 {
    erfc(z.abs() / SQRT_2)
}

/// The z with P(|Z| <= z) = `level` for a standard normal Z: 1.959964 for 0.95.
#[must_use]
pub fn normal_critical(level: f64) -> f64 {
    SQRT_2 * erfc_inv(1.0 - level)
}
