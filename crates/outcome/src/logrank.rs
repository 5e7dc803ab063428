//! The log-rank test between groups.

use crate::Table;
use crate::error::{Error, Result};
use crate::frame::{Frame, Roles};
use crate::result::{Summary, Test};
use base::remedy::Setting;
use serde::Serialize;
use stats::survival::logrank::logrank;

/// Two groups of one numeric covariate: at most the cut-point, and above.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cut {
    /// At the median of the rows tested.
    Median,
    /// At this value.
    At(f64),
}

/// Which groups are compared, with which weights.
#[derive(Clone, Debug, Default)]
pub struct LogRankPlan {
    /// Time, event, strata, and the covariates whose combinations are the groups.
    pub roles: Roles,
    /// Makes two groups of the one covariate.
    pub cut: Option<Cut>,
    /// Event times weigh S(t)^rho: 0 is the log-rank test, 1 is Peto-Peto's.
    pub rho: f64,
}

/// A log-rank test with its groups, as it is written.
#[derive(Clone, Debug, Serialize)]
pub struct LogRank {
    /// The rows.
    #[serde(flatten)]
    pub summary: Summary,
    /// Observed and expected events per group.
    pub groups: Vec<GroupLine>,
    /// Chi-squared over all groups.
    #[serde(flatten)]
    pub test: Test,
    /// The test once more, under its name.
    pub logrank: Test,
    /// Covariance of observed minus expected.
    pub variance: Vec<Vec<f64>>,
    /// Weight of event times.
    pub rho: f64,
    /// The cut-point used.
    pub cut: Option<f64>,
    /// Names of the strata.
    pub strata: Vec<String>,
    /// Warnings for the reader.
    pub notes: Vec<String>,
    /// What makes the result doubtful.
    pub warnings: Vec<String>,
}

/// Events of one group against those expected.
#[derive(Clone, Debug, Serialize)]
pub struct GroupLine {
    /// Its name.
    pub name: String,
    /// Rows.
    pub n: usize,
    /// Events.
    pub observed: f64,
    /// Events expected if all groups were one.
    pub expected: f64,
}

/// Tests whether the groups differ.
///
/// # Errors
/// When the table lacks a column, a cell is wrong, or the plan is.
pub fn log_rank(table: &Table, plan: &LogRankPlan) -> Result<LogRank> {
    if plan.roles.weights.is_some() {
        let reason = "the log-rank test takes no case weights; use a Cox model and its score test";
        return Err(Error::plan(Setting::Weights, reason));
    }
    if plan.roles.cluster.is_some() {
        let reason = "the log-rank test knows no clusters: take one row per patient, or a Cox model with clusters";
        return Err(Error::plan(Setting::Patient, reason));
    }
    if !plan.rho.is_finite() {
        return Err(Error::plan(Setting::Rho, format!("rho is {}, not a number", plan.rho)));
    }
    let names = &plan.roles.covariates;
    let mut roles = plan.roles.clone();
    if plan.cut.is_some() {
        if names.len() != 1 {
            return Err(Error::plan(Setting::Cut, "a cut-point needs exactly one covariate"));
        }
    } else {
        roles.groups = std::mem::take(&mut roles.covariates);
    }
    let mut frame = Frame::new(table, &roles)?;
    let mut cut_point = None;
    if let Some(cut) = plan.cut {
        let name = &names[0];
        if frame.names.len() != 1 || frame.names[0] != *name {
            let reason = format!("column '{name}' is not numeric and has no cut-point");
            return Err(Error::plan(Setting::Cut, reason));
        }
        let value = match cut {
            Cut::Median => stats::interval::median(&frame.x)?,
            Cut::At(value) => value,
        };
        cut_point = Some(value);
        frame.group = frame.x.iter().map(|&v| usize::from(v > value)).collect();
        frame.group_names = vec![format!("{name} <= {value}"), format!("{name} > {value}")];
        if cut == Cut::Median {
            frame.notes.push(format!(
                "cut-point {value} is the median of these rows; a cut chosen on the data it is \
                 tested on is optimistic, one that was fixed on a training subset is not"
            ));
        }
    } else if frame.group_names.len() > 10.max(frame.rows.len() / 5) {
        let reason = format!(
            "{} groups in {} rows: is '{}' a number? Give a cut-point, or test it with a Cox model",
            frame.group_names.len(),
            frame.rows.len(),
            names.join(",")
        );
        return Err(Error::plan(Setting::Cut, reason));
    }
    let groups = frame.group_names.len();
    let tested = logrank(&frame.survival, &frame.group, groups, frame.strata.as_deref(), plan.rho)
        .map_err(|source| Error::Estimate { path: table.path().to_owned(), source })?;
    let mut warnings = Vec::new();
    let events = frame.survival.events();
    if events < 10 * (groups - 1) {
        warnings.push(format!(
            "few events: {events} in {groups} groups; the chi-squared approximation is rough"
        ));
    }
    let lines = frame.group_names.iter().zip(&tested.groups).map(|(name, g)| GroupLine {
        name: name.clone(),
        n: g.n,
        observed: g.observed,
        expected: g.expected,
    });
    Ok(LogRank {
        summary: frame.summary("logrank"),
        groups: lines.collect(),
        test: tested.test.into(),
        logrank: tested.test.into(),
        variance: tested.variance.chunks_exact(groups).map(<[f64]>::to_vec).collect(),
        rho: plan.rho,
        cut: cut_point,
        strata: frame.strata_names,
        notes: frame.notes,
        warnings,
    })
}
