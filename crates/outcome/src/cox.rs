//! Cox's proportional-hazards model.

use crate::error::{Error, Result};
use crate::frame::{Frame, Roles};
use crate::result::{
    Agreement, Coefficient, Summary, Test, add_profiles, adjust, coefficients, diagnoses,
    few_events,
};
use crate::{Table, check_level, ties_name};
use serde::Serialize;
use stats::survival::cox::{Options, Ties, TimeTransform, ZphTest, fit};

/// Which model.
#[derive(Clone, Debug)]
pub struct CoxPlan {
    /// Time, event, covariates, strata, clusters, weights.
    pub roles: Roles,
    /// Tied events.
    pub ties: Ties,
    /// Confidence of the intervals.
    pub level: f64,
    /// Time scale of the proportional-hazards test.
    pub transform: TimeTransform,
    /// Adds the cumulative baseline hazard.
    pub baseline: bool,
    /// Newton steps at most.
    pub max_iterations: usize,
    /// How the limits of hazard ratios are found.
    pub limits: Limits,
}

/// How the limits of hazard ratios are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Limits {
    /// From standard errors; by the profile likelihood for an estimate that may be infinite.
    #[default]
    Wald,
    /// By the profile likelihood throughout.
    Profile,
}

impl Limits {
    /// Every choice by its word.
    pub const WORDS: &[&str] = &["wald", "profile"];
}

impl std::str::FromStr for Limits {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        match word {
            "wald" => Ok(Self::Wald),
            "profile" => Ok(Self::Profile),
            _ => Err(format!("`{word}` is not one of {}", Self::WORDS.join(", "))),
        }
    }
}

impl Default for CoxPlan {
    fn default() -> Self {
        Self {
            roles: Roles::default(),
            ties: Ties::Efron,
            level: 0.95,
            transform: TimeTransform::Km,
            baseline: false,
            max_iterations: 20,
            limits: Limits::default(),
        }
    }
}

/// A fitted Cox model with its tests, as it is written.
#[derive(Clone, Debug, Serialize)]
pub struct CoxModel {
    /// The rows.
    #[serde(flatten)]
    pub summary: Summary,
    /// How tied events were treated.
    pub ties: &'static str,
    /// In the order of the covariates, one per level of a category but the first.
    pub coefficients: Vec<Coefficient>,
    /// Confidence of the intervals.
    pub level: f64,
    /// Whether the errors are robust.
    pub robust: bool,
    /// Log-likelihood without covariates.
    pub loglik_null: f64,
    /// Log-likelihood.
    pub loglik: f64,
    /// Likelihood-ratio test of all coefficients.
    pub lrt: Test,
    /// Score test.
    pub score: Test,
    /// Wald test.
    pub wald: Option<Test>,
    /// Robust score test.
    pub robust_score: Option<Test>,
    /// Harrell's C of the fitted risk.
    pub c_index: Option<f64>,
    /// The same with its pairs.
    pub concordance: Option<Agreement>,
    /// Covariance of the coefficients, the robust one where there are clusters.
    pub variance: Vec<Vec<f64>>,
    /// Covariance from the information matrix.
    pub naive_variance: Vec<Vec<f64>>,
    /// Means of the covariates.
    pub means: Vec<f64>,
    /// Newton steps.
    pub iterations: usize,
    /// Whether the fit reached its maximum.
    pub converged: bool,
    /// Names of the strata.
    pub strata: Vec<String>,
    /// Tests of proportional hazards.
    pub proportional_hazards: Option<ProportionalHazards>,
    /// Cumulative baseline hazards, when asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Vec<Baseline>>,
    /// What is not of independent units, where clusters have several rows, and the Wald test of estimates that may be
    /// infinite.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_valid: Option<Vec<&'static str>>,
    /// Warnings for the reader.
    pub notes: Vec<String>,
    /// What makes the result doubtful.
    pub warnings: Vec<String>,
    /// Why the C-index is missing.
    #[serde(skip)]
    pub no_concordance: Option<String>,
    /// Covariates as the plan names them.
    #[serde(skip)]
    pub terms: Vec<String>,
    /// How the limits of the table were found.
    #[serde(skip)]
    pub limits: Limits,
}

/// Whether hazards are proportional.
#[derive(Clone, Debug, Serialize)]
pub struct ProportionalHazards {
    /// Per covariate.
    pub terms: Vec<TermTest>,
    /// Test of all covariates together.
    pub global: Test,
}

/// One covariate's test.
#[derive(Clone, Debug, Serialize)]
pub struct TermTest {
    /// The covariate as the plan names it.
    pub name: String,
    /// Its test.
    #[serde(flatten)]
    pub test: Test,
}

/// Cumulative baseline hazard of one stratum.
#[derive(Clone, Debug, Serialize)]
pub struct Baseline {
    /// The stratum; absent when there is one only.
    pub stratum: Option<String>,
    /// Its steps.
    pub points: Vec<BaselinePoint>,
}

/// One step.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct BaselinePoint {
    /// In the table's unit.
    pub time: f64,
    /// At the covariates' means.
    pub cumulative_hazard: f64,
    /// At covariates of zero.
    pub cumulative_hazard_at_zero: f64,
}

/// Fits the model.
///
/// # Errors
/// When the table lacks a column, a cell is wrong, the plan is, or the model has no estimate.
#[expect(clippy::too_many_lines, reason = "the steps of the analysis in the order of the report")]
pub fn cox(table: &Table, plan: &CoxPlan) -> Result<CoxModel> {
    check_level(plan.level)?;
    let frame = Frame::new(table, &plan.roles)?;
    let mut buffer = Vec::new();
    let columns: Vec<usize> = (0..frame.names.len()).collect();
    let data = frame.cox(&columns, &mut buffer)?;
    let options =
        Options { ties: plan.ties, max_iterations: plan.max_iterations, ..Options::default() };
    let fitted = fit(&data, &options)
        .map_err(|source| Error::Estimate { path: table.path().to_owned(), source })?;
    let mut warnings = diagnoses(&fitted, &frame.names);
    warnings.extend(few_events(fitted.events, fitted.df()));
    let zph = match fitted.proportional_hazards(&data, plan.transform, &frame.terms) {
        Ok(test) => Some(proportional(&frame, &test)),
        Err(error) => {
            warnings.push(format!("no proportional-hazards test: {error}"));
            None
        }
    };
    if fitted.robust && fitted.wald.is_none() {
        warnings.push("no robust Wald test: too few clusters for the coefficients".into());
    }
    let (concordance, no_concordance) = match fitted.concordance(&data) {
        Ok(c) => (Some(Agreement::from(&c)), None),
        Err(error) => (None, Some(error.to_string())),
    };
    let baseline = if plan.baseline {
        let stratum = |s: usize| frame.strata.as_ref().map(|_| frame.strata_names[s].clone());
        let all = fitted.baseline(&data)?;
        let baseline = |b: &stats::survival::cox::Baseline| Baseline {
            stratum: stratum(b.stratum),
            points: b
                .points
                .iter()
                .map(|p| BaselinePoint {
                    time: p.time,
                    cumulative_hazard: p.centred,
                    cumulative_hazard_at_zero: p.at_zero,
                })
                .collect(),
        };
        Some(all.iter().map(baseline).collect())
    } else {
        None
    };
    let mut found = coefficients(&fitted, &frame.names, plan.level);
    add_profiles(&mut found, &fitted, &data, plan.level, plan.limits == Limits::Profile)?;
    adjust(&mut found, frame.repeated.is_none());
    if fitted.robust && found.iter().any(|c| c.profile.is_some()) {
        warnings.push(
            "limits by the profile likelihood take rows for independent: clusters and fractional \
             weights play no part in them"
                .into(),
        );
    }
    if let Some(repeated) = &frame.repeated {
        warnings.push(format!(
            "likelihood-ratio test, score test and test of proportional hazards: not valid, {repeated} are not \
             independent; the Wald and the robust score test are robust to it"
        ));
    }
    let mut not_valid = Vec::new();
    if frame.repeated.is_some() {
        not_valid.extend(["lrt", "score", "proportional_hazards", "profile"]);
    }
    // It is of estimates and errors, and one of them has neither.
    if found.iter().any(|c| c.infinite.is_some()) {
        not_valid.push("wald");
    }
    let square = |m: &[f64]| m.chunks_exact(frame.names.len()).map(<[f64]>::to_vec).collect();
    Ok(CoxModel {
        summary: frame.summary("cox"),
        ties: ties_name(plan.ties),
        coefficients: found,
        limits: plan.limits,
        level: plan.level,
        robust: fitted.robust,
        loglik_null: fitted.loglik_null,
        loglik: fitted.loglik,
        lrt: fitted.likelihood_ratio().into(),
        score: fitted.score.into(),
        wald: fitted.wald.map(Into::into),
        robust_score: fitted.robust_score.map(Into::into),
        c_index: concordance.map(|c| c.c_index),
        concordance,
        variance: square(&fitted.variance),
        naive_variance: square(&fitted.naive_variance),
        means: fitted.means.clone(),
        iterations: fitted.iterations,
        converged: fitted.converged(),
        strata: frame.strata_names.clone(),
        proportional_hazards: zph,
        baseline,
        not_valid: (!not_valid.is_empty()).then_some(not_valid),
        notes: frame.notes.clone(),
        warnings,
        no_concordance,
        terms: frame.term_names.clone(),
    })
}

fn proportional(frame: &Frame, test: &ZphTest) -> ProportionalHazards {
    let named = frame.term_names.iter().zip(&test.terms);
    let term = |(name, t): (&String, &Option<stats::survival::ChiSquared>)| {
        t.map(|t| TermTest { name: name.clone(), test: t.into() })
    };
    ProportionalHazards { terms: named.filter_map(term).collect(), global: test.global.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// Of an estimate without an end Wald's test means nothing: Holm's p-values take that of the profile.
    #[test]
    fn p_values_by_holm_are_of_the_valid_tests() {
        let row = |i: u32| {
            format!(
                "{},{},{},{}\n",
                1 + i * 13 % 37,
                u8::from(!i.is_multiple_of(4)),
                i * 7 % 11,
                u8::from(i.is_multiple_of(4))
            )
        };
        let text: String = (0..36).map(row).collect();
        let table =
            Table::parse(Path::new("t.csv"), format!("t,e,x,z\n{text}").as_bytes()).unwrap();
        let roles = Roles {
            time: "t".into(),
            event: "e".into(),
            covariates: vec!["x".into(), "z".into()],
            ..Roles::default()
        };
        let model = cox(&table, &CoxPlan { roles, ..CoxPlan::default() }).unwrap();
        let [x, z] = &model.coefficients[..] else { panic!("two coefficients") };
        assert_eq!(z.infinite, Some("-"));
        let profile = z.profile.unwrap().lrt.p;
        assert!(profile < x.p.unwrap() && profile < 0.01 && z.p.unwrap() > 0.5);
        let holm = |c: &Coefficient| c.ratio().unwrap().p_holm.unwrap();
        assert!((holm(z) - 2.0 * profile).abs() < 1e-12);
        assert!((holm(x) - x.p.unwrap()).abs() < 1e-12);
        assert_eq!(model.not_valid, Some(vec!["wald"]));
        let printed = model.to_string();
        let marked: Vec<&str> = printed.lines().filter(|l| l.ends_with("not valid")).collect();
        assert!(matches!(marked[..], [line] if line.starts_with("Wald")), "{printed}");
    }
}
