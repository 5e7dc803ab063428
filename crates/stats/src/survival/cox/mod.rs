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
mod data;
mod derivatives;
mod fit;
mod profile;
mod recession;
mod residuals;
mod risk;
mod stable;
mod zph;

pub use baseline::{Baseline, BaselinePoint};
pub use data::CoxData;
pub use fit::{Coefficient, CoxFit, Diagnosis, Options, fit};
pub use profile::Profile;
pub use risk::Ties;
pub use zph::{TimeTransform, ZphTest};

use super::ChiSquared;
use super::data::SurvivalError;

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
