//! Survival analysis of right-censored data, equal to R's package `survival`.
//!
//! - [`Survival`]: times and events, checked, near-ties merged as R does.
//! - [`cox`]: proportional hazards (Efron, Breslow; strata; weights; cluster-robust errors), its
//!   tests, baseline hazard, and the proportional-hazards test.
//! - [`km`]: Kaplan-Meier with plain, log and log-log intervals.
//! - [`logrank`]: the log-rank test, stratified or not.
//! - [`concordance`]: Harrell's C with its tie counts, in O(n log n), and its bootstrap.
//!
//! ```
//! use stats::survival::{Survival, cox, concordance::concordance};
//!
//! let outcome = Survival::new(&[1.0, 2.0, 3.0, 4.0, 5.0], &[true, true, false, true, false])?;
//! let age = [70.0, 40.0, 60.0, 66.0, 52.0];
//! let data = cox::CoxData::new(&outcome, &age, 1)?;
//! let fit = cox::fit(&data, &cox::Options::default())?;
//! assert!(fit.coefficient(0).unwrap().beta > 0.0);
//! assert_eq!(concordance(&outcome, &age)?.concordant, 5.0);
//! # Ok::<(), stats::survival::SurvivalError>(())
//! ```

pub mod concordance;
pub mod cox;
mod data;
pub mod km;
mod linear;
pub mod logrank;
mod ranks;

pub use data::{Survival, SurvivalError};

/// A chi-squared statistic with its degrees of freedom and upper-tail probability.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChiSquared {
    /// The statistic.
    pub chi2: f64,
    /// Degrees of freedom.
    pub df: usize,
    /// P(X > chi2).
    pub p: f64,
}

impl ChiSquared {
    /// The test of `chi2` on `df` degrees of freedom.
    #[must_use]
    pub fn new(chi2: f64, df: usize) -> Self {
        Self { chi2, df, p: crate::distribution::chi2_upper(chi2, df) }
    }
}
