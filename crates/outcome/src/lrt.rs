//! The likelihood-ratio test between nested Cox models.

use crate::error::{Error, Result};
use crate::frame::{Frame, Roles};
use crate::result::{Coefficient, Summary, Test, adjust, coefficients, diagnoses, few_events};
use crate::{Table, ties_name};
use base::remedy::Setting;
use serde::Serialize;
use stats::survival::ChiSquared;
use stats::survival::cox::{CoxFit, Options, Ties, fit, likelihood_ratio as compare};

/// The two nested models that are compared.
#[derive(Clone, Debug, Default)]
pub struct LrtPlan {
    /// Time, event, strata, clusters, weights; `covariates` are those of the reduced model.
    pub roles: Roles,
    /// Covariates that the full model has in addition.
    pub added: Vec<String>,
    /// Tied events.
    pub ties: Ties,
}

/// A likelihood-ratio test of two nested Cox models, as it is written.
#[derive(Clone, Debug, Serialize)]
pub struct LikelihoodRatio {
    /// The rows.
    #[serde(flatten)]
    pub summary: Summary,
    /// How tied events were treated.
    pub ties: &'static str,
    /// Chi-squared, on as many degrees of freedom as coefficients were added.
    #[serde(flatten)]
    pub test: Test,
    /// The test once more, under its name.
    pub lrt: Test,
    /// Log-likelihood without covariates.
    pub loglik_null: f64,
    /// Log-likelihood of the reduced model.
    pub loglik_reduced: f64,
    /// Log-likelihood of the full model.
    pub loglik: f64,
    /// Without the added covariates.
    pub reduced: NestedModel,
    /// With the added covariates.
    pub full: NestedModel,
    /// What is not of independent units, where clusters have several rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_valid: Option<Vec<&'static str>>,
    /// Warnings for the reader.
    pub notes: Vec<String>,
    /// What makes the result doubtful.
    pub warnings: Vec<String>,
    /// Covariates of the reduced model.
    #[serde(skip)]
    pub reduced_covariates: Vec<String>,
    /// Covariates of the full model.
    #[serde(skip)]
    pub full_covariates: Vec<String>,
}

/// One of the two models.
#[derive(Clone, Debug, Serialize)]
pub struct NestedModel {
    /// Log-likelihood at the estimates.
    pub loglik: f64,
    /// Coefficients estimated.
    pub df: usize,
    /// The coefficients.
    pub coefficients: Vec<Coefficient>,
}

impl NestedModel {
    fn new(fit: &CoxFit, names: &[String]) -> Self {
        let mut coefficients = coefficients(fit, names, 0.95);
        adjust(&mut coefficients, false);
        Self { loglik: fit.loglik, df: fit.df(), coefficients }
    }
}

/// Tests whether the added covariates improve the model.
///
/// # Errors
/// When the table lacks a column, a cell is wrong, the plan is, or a model has no estimate.
pub fn likelihood_ratio(table: &Table, plan: &LrtPlan) -> Result<LikelihoodRatio> {
    let reduced = &plan.roles.covariates;
    let mut all = reduced.clone();
    all.extend(plan.added.iter().filter(|c| !reduced.contains(c)).cloned());
    if all.len() == reduced.len() {
        let reason = format!(
            "the full model has no covariate beyond the reduced one ({})",
            reduced.join(", ")
        );
        return Err(Error::plan(Setting::Covariates, reason));
    }
    let frame = Frame::new(table, &Roles { covariates: all, ..plan.roles.clone() })?;
    let options = Options { ties: plan.ties, ..Options::default() };
    let fail = |source| Error::Estimate { path: table.path().to_owned(), source };
    let fitted = |keep: &dyn Fn(&str) -> bool| -> Result<(CoxFit, Vec<String>)> {
        let columns = frame.columns_where(keep);
        let mut buffer = Vec::new();
        let data = frame.cox(&columns, &mut buffer)?;
        let names = columns.iter().map(|&j| frame.names[j].clone()).collect();
        Ok((fit(&data, &options).map_err(fail)?, names))
    };
    let (full, names) = fitted(&|_| true)?;
    let small =
        if reduced.is_empty() { None } else { Some(fitted(&|c| reduced.iter().any(|r| r == c))?) };
    let test: ChiSquared = match &small {
        None => full.likelihood_ratio(),
        Some((small, _)) => compare(small, &full).map_err(fail)?,
    };
    let mut warnings = diagnoses(&full, &names);
    if let Some((small, names)) = &small {
        for line in diagnoses(small, names) {
            if !warnings.contains(&line) {
                warnings.push(line);
            }
        }
    }
    if full.robust {
        warnings.push(
            "a likelihood ratio ignores clusters and fractional weights; the p-values of the coefficients do not"
                .into(),
        );
    }
    if let Some(repeated) = &frame.repeated {
        warnings.push(format!(
            "likelihood-ratio test: not valid, {repeated} are not independent; the p-values of the coefficients are \
             robust to it"
        ));
    }
    warnings.extend(few_events(full.events, full.df()));
    let none = NestedModel { loglik: full.loglik_null, df: 0, coefficients: Vec::new() };
    Ok(LikelihoodRatio {
        summary: frame.summary("lrt"),
        ties: ties_name(plan.ties),
        test: test.into(),
        lrt: test.into(),
        loglik_null: full.loglik_null,
        loglik_reduced: small.as_ref().map_or(full.loglik_null, |(s, _)| s.loglik),
        loglik: full.loglik,
        reduced: small.as_ref().map_or(none, |(s, names)| NestedModel::new(s, names)),
        full: NestedModel::new(&full, &names),
        not_valid: frame.repeated.is_some().then(|| vec!["lrt"]),
        notes: frame.notes,
        warnings,
        reduced_covariates: reduced.clone(),
        full_covariates: frame.term_names,
    })
}
