//! Harrell's C-index of a risk.

use crate::error::{Error, Result};
use crate::frame::{Frame, Roles};
use crate::result::{Agreement, PairCounts, Resampled, Summary, diagnoses};
use crate::{Table, check_level};
use base::remedy::Setting;
use serde::Serialize;
use stats::bootstrap::Plan;
use stats::distribution::normal_critical;
use stats::survival::concordance::Pairs;
use stats::survival::cox::{Options, Ties, fit};

/// Which risk, and how its C is judged.
#[derive(Clone, Debug)]
pub struct CIndexPlan {
    /// Time, event, strata, clusters, weights; one covariate is the risk, several make a Cox model.
    pub roles: Roles,
    /// Fits a Cox model even to one covariate.
    pub fit: bool,
    /// Higher values mean a later event (a single covariate only).
    pub protective: bool,
    /// Tied events of the Cox model.
    pub ties: Ties,
    /// Bootstrap replicates with risks held fixed; 0 for none.
    pub replicates: usize,
    /// Seed of the bootstrap.
    pub seed: u64,
    /// Confidence of the intervals.
    pub level: f64,
}

impl Default for CIndexPlan {
    fn default() -> Self {
        Self {
            roles: Roles::default(),
            fit: false,
            protective: false,
            ties: Ties::default(),
            replicates: 0,
            seed: 0,
            level: 0.95,
        }
    }
}

/// The C-index.
#[derive(Clone, Debug, Serialize)]
pub struct CIndex {
    /// The rows.
    #[serde(flatten)]
    pub summary: Summary,
    /// Harrell's C.
    pub c_index: f64,
    /// Its standard error.
    pub se: Option<f64>,
    /// Lower limit from the standard error.
    pub lower: f64,
    /// Upper limit.
    pub upper: f64,
    /// Confidence of the intervals.
    pub level: f64,
    /// Where the risk comes from.
    pub risk: RiskSource,
    /// How many pairs of rows agree, disagree or are tied.
    #[serde(flatten)]
    pub pairs: PairCounts,
    /// By what was resampled.
    pub bootstrap: Bootstraps,
    /// What is not of independent units, where clusters have several rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_valid: Option<Vec<&'static str>>,
    /// Warnings for the reader.
    pub notes: Vec<String>,
    /// What makes the result doubtful.
    pub warnings: Vec<String>,
}

/// Intervals from resampling, risks held fixed.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Bootstraps {
    /// Interval over draws of rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<Resampled>,
    /// Interval over draws of whole clusters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clusters: Option<Resampled>,
}

/// Where a risk comes from.
#[derive(Clone, Debug, Serialize)]
pub struct RiskSource {
    /// `cox` or `column`.
    pub source: &'static str,
    /// The covariates.
    pub columns: Vec<String>,
    /// Whether higher values mean a later event.
    pub protective: bool,
}

/// A note on resampled rows where clusters have several.
fn rows_not_valid(frame: &Frame) -> Option<String> {
    frame.repeated.as_ref().map(|repeated| {
        format!(
            "the interval from resampled rows is not valid: {repeated} are not independent; that from resampled \
             clusters is"
        )
    })
}

/// Judges a risk.
///
/// # Errors
/// When the table lacks a column, a cell is wrong, the plan is, or no pair of rows compares.
pub fn c_index(table: &Table, plan: &CIndexPlan) -> Result<CIndex> {
    check_level(plan.level)?;
    let frame = Frame::new(table, &plan.roles)?;
    let columns = &plan.roles.covariates;
    let model = plan.fit || columns.len() > 1;
    if !model && (frame.names.len() != 1 || frame.names[0] != columns[0]) {
        let reason = format!(
            "column '{}' is categorical and has no order as a risk; a Cox model would give it one",
            columns[0]
        );
        return Err(Error::plan(Setting::Fit, reason));
    }
    if model && plan.protective {
        let reason = "only a single column as the risk can be protective";
        return Err(Error::plan(Setting::Protective, reason));
    }
    let fail = |source| Error::Estimate { path: table.path().to_owned(), source };
    let mut notes = frame.notes.clone();
    let mut warnings = Vec::new();
    let risk: Vec<f64> = if model {
        let columns: Vec<usize> = (0..frame.names.len()).collect();
        let mut buffer = Vec::new();
        let data = frame.cox(&columns, &mut buffer)?;
        let fitted =
            fit(&data, &Options { ties: plan.ties, ..Options::default() }).map_err(fail)?;
        warnings.extend(diagnoses(&fitted, &frame.names));
        notes.push("the risk is a Cox model's fit to these same rows: C is apparent".into());
        fitted.linear_predictor
    } else {
        let sign = if plan.protective { -1.0 } else { 1.0 };
        frame.x.iter().map(|v| sign * v).collect()
    };
    let pairs =
        Pairs::new(&frame.survival, &risk, frame.weights.as_deref(), frame.strata.as_deref())?;
    let c = pairs.concordance(frame.cluster.as_deref()).map_err(fail)?;
    let draws = Plan { replicates: plan.replicates, seed: plan.seed, level: plan.level };
    let mut boots = Vec::new();
    if plan.replicates > 0 {
        boots.push(("rows", pairs.bootstrap(draws)?));
        if let Some(cluster) = &frame.cluster {
            boots.push(("clusters", pairs.bootstrap_clusters(cluster, draws)?));
        }
    }
    notes.extend(rows_not_valid(&frame).filter(|_| plan.replicates > 0));
    for (unit, b) in &boots {
        if b.defined < b.replicates {
            warnings.push(format!(
                "{} of {} resamples of {unit} have no comparable pair and were left out",
                b.replicates - b.defined,
                b.replicates
            ));
        }
    }
    let half = normal_critical(plan.level) * c.std_error.unwrap_or(f64::NAN);
    Ok(CIndex {
        summary: frame.summary("cindex"),
        c_index: c.c_index,
        se: c.std_error,
        lower: (c.c_index - half).max(0.0),
        upper: (c.c_index + half).min(1.0),
        level: plan.level,
        risk: RiskSource {
            source: if model { "cox" } else { "column" },
            columns: columns.clone(),
            protective: plan.protective,
        },
        pairs: Agreement::from(&c).pairs,
        bootstrap: Bootstraps {
            rows: boots.first().map(|(_, b)| Resampled::full(b, plan.seed)),
            clusters: boots.get(1).map(|(_, b)| Resampled::full(b, plan.seed)),
        },
        not_valid: (frame.repeated.is_some() && plan.replicates > 0)
            .then(|| vec!["bootstrap.rows"]),
        notes,
        warnings,
    })
}
