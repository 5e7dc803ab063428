//! Pieces that several results share.

use serde::Serialize;
use stats::bootstrap::Bootstrap;
use stats::survival::ChiSquared;
use stats::survival::SurvivalError;
use stats::survival::concordance::Concordance;
use stats::survival::cox::{self, CoxData, CoxFit, Diagnosis};
use std::collections::BTreeMap;

/// What every analysis reports about its rows.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// Which analysis.
    pub command: &'static str,
    /// What is analysed: `rows`, or `patients (max)` by the rule that made each patient one row.
    pub unit: String,
    /// Rows analysed, or patients.
    pub n: usize,
    /// Events among them.
    pub events: usize,
    /// Rows of the table.
    pub rows_in_table: usize,
    /// Rows with a missing cell.
    pub rows_dropped: usize,
    /// Missing cells per column.
    pub missing: BTreeMap<String, usize>,
}

impl Summary {
    /// "12 rows", or "12 patients".
    pub(crate) fn count(&self) -> String {
        let one = if self.unit == "rows" { "row" } else { "patient" };
        base::text::Many(self.n, one).to_string()
    }

    /// "rows" or "patients", of a column.
    pub(crate) fn heading(&self) -> &'static str {
        if self.unit == "rows" { "rows" } else { "patients" }
    }
}

/// A chi-squared test.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Test {
    /// The statistic.
    pub chi2: f64,
    /// Degrees of freedom.
    pub df: usize,
    /// The p-value.
    pub p: f64,
}

impl From<ChiSquared> for Test {
    fn from(t: ChiSquared) -> Self {
        Self { chi2: t.chi2, df: t.df, p: t.p }
    }
}

/// How the pairs of rows compare.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PairCounts {
    /// Pairs in the right order.
    pub concordant: f64,
    /// Pairs in the wrong order.
    pub discordant: f64,
    /// Pairs of one risk.
    pub tied_risk: f64,
    /// Pairs of events of one time.
    pub tied_time: f64,
    /// Pairs of one risk and one time.
    pub tied_both: f64,
    /// Pairs that count.
    pub comparable: f64,
    /// How ties count.
    pub rule: &'static str,
}

/// A C-index with its pairs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Agreement {
    /// Harrell's C.
    pub c_index: f64,
    /// Its standard error.
    pub se: Option<f64>,
    /// How many pairs of rows agree, disagree or are tied.
    #[serde(flatten)]
    pub pairs: PairCounts,
}

impl From<&Concordance> for Agreement {
    fn from(c: &Concordance) -> Self {
        let pairs = PairCounts {
            concordant: c.concordant,
            discordant: c.discordant,
            tied_risk: c.tied_risk,
            tied_time: c.tied_time,
            tied_both: c.tied_both,
            comparable: c.concordant + c.discordant + c.tied_risk,
            rule: "tied risks count half; pairs of events tied in time are left out",
        };
        Self { c_index: c.c_index, se: c.std_error, pairs }
    }
}

/// A percentile bootstrap.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Resampled {
    /// The estimate on the data as given.
    #[serde(skip)]
    pub estimate: f64,
    /// Lower limit.
    pub lower: f64,
    /// Upper limit.
    pub upper: f64,
    /// Resamples drawn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicates: Option<usize>,
    /// Resamples in which the figure exists.
    pub defined: usize,
    /// Of the resamples.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// How the limits were found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<&'static str>,
}

impl Resampled {
    pub(crate) fn brief(b: &Bootstrap) -> Self {
        let i = b.interval;
        let (replicates, seed, method) = (None, None, None);
        let (estimate, lower, upper) = (i.estimate, i.lower, i.upper);
        Self { estimate, lower, upper, replicates, defined: b.defined, seed, method }
    }

    pub(crate) fn full(b: &Bootstrap, seed: u64) -> Self {
        Self {
            replicates: Some(b.replicates),
            seed: Some(seed),
            method: Some("percentile, risks held fixed"),
            ..Self::brief(b)
        }
    }
}

/// One coefficient of a Cox model.
#[derive(Clone, Debug, Serialize)]
pub struct Coefficient {
    /// Column, with its level if it is a category.
    pub name: String,
    /// Log hazard ratio; absent when it was left out.
    pub beta: Option<f64>,
    /// Its standard error, the robust one where there are clusters.
    pub se: Option<f64>,
    /// Wald's statistic.
    pub z: Option<f64>,
    /// Its p-value.
    pub p: Option<f64>,
    /// `+` or `-` where the estimate may be infinite (separation, monotone likelihood): the numbers
    /// next to it are those where the fit stopped, and mean nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub infinite: Option<&'static str>,
    /// Limits by the profile likelihood, if asked for or if the estimate may be infinite.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<ProfileLimits>,
    /// The rest.
    #[serde(flatten)]
    pub rest: Rest,
}

/// What follows from an estimate, or why it is missing.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Rest {
    /// Estimated.
    Estimated(Ratio),
    /// Left out: constant or a combination of others.
    LeftOut {
        /// True.
        left_out: bool,
    },
}

/// A hazard ratio.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Ratio {
    /// exp(beta).
    pub hazard_ratio: f64,
    /// Lower limit.
    pub hazard_ratio_lower: f64,
    /// Upper limit.
    pub hazard_ratio_upper: f64,
    /// Standard error of beta from the information matrix.
    pub se_naive: f64,
    /// The robust error, where there are clusters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub se_robust: Option<f64>,
    /// The same under its other name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub robust_se: Option<f64>,
    /// Holm's p-value over the valid p-values of the model's coefficients: where an estimate may be infinite, that of
    /// its profile likelihood.
    pub p_holm: Option<f64>,
}

/// Limits of a hazard ratio by the profile likelihood, which exist where the estimate is infinite, too.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ProfileLimits {
    /// Lower limit; 0 where the likelihood never falls enough.
    pub hazard_ratio_lower: f64,
    /// Upper limit; absent where it is infinite.
    pub hazard_ratio_upper: Option<f64>,
    /// Likelihood-ratio test of this coefficient alone.
    pub lrt: Test,
}

impl Coefficient {
    /// The hazard ratio, unless the covariate was left out.
    #[must_use]
    pub fn ratio(&self) -> Option<&Ratio> {
        match &self.rest {
            Rest::Estimated(ratio) => Some(ratio),
            Rest::LeftOut { .. } => None,
        }
    }
}

/// The coefficients of a fit; [`adjust`] adds Holm's p-values.
pub(crate) fn coefficients(fit: &CoxFit, names: &[String], level: f64) -> Vec<Coefficient> {
    let found: Vec<_> = (0..names.len()).map(|j| fit.coefficient(j)).collect();
    let coefficient = |(j, name): (usize, &String), c: &Option<cox::Coefficient>| {
        let Some(c) = c else {
            let (beta, se, z, p) = (None, None, None, None);
            let rest = Rest::LeftOut { left_out: true };
            let (infinite, profile) = (None, None);
            return Coefficient { name: name.clone(), beta, se, z, p, infinite, profile, rest };
        };
        let (hazard_ratio, hazard_ratio_lower, hazard_ratio_upper) = c.hazard_ratio(level);
        let robust = fit.robust.then_some(c.se);
        Coefficient {
            name: name.clone(),
            beta: Some(c.beta),
            se: Some(c.se),
            z: Some(c.z),
            p: Some(c.p),
            infinite: fit.infinite(j).map(|sign| if sign < 0.0 { "-" } else { "+" }),
            profile: None,
            rest: Rest::Estimated(Ratio {
                hazard_ratio,
                hazard_ratio_lower,
                hazard_ratio_upper,
                se_naive: c.se_naive,
                se_robust: robust,
                robust_se: robust,
                p_holm: None,
            }),
        }
    };
    names.iter().enumerate().zip(&found).map(|(n, c)| coefficient(n, c)).collect()
}

/// Adds the profile's limits to the coefficients that may be infinite, or to all.
pub(crate) fn add_profiles(
    coefficients: &mut [Coefficient],
    fit: &CoxFit,
    data: &CoxData,
    level: f64,
    all: bool,
) -> Result<(), SurvivalError> {
    for (j, c) in coefficients.iter_mut().enumerate() {
        if !all && c.infinite.is_none() {
            continue;
        }
        c.profile = fit.profile(data, j, level)?.map(|p| ProfileLimits {
            hazard_ratio_lower: p.lower.exp(),
            hazard_ratio_upper: Some(p.upper.exp()).filter(|u| u.is_finite()),
            lrt: p.test.into(),
        });
    }
    Ok(())
}

/// Adds Holm's p-values over those that are valid: of an estimate that may be infinite the profile's, if
/// `independent` rows make it valid.
pub(crate) fn adjust(coefficients: &mut [Coefficient], independent: bool) {
    let valid = |c: &Coefficient| match c.infinite {
        Some(_) => c.profile.filter(|_| independent).map(|profile| profile.lrt.p),
        None => c.p,
    };
    let p: Vec<Option<f64>> =
        coefficients.iter().map(|c| valid(c).filter(|p| p.is_finite())).collect();
    let known: Vec<f64> = p.iter().flatten().copied().collect();
    let mut adjusted = stats::interval::holm(&known).unwrap_or_default().into_iter();
    for (c, p) in coefficients.iter_mut().zip(p) {
        if let Rest::Estimated(ratio) = &mut c.rest {
            ratio.p_holm = p.and_then(|_| adjusted.next());
        }
    }
}

/// The diagnoses of a fit as text, with column names.
pub(crate) fn diagnoses(fit: &CoxFit, names: &[String]) -> Vec<String> {
    let endless = fit.diagnoses.iter().any(|d| matches!(d, Diagnosis::Infinite { .. }));
    fit.diagnoses
        .iter()
        // A likelihood that rises for ever has no end that the steps could reach.
        .filter(|d| !(endless && matches!(d, Diagnosis::NotConverged { .. })))
        .map(|d| match *d {
            Diagnosis::Constant { column } => format!(
                "'{}' has one value in all rows (constant covariate); it was left out",
                names[column]
            ),
            Diagnosis::Collinear { column } => format!(
                "'{}' is a linear combination of the other covariates (collinear), or constant \
                 within strata; it was left out",
                names[column]
            ),
            Diagnosis::Infinite { column } => format!(
                "the likelihood keeps rising as the coefficient of '{}' grows (separation, \
                 monotone likelihood): the estimate may be infinite; its value, error and Wald \
                 test mean nothing; the limits and test of its profile likelihood hold",
                names[column]
            ),
            Diagnosis::NotConverged { iterations } => {
                format!("the fit did not converge in {iterations} iterations, so its values are not valid")
            }
            _ => format!("{d:?}"),
        })
        .collect()
}
/// A warning for few events.
pub(crate) fn few_events(events: usize, coefficients: usize) -> Option<String> {
    (events < 10 * coefficients).then(|| {
        format!(
            "few events: {events} for {coefficients} coefficient{} (fewer than 10 each); estimates \
             and p-values are unstable and only descriptive",
            if coefficients == 1 { "" } else { "s" }
        )
    })
}
