//! Cox's proportional-hazards model for right-censored data.
//!
//! h(t | x) = h_0(t) exp(x'beta), one baseline per stratum. The partial likelihood handles tied
//! events by Efron's or Breslow's approximation; it is maximised by Newton's method from zero with
//! step halving, with R's stopping rule (relative change of the log-likelihood at most 1e-9), so
//! that estimates agree with `survival::coxph` far beyond the rule's own accuracy.
//!
//! References: Cox, J. R. Stat. Soc. B 34 (1972) 187-220; Efron, J. Am. Stat. Assoc. 72 (1977)
//! 557-565; Breslow, Biometrics 30 (1974) 89-99; Lin and Wei, J. Am. Stat. Assoc. 84 (1989)
//! 1074-1078 (robust errors); Therneau and Grambsch, Modeling Survival Data (Springer 2000).

mod baseline;
mod derivatives;
mod fit;
mod profile;
mod recession;
mod residuals;
mod risk;
mod stable;
mod ties;
mod zph;

pub use baseline::{Baseline, BaselinePoint};
pub use fit::{Coefficient, CoxFit, Diagnosis, Options, fit};
pub use profile::Profile;
pub use ties::Ties;
pub use zph::{TimeTransform, ZphTest};

use super::ChiSquared;
use super::data::{Survival, SurvivalError, check_length, check_weights};

/// What a model is fitted to: outcomes, a row-major n x p matrix of covariates, and optionally
/// case weights (> 0), strata (own baseline each) and clusters (independent units).
#[derive(Debug, Clone, Copy)]
pub struct CoxData<'a> {
    pub(crate) survival: &'a Survival,
    pub(crate) x: &'a [f64],
    pub(crate) columns: usize,
    pub(crate) weights: Option<&'a [f64]>,
    pub(crate) strata: Option<&'a [usize]>,
    pub(crate) cluster: Option<&'a [usize]>,
}

impl<'a> CoxData<'a> {
    /// Outcomes with `x[row * columns + column]`.
    ///
    /// # Errors
    /// Without columns, when `x` is not n x columns, or holds a value that is not finite.
    pub fn new(
        survival: &'a Survival,
        x: &'a [f64],
        columns: usize,
    ) -> Result<Self, SurvivalError> {
        if columns == 0 {
            return Err(SurvivalError::NoCovariates);
        }
        check_length("covariates (rows x columns)", survival.len() * columns, x.len())?;
        if let Some((i, &value)) = x.iter().enumerate().find(|(_, v)| !v.is_finite()) {
            let (row, column) = (i / columns, i % columns);
            return Err(SurvivalError::Covariate { row, column, value });
        }
        Ok(Self { survival, x, columns, weights: None, strata: None, cluster: None })
    }

    /// Adds case weights, finite and > 0. A whole-number weight is that many copies of the row.
    ///
    /// # Errors
    /// On a wrong length or a weight that is not allowed.
    pub fn with_weights(mut self, weights: &'a [f64]) -> Result<Self, SurvivalError> {
        check_weights(weights, self.survival.len())?;
        self.weights = Some(weights);
        Ok(self)
    }

    /// Adds strata: rows are compared within a stratum only.
    ///
    /// # Errors
    /// On a wrong length.
    pub fn with_strata(mut self, strata: &'a [usize]) -> Result<Self, SurvivalError> {
        check_length("strata", self.survival.len(), strata.len())?;
        self.strata = Some(strata);
        Ok(self)
    }

    /// Adds clusters (patients with several slides): errors become cluster-robust.
    ///
    /// # Errors
    /// On a wrong length.
    pub fn with_cluster(mut self, cluster: &'a [usize]) -> Result<Self, SurvivalError> {
        check_length("cluster", self.survival.len(), cluster.len())?;
        self.cluster = Some(cluster);
        Ok(self)
    }

    pub(crate) fn row(&self, i: usize) -> &'a [f64] {
        &self.x[i * self.columns..(i + 1) * self.columns]
    }

    pub(crate) fn weight(&self, i: usize) -> f64 {
        self.weights.map_or(1.0, |w| w[i])
    }

    pub(crate) fn stratum(&self, i: usize) -> usize {
        self.strata.map_or(0, |s| s[i])
    }

    /// Whether errors are robust: clusters were given or a weight is not a whole number (R's rule).
    #[must_use]
    pub fn robust(&self) -> bool {
        self.cluster.is_some() || self.weights.is_some_and(|w| w.iter().any(|w| w.fract() != 0.0))
    }
}

/// The likelihood-ratio test of a model against one nested in it: 2 (l_full - l_reduced) on
/// the difference in estimated coefficients.
///
/// # Errors
/// When the two were fitted to different rows or the full model has no more coefficients.
#[doc(alias = "S2")]
pub fn likelihood_ratio(reduced: &CoxFit, full: &CoxFit) -> Result<ChiSquared, SurvivalError> {
    let fail = |reason: String| Err(SurvivalError::NotNested { reason });
    if (reduced.n, reduced.events) != (full.n, full.events) {
        return fail(format!(
            "{} rows with {} events against {} rows with {} events",
            reduced.n, reduced.events, full.n, full.events
        ));
    }
    // Equal rows, weights, strata and ties have equal null likelihoods.
    if (reduced.loglik_null - full.loglik_null).abs() > 1e-9 * full.loglik_null.abs().max(1.0) {
        return fail(
            "their null log-likelihoods differ (other rows, weights, strata or ties)".into(),
        );
    }
    let (few, many) = (reduced.df(), full.df());
    if many <= few {
        return fail(format!("{many} coefficients against {few}"));
    }
    Ok(ChiSquared::new(2.0 * (full.loglik - reduced.loglik), many - few))
}
