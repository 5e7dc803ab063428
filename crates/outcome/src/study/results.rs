//! What a study finds: `results.json`, field by field.

use super::StudyPlan;
use crate::cohort::{Cohort, PatientRule};
use crate::frame::Frame;
use crate::result::{Coefficient, Resampled, Test};
use crate::table::Table;
use crate::ties_name;
use serde::Serialize;
use stats::bootstrap::Bootstrap;
use stats::survival::concordance::Concordance;
use stats::survival::cox::{CoxFit, Diagnosis};
use stats::survival::logrank::LogRank;
use stats::survival::{Survival, SurvivalError};

/// All results of a study, as they are written.
#[derive(Clone, Debug, Serialize)]
pub struct Study {
    /// Version of this form.
    pub schema: u32,
    /// What was asked.
    pub protocol: Protocol,
    /// Slides with counts and outcome.
    pub slides: usize,
    /// Patients with counts and outcome.
    pub patients: usize,
    /// Slides with an event.
    pub events_slides: usize,
    /// Patients with an event.
    pub events_patients: usize,
    /// Cases with slides that were not counted, whose counts are lower bounds.
    #[serde(skip_serializing_if = "is_zero")]
    pub not_counted: usize,
    /// Hotspot count and density.
    pub features: Vec<Feature>,
    /// C-indices of all methods.
    pub comparison: Vec<Compared>,
    /// Results with one count per patient, one per rule and count.
    pub patient_level: Vec<PatientLevel>,
    /// Every test of the study, with p-values after Holm's correction.
    pub p_values: Vec<PValue>,
    /// Warnings for the reader.
    pub notes: Vec<String>,
    /// What makes results doubtful.
    pub warnings: Vec<String>,
    #[serde(skip)]
    #[cfg_attr(
        not(any(feature = "report", test)),
        expect(dead_code, reason = "the report alone reads it")
    )]
    pub(crate) joined: Joined,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
fn is_zero(n: &usize) -> bool {
    *n == 0
}

/// The counts of the method under study, joined.
#[derive(Clone, Debug)]
pub(crate) struct Joined {
    pub cohort: Cohort,
    /// The slides that the counts of patients are of: those with an outcome, where a patient has such.
    pub combined: Cohort,
    pub slides: Cases,
    pub patients: Cases,
}

/// Slides or patients, and the numbers of all their models, read once.
#[derive(Clone, Debug)]
pub(crate) struct Cases {
    /// `slides` or `patients`.
    pub unit: &'static str,
    pub table: Table,
    /// Rows with an outcome; its covariates are the counts.
    pub counts: Frame,
    /// Those of them that have every covariate; its covariates are these and the counts.
    pub adjusted: Option<Frame>,
}

/// How the study was computed.
#[derive(Clone, Debug, Serialize)]
pub struct Protocol {
    /// What a row is: slides, and patients in addition.
    pub unit: &'static str,
    /// Tied events.
    pub ties: &'static str,
    /// Resampling.
    pub bootstrap: ProtocolBootstrap,
    /// The errors of coefficients.
    pub errors: &'static str,
    /// Adjustment covariates.
    pub covariates: Vec<String>,
    /// Column of times.
    pub time: String,
    /// Column of events.
    pub event: String,
    /// Unit of the times.
    pub time_unit: String,
    /// What times were divided by.
    pub time_scale: f64,
}

/// How intervals were resampled.
#[derive(Clone, Debug, Serialize)]
pub struct ProtocolBootstrap {
    /// Resamples.
    pub replicates: usize,
    /// Their seed.
    pub seed: u64,
    /// What happens to the risks.
    pub risks: &'static str,
    /// Kind of the interval and its confidence.
    pub interval: &'static str,
}

impl Protocol {
    pub(crate) fn from_plan(plan: &StudyPlan) -> Self {
        Self {
            unit: "slide; patient-level results in addition",
            ties: ties_name(plan.ties),
            bootstrap: ProtocolBootstrap {
                replicates: plan.replicates,
                seed: plan.seed,
                risks: "fitted once, held fixed",
                interval: "percentile, 95 %",
            },
            errors: "cluster-robust by patient",
            covariates: plan.covariates.clone(),
            time: plan.time.clone(),
            event: plan.event.clone(),
            time_unit: plan.time_unit.clone(),
            time_scale: plan.time_scale,
        }
    }
}

/// Everything about one count.
#[derive(Clone, Debug, Serialize)]
pub struct Feature {
    /// `hotspot` or `density`.
    pub feature: &'static str,
    /// Its name for people.
    pub label: &'static str,
    /// Units of the log-rank test, its curves, the adjusted models and the p-values: `slides`, or `patients (max)`
    /// where patients have several slides, whose tests of slides would not be valid.
    pub unit: String,
    /// The count alone over patients, where patients have several slides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cox_patients: Option<Model>,
    /// Slides.
    pub n: usize,
    /// Slides with an event.
    pub events: usize,
    /// Why the model is missing, if it is.
    pub failed: Option<String>,
    /// The count alone.
    pub cox: Option<Model>,
    /// C of the fitted risk.
    pub c_index_fitted_risk: Option<CStudy>,
    /// C of the count itself.
    pub c_index_count_as_risk: Option<CStudy>,
    /// Groups at a cut-point.
    pub logrank: Option<LogRankStudy>,
    /// With covariates.
    pub adjusted: Option<Adjusted>,
}

/// Unit of tests where every patient has one slide.
pub(crate) const SLIDES: &str = "slides";

impl Feature {
    /// Takes the tests of the same count over patients in place of its own.
    pub(super) fn take_tests(&mut self, patients: Self, rule: PatientRule) {
        self.unit = format!("patients ({})", rule.name());
        self.cox_patients = patients.cox;
        self.logrank = patients.logrank;
        self.adjusted = patients.adjusted;
    }

    /// `, ` and the unit, where that is not the slide.
    pub(crate) fn other_unit(&self) -> String {
        if self.unit == SLIDES { String::new() } else { format!(", {}", self.unit) }
    }

    /// The models that tests and p-values are of, with their names: of patients, where these have several slides.
    pub(crate) fn tested_models(&self) -> impl Iterator<Item = (&'static str, &Model)> {
        let alone = if self.unit == SLIDES { &self.cox } else { &self.cox_patients };
        let adjusted = self.adjusted.as_ref().map(|a| ("adjusted", &a.full));
        alone.iter().map(|m| ("alone", m)).chain(adjusted)
    }
}

/// A Cox model over slides or patients.
#[derive(Clone, Debug, Serialize)]
pub struct Model {
    /// Rows.
    pub n: usize,
    /// Events.
    pub events: usize,
    /// The coefficients.
    pub coefficients: Vec<Coefficient>,
    /// Log-likelihood without covariates.
    pub loglik_null: f64,
    /// Log-likelihood.
    pub loglik: f64,
    /// Likelihood-ratio test of all coefficients.
    pub lrt: Test,
    /// Whether the fit reached its maximum.
    pub converged: bool,
    /// Wald test; none where an estimate may be infinite.
    pub wald: Option<Test>,
    /// Test of proportional hazards.
    pub proportional_hazards: Option<Test>,
    /// Which of these tests are not valid, and why: a model over slides, several of which are of one patient.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_valid: Option<String>,
    #[serde(skip)]
    pub(crate) names: Vec<String>,
    /// Names for people: a category's column and level apart.
    #[serde(skip)]
    #[cfg_attr(not(feature = "report"), expect(dead_code, reason = "for the report"))]
    pub(crate) labels: Vec<String>,
    /// Standard deviation of each covariate; 1 for indicators.
    #[serde(skip)]
    #[cfg_attr(not(feature = "report"), expect(dead_code, reason = "for the report"))]
    pub(crate) sd: Vec<f64>,
    #[serde(skip)]
    pub(crate) fit: CoxFit,
}

#[cfg(feature = "report")]
impl Model {
    /// Hazard ratio per standard deviation with its 95 % limits.
    pub(crate) fn ratio_per_sd(
        &self,
        j: usize,
    ) -> Option<(f64, f64, f64, stats::survival::cox::Coefficient)> {
        let c = self.fit.coefficient(j)?;
        let sd = self.sd[j];
        let scaled = stats::survival::cox::Coefficient { beta: c.beta * sd, se: c.se * sd, ..c };
        let (estimate, lower, upper) = scaled.hazard_ratio(0.95);
        Some((estimate, lower, upper, c))
    }
}

/// A C-index with its bootstraps.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CStudy {
    /// Harrell's C.
    pub c: f64,
    /// Its standard error.
    pub se: Option<f64>,
    /// Slides resampled, fitted risks fixed: the paper's interval.
    pub rows: Resampled,
    /// Patients resampled.
    pub patients: Option<Resampled>,
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
}

impl CStudy {
    pub(super) fn new(c: &Concordance, rows: &Bootstrap, patients: Option<&Bootstrap>) -> Self {
        Self {
            c: c.c_index,
            se: c.std_error,
            rows: Resampled::brief(rows),
            patients: patients.map(Resampled::brief),
            concordant: c.concordant,
            discordant: c.discordant,
            tied_risk: c.tied_risk,
            tied_time: c.tied_time,
            tied_both: c.tied_both,
        }
    }
}

/// Groups at a cut-point.
#[derive(Clone, Debug, Serialize)]
pub struct LogRankStudy {
    /// The cut-point: at most, and above.
    pub cut: f64,
    /// Where it comes from.
    pub cut_origin: String,
    /// Names of the groups.
    pub groups: [String; 2],
    /// All slides.
    pub all: Tested,
    /// Slides outside the training subset, if one was named.
    pub held_out: Option<Tested>,
    #[serde(skip)]
    #[cfg_attr(not(any(feature = "report", test)), expect(dead_code, reason = "for the report"))]
    pub(crate) split: Split,
}

/// Which rows are in which group.
#[derive(Clone, Debug)]
#[cfg_attr(not(any(feature = "report", test)), expect(dead_code, reason = "for the report"))]
pub(crate) struct Split {
    /// 0 or 1 per row of `survival`.
    pub group: Vec<usize>,
    pub survival: Survival,
}

/// A log-rank test, or why it is missing.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Tested {
    /// The test.
    Done {
        /// The statistic.
        chi2: f64,
        /// Degrees of freedom.
        df: usize,
        /// The p-value.
        p: f64,
        /// Events per group.
        observed: Vec<f64>,
        /// Events expected per group.
        expected: Vec<f64>,
        /// Rows per group.
        #[serde(skip)]
        sizes: Vec<usize>,
    },
    /// No test.
    Failed {
        /// Why.
        failed: String,
    },
}

impl From<Result<LogRank, SurvivalError>> for Tested {
    fn from(tested: Result<LogRank, SurvivalError>) -> Self {
        match tested {
            Ok(t) => Self::Done {
                chi2: t.test.chi2,
                df: t.test.df,
                p: t.test.p,
                observed: t.groups.iter().map(|g| g.observed).collect(),
                expected: t.groups.iter().map(|g| g.expected).collect(),
                sizes: t.groups.iter().map(|g| g.n).collect(),
            },
            Err(why) => Self::Failed { failed: why.to_string() },
        }
    }
}

/// The covariates against covariates and count.
#[derive(Clone, Debug, Serialize)]
pub struct Adjusted {
    /// Without the count.
    pub base: Model,
    /// With the count.
    pub full: Model,
    /// What the count adds.
    pub lrt: Test,
}

impl Adjusted {
    /// Whether both likelihoods reached their maximum (an infinite coefficient does not prevent
    /// that), so that the test means something.
    pub(super) fn settled(&self) -> bool {
        let open = |d: &Diagnosis| matches!(d, Diagnosis::NotConverged { .. });
        ![&self.base, &self.full].iter().any(|m| m.fit.diagnoses.iter().any(open))
    }
}

/// One row of the comparison over methods.
#[derive(Clone, Debug, Serialize)]
pub struct Compared {
    /// Name of the method whose counts these are.
    pub method: String,
    /// `hotspot` or `density`.
    pub feature: &'static str,
    /// Slides compared: those that all methods have.
    pub n: usize,
    /// Events among them.
    pub events: usize,
    /// Slides with an outcome that this method has.
    pub slides: usize,
    /// What was found.
    #[serde(flatten)]
    pub result: ComparedResult,
    /// C of the count itself as the risk, without a model: below 0.5 where higher counts go with longer
    /// survival, which a fitted risk turns round.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub c_index_count_as_risk: Option<CStudy>,
}

/// A C-index, or why it is missing.
#[expect(clippy::large_enum_variant, reason = "a handful per study")]
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum ComparedResult {
    /// Found.
    Found {
        /// The count's name for people.
        label: &'static str,
        /// C of the fitted risk.
        c_index: CStudy,
    },
    /// Not found.
    Failed {
        /// Why.
        failed: String,
    },
}

/// One result with patients as units.
#[derive(Clone, Debug, Serialize)]
pub struct PatientLevel {
    /// How a patient's slides became one count.
    pub rule: &'static str,
    /// The count's name for people.
    pub feature: &'static str,
    /// Patients.
    pub n: usize,
    /// Patients with an event.
    pub events: usize,
    /// What was found.
    #[serde(flatten)]
    pub result: PatientResult,
}

/// A model with its C-index, or why it is missing.
#[expect(clippy::large_enum_variant, reason = "a handful per study")]
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum PatientResult {
    /// Found.
    Found {
        /// The model.
        cox: Box<Model>,
        /// C of its risk.
        c_index: CStudy,
    },
    /// Not found.
    Failed {
        /// Why.
        failed: String,
    },
}

/// A p-value before and after the correction for the number of tests.
#[derive(Clone, Debug, Serialize)]
pub struct PValue {
    /// What was tested, as the report prints it.
    pub test: String,
    /// Its p-value.
    pub p: f64,
    /// Holm's, over all tests.
    pub p_holm: f64,
}
