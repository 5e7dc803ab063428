//! Kaplan-Meier curves, one per group.

use crate::error::{Error, Result};
use crate::frame::{Frame, Roles};
use crate::result::Summary;
use crate::{Table, check_level};
use base::remedy::Setting;
use serde::Serialize;
use stats::survival::km::{
    IntervalType, KaplanMeier, KaplanMeierOptions, Point, kaplan_meier as fit,
};

/// Which rows, groups and limits survival curves are of.
#[derive(Clone, Debug)]
pub struct CurvesPlan {
    /// Time, event, and the columns whose combinations are groups.
    pub roles: Roles,
    /// Scale of the intervals.
    pub interval: IntervalType,
    /// Their confidence.
    pub level: f64,
    /// Times at which the curves are read, 0 or more.
    pub at: Vec<f64>,
}

impl Default for CurvesPlan {
    fn default() -> Self {
        let (roles, interval) = (Roles::default(), IntervalType::Log);
        Self { roles, interval, level: 0.95, at: Vec::new() }
    }
}

/// Kaplan-Meier curves of all groups.
#[derive(Clone, Debug, Serialize)]
pub struct Curves {
    /// The rows.
    #[serde(flatten)]
    pub summary: Summary,
    /// Scale of the intervals.
    pub interval: &'static str,
    /// Their confidence.
    pub level: f64,
    /// One per group.
    pub groups: Vec<Curve>,
    /// What is not of independent units, where clusters have several rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_valid: Option<Vec<&'static str>>,
    /// Warnings for the reader.
    pub notes: Vec<String>,
}

/// The Kaplan-Meier curve of one group.
#[derive(Clone, Debug, Serialize)]
pub struct Curve {
    /// The group; empty when there is one only.
    pub name: String,
    /// Rows.
    pub n: usize,
    /// Events.
    pub events: usize,
    /// Median survival time.
    pub median: Option<f64>,
    /// Its lower limit.
    pub median_lower: Option<f64>,
    /// Its upper limit.
    pub median_upper: Option<f64>,
    /// Whether the errors are robust.
    pub robust: bool,
    /// The curve at the times asked for, ascending.
    pub at: Vec<CurveAt>,
    /// The curve at every time.
    pub points: Vec<CurvePoint>,
}

/// A curve at a time of the table.
#[derive(Clone, Debug, Serialize)]
pub struct CurvePoint {
    /// In the table's unit.
    pub time: f64,
    /// Weight at risk just before.
    pub at_risk: f64,
    /// Weight of events.
    pub events: f64,
    /// Weight censored.
    pub censored: f64,
    /// S(t).
    pub survival: f64,
    /// Standard error of S(t).
    pub se: Option<f64>,
    /// Lower limit.
    pub lower: Option<f64>,
    /// Upper limit.
    pub upper: Option<f64>,
    /// Nelson-Aalen cumulative hazard.
    pub cumulative_hazard: f64,
}

/// A curve at a time asked for, as R's `summary(survfit, times =)`, which omits times after the last follow-up: they
/// have no S here.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CurveAt {
    /// In the table's unit.
    pub time: f64,
    /// Weight still at risk just before.
    pub at_risk: f64,
    /// Weight of events since the time before it in the list, or since the start.
    pub events: f64,
    /// Weight censored in the same span.
    pub censored: f64,
    /// S(t); none after the last follow-up, where nobody is at risk.
    pub survival: Option<f64>,
    /// Standard error of S(t).
    pub se: Option<f64>,
    /// Lower limit.
    pub lower: Option<f64>,
    /// Upper limit.
    pub upper: Option<f64>,
}

/// Fits one curve per group.
///
/// # Errors
/// When the table lacks a column, a cell is wrong, or the plan is.
pub fn kaplan_meier(table: &Table, plan: &CurvesPlan) -> Result<Curves> {
    check_level(plan.level)?;
    if let Some(t) = plan.at.iter().find(|t| !(t.is_finite() && **t >= 0.0)) {
        return Err(Error::plan(Setting::Times, format!("{t} is not a time")));
    }
    let frame = Frame::new(table, &plan.roles)?;
    let mut notes = frame.notes.clone();
    if frame.survival.events() == 0 {
        notes.push("no events: all rows are censored and every curve stays at 1".into());
    }
    if let Some(repeated) = &frame.repeated {
        notes.push(format!(
            "not valid as curves of patients: {repeated}, each as often as it has rows; only errors and limits are \
             robust to it"
        ));
    }
    let groups: Vec<Curve> = frame
        .group_names
        .iter()
        .enumerate()
        .map(|(g, name)| Ok(described(name, &curve(&frame, g, plan)?, plan)))
        .collect::<Result<_>>()?;
    notes.extend(groups.iter().filter_map(Curve::beyond));
    Ok(Curves {
        summary: frame.summary("km"),
        interval: match plan.interval {
            IntervalType::Plain => "plain",
            IntervalType::Log => "log",
            IntervalType::LogLog => "loglog",
        },
        level: plan.level,
        groups,
        not_valid: frame.repeated.is_some().then(|| vec!["curves", "medians"]),
        notes,
    })
}

impl Curve {
    /// A note on the times asked for at which nobody is at risk any more.
    fn beyond(&self) -> Option<String> {
        let times = self.at.iter().filter(|a| a.survival.is_none()).map(|a| a.time.to_string());
        let (times, last) = (Vec::from_iter(times), self.points.last()?.time);
        let group = if self.name.is_empty() { String::new() } else { format!("{}: ", self.name) };
        (!times.is_empty()).then(|| {
            format!(
                "{group}no survival at {}, after the last follow-up ({last}), when nobody is at risk",
                times.join(", ")
            )
        })
    }
}

fn curve(frame: &Frame, group: usize, plan: &CurvesPlan) -> Result<KaplanMeier> {
    let rows: Vec<usize> = (0..frame.group.len()).filter(|&i| frame.group[i] == group).collect();
    let pick = |v: &Vec<f64>| rows.iter().map(|&i| v[i]).collect::<Vec<_>>();
    let weights = frame.weights.as_ref().map(pick);
    let cluster = frame.cluster.as_ref().map(|c| rows.iter().map(|&i| c[i]).collect::<Vec<_>>());
    let options = KaplanMeierOptions {
        weights: weights.as_deref(),
        cluster: cluster.as_deref(),
        interval: plan.interval,
        level: plan.level,
    };
    Ok(fit(&frame.survival.select(&rows)?, &options)?)
}

fn described(name: &str, curve: &KaplanMeier, plan: &CurvesPlan) -> Curve {
    let median = curve.median();
    let point = |p: &Point| CurvePoint {
        time: p.time,
        at_risk: p.at_risk,
        events: p.events,
        censored: p.censored,
        survival: p.survival,
        se: p.std_error,
        lower: p.lower,
        upper: p.upper,
        cumulative_hazard: p.cumulative_hazard,
    };
    let mut times = plan.at.clone();
    times.sort_by(f64::total_cmp);
    let mut before = None;
    let at = times.iter().map(|&time| {
        let (events, censored) = curve.left_between(before, time);
        before = Some(time);
        let at_risk = curve.at_risk(time);
        let (survival, se, lower, upper) = match curve.at(time) {
            _ if at_risk <= 0.0 => (None, None, None, None),
            None => (Some(1.0), Some(0.0), Some(1.0), Some(1.0)),
            Some(p) => (Some(p.survival), p.std_error, p.lower, p.upper),
        };
        CurveAt { time, at_risk, events, censored, survival, se, lower, upper }
    });
    Curve {
        name: name.to_owned(),
        n: curve.n,
        events: curve.events,
        median: median.time,
        median_lower: median.lower,
        median_upper: median.upper,
        robust: curve.robust,
        at: at.collect(),
        points: curve.points.iter().map(point).collect(),
    }
}
