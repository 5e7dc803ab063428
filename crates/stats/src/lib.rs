//! Metrics, intervals, bootstrap, survival. No I/O, no sibling.
//!
//! - [`metrics`]: classification metrics equal to scikit-learn's.
//! - [`platt`]: scores that mean odds, and the expected calibration error.
//! - [`interval`]: Wilson, precision ranges, pool-weighted means, percentiles, Holm.
//! - [`bootstrap`]: resampling that does not depend on threads.
//! - [`survival`]: Cox, Kaplan-Meier, log-rank, Harrell's C, equal to R's package `survival`.

#![forbid(unsafe_code)]

pub mod bootstrap;
pub mod distribution;
mod error;
pub mod interval;
pub mod metrics;
pub mod platt;
mod spelling;
pub mod survival;

pub use error::StatsError;
