//! The Kaplan-Meier estimator with Greenwood or robust errors.

use super::data::{Survival, SurvivalError, check_length, order_by_time};
use crate::distribution::normal_critical;
use std::collections::HashMap;

/// On which scale the interval is symmetric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IntervalType {
    /// S +- z se(S), cut to [0, 1].
    Plain,
    /// exp(log S +- z se(log S)), cut to 1; R's default.
    #[default]
    Log,
    /// exp(-exp(log(-log S) +- z se)).
    LogLog,
}

crate::spelling::spelled!(IntervalType { Plain = "plain", Log = "log", LogLog = "log-log" | "loglog" });

/// The estimate at one distinct time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// In the unit of the data.
    pub time: f64,
    /// Weight at risk just before.
    pub at_risk: f64,
    /// Weight of events.
    pub events: f64,
    /// Weight censored.
    pub censored: f64,
    /// S(t).
    pub survival: f64,
    /// Standard error of S(t); absent where it does not exist (Greenwood at S = 0).
    pub std_error: Option<f64>,
    /// Lower limit, absent where R has NA (S = 0, and S = 1 on the log-log scale).
    pub lower: Option<f64>,
    /// Upper limit.
    pub upper: Option<f64>,
    /// Nelson-Aalen cumulative hazard.
    pub cumulative_hazard: f64,
}

/// A time by which a share has failed, with the interval read off the limits of the curve; a part
/// is absent where its curve never falls that far.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Quantile {
    /// In the unit of the data; `None` where it is not reached.
    pub time: Option<f64>,
    /// Where the lower limit crosses.
    pub lower: Option<f64>,
    /// Where the upper limit crosses.
    pub upper: Option<f64>,
}

/// A fitted curve.
#[derive(Debug, Clone, PartialEq)]
pub struct KaplanMeier {
    /// Rows.
    pub n: usize,
    /// Events (rows).
    pub events: usize,
    /// One entry per distinct time, ascending, censoring times included (as R).
    pub points: Vec<Point>,
    /// Whether the errors are the robust ones.
    pub robust: bool,
}

/// What a curve is fitted with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KaplanMeierOptions<'a> {
    /// Case weights, finite and >= 0.
    pub weights: Option<&'a [f64]>,
    /// Independent units for a robust error.
    pub cluster: Option<&'a [usize]>,
    /// Interval scale.
    pub interval: IntervalType,
    /// Confidence.
    pub level: f64,
}

impl Default for KaplanMeierOptions<'_> {
    fn default() -> Self {
        Self { weights: None, cluster: None, interval: IntervalType::Log, level: 0.95 }
    }
}

/// Fits one curve. Errors are Greenwood's, or the infinitesimal jackknife where clusters are given
/// or a weight is not a whole number, as R's `survfit` does.
///
/// References: Kaplan and Meier, J. Am. Stat. Assoc. 53 (1958) 457-481; Borgan and Liestoel,
/// Scand. J. Stat. 17 (1990) 35-41 (log-log).
///
/// # Errors
/// When lengths differ, a weight is negative, all weights are zero, or the level is bad.
pub fn kaplan_meier(
    survival: &Survival,
    options: &KaplanMeierOptions,
) -> Result<KaplanMeier, SurvivalError> {
    let n = survival.len();
    if !(options.level > 0.0 && options.level < 1.0) {
        return Err(SurvivalError::Level { value: options.level });
    }
    if let Some(weights) = options.weights {
        check_length("weights", n, weights.len())?;
        if let Some((row, &value)) =
            weights.iter().enumerate().find(|(_, w)| !(w.is_finite() && **w >= 0.0))
        {
            return Err(SurvivalError::Weight { row, value });
        }
        if weights.iter().all(|&w| w == 0.0) {
            return Err(SurvivalError::Empty);
        }
    }
    if let Some(cluster) = options.cluster {
        check_length("cluster", n, cluster.len())?;
    }
    let weight = |i: usize| options.weights.map_or(1.0, |w| w[i]);
    let robust = options.cluster.is_some()
        || options.weights.is_some_and(|w| w.iter().any(|w| w.fract() != 0.0));
    let z = normal_critical(options.level);
    let (time, event) = (survival.time(), survival.event());
    let order = order_by_time(survival, None);
    // Summed from the end, so that the risk set never suffers from cancellation.
    let mut at_risk_from = vec![0.0; n + 1];
    for (k, &i) in order.iter().enumerate().rev() {
        at_risk_from[k] = at_risk_from[k + 1] + weight(i);
    }
    let mut jackknife = robust.then(|| Jackknife::new(n, options.cluster, &weight));
    let mut points = Vec::new();
    let (mut s, mut greenwood, mut hazard, mut start) = (1.0_f64, 0.0_f64, 0.0_f64, 0_usize);
    for tied in order.chunk_by(|&a, &b| time[a] == time[b]) {
        let at_risk = at_risk_from[start];
        start += tied.len();
        // A sum of nothing is -0.0.
        let events = tied.iter().filter(|&&i| event[i]).map(|&i| weight(i)).sum::<f64>() + 0.0;
        let all: f64 = tied.iter().map(|&i| weight(i)).sum();
        let before = greenwood;
        if events > 0.0 {
            // At the last event the rounding of sums must not leave a sliver.
            let alive =
                if at_risk_from[start] == 0.0 && events == all { 0.0 } else { at_risk - events };
            s *= alive / at_risk;
            greenwood += events / (at_risk * alive);
            hazard += events / at_risk;
        }
        if let Some(j) = &mut jackknife {
            for &i in tied {
                let own = if event[i] { before - 1.0 / at_risk } else { greenwood };
                j.leave(i, weight(i), own);
            }
        }
        // The error of log S.
        let relative = match &jackknife {
            Some(j) => j.error(greenwood),
            None => greenwood.sqrt(),
        };
        let std_error = if s > 0.0 { Some(s * relative) } else { robust.then_some(0.0) };
        let (lower, upper) = limits(s, relative, z, options.interval, robust);
        points.push(Point {
            time: time[tied[0]],
            at_risk,
            events,
            censored: all - events,
            survival: s,
            std_error,
            lower,
            upper,
            cumulative_hazard: hazard,
        });
    }
    Ok(KaplanMeier { n, events: survival.events(), points, robust })
}

fn limits(
    s: f64,
    relative: f64,
    z: f64,
    interval: IntervalType,
    robust: bool,
) -> (Option<f64>, Option<f64>) {
    let both = |a: f64, b: f64| (Some(a), Some(b));
    match interval {
        IntervalType::Plain if s > 0.0 => {
            let half = z * relative * s;
            both((s - half).max(0.0), (s + half).min(1.0))
        }
        IntervalType::Plain if robust => both(0.0, 0.0),
        IntervalType::Log if s > 0.0 => {
            both((s.ln() - z * relative).exp(), (s.ln() + z * relative).exp().min(1.0))
        }
        IntervalType::LogLog if s > 0.0 && s < 1.0 => {
            let (centre, half) = ((-s.ln()).ln(), z * relative / s.ln());
            both((-(centre - half).exp()).exp(), (-(centre + half).exp()).exp())
        }
        _ => (None, None),
    }
}

/// Sum over clusters of the squared influence on log S(t), kept up to date as rows leave.
///
/// A row still at risk at t has influence A(t) = sum dN / (Y (Y - dN)) per unit weight; a row that
/// left keeps what it had then. With E_c the sum kept and R_c the weight at risk of cluster c, the
/// variance is sum (E_c + R_c A)^2, of which only three sums change.
struct Jackknife {
    cluster: Vec<usize>,
    left: Vec<f64>,
    at_risk: Vec<f64>,
    /// Sums over clusters of E^2, E R and R^2.
    sums: (f64, f64, f64),
}

impl Jackknife {
    fn new(n: usize, cluster: Option<&[usize]>, weight: &impl Fn(usize) -> f64) -> Self {
        let cluster: Vec<usize> = match cluster {
            None => (0..n).collect(),
            Some(given) => {
                let mut seen = HashMap::new();
                given
                    .iter()
                    .map(|c| {
                        let next = seen.len();
                        *seen.entry(*c).or_insert(next)
                    })
                    .collect()
            }
        };
        let clusters = cluster.iter().max().map_or(0, |m| m + 1);
        let mut at_risk = vec![0.0; clusters];
        for (i, &c) in cluster.iter().enumerate() {
            at_risk[c] += weight(i);
        }
        let squares = at_risk.iter().map(|r| r * r).sum();
        Self { cluster, left: vec![0.0; clusters], at_risk, sums: (0.0, 0.0, squares) }
    }

    fn leave(&mut self, i: usize, weight: f64, influence: f64) {
        let c = self.cluster[i];
        let (e, r) = (self.left[c], self.at_risk[c]);
        let (e2, r2) = (e + weight * influence, r - weight);
        self.left[c] = e2;
        self.at_risk[c] = r2;
        self.sums.0 += e2 * e2 - e * e;
        self.sums.1 += e2 * r2 - e * r;
        self.sums.2 += r2 * r2 - r * r;
    }

    fn error(&self, a: f64) -> f64 {
        let a = if a.is_finite() { a } else { 0.0 };
        let (ee, er, rr) = self.sums;
        (ee + 2.0 * a * er + a * a * rr).max(0.0).sqrt()
    }
}

impl KaplanMeier {
    /// S at `time`: the value at the last distinct time not after it, 1 before the first.
    #[must_use]
    pub fn survival_at(&self, time: f64) -> f64 {
        self.at(time).map_or(1.0, |p| p.survival)
    }

    /// The last point not after `time`.
    #[must_use]
    pub fn at(&self, time: f64) -> Option<&Point> {
        let after = self.points.partition_point(|p| p.time <= time);
        after.checked_sub(1).map(|i| &self.points[i])
    }

    /// Weight still at risk just before `time`.
    #[must_use]
    pub fn at_risk(&self, time: f64) -> f64 {
        let next = self.points.partition_point(|p| p.time < time);
        self.points.get(next).map_or(0.0, |p| p.at_risk)
    }

    /// Weights of events and of censored rows after `before` (from the start without it) until
    /// `time`, both ends as R's `summary(survfit, times =)` takes them: (before, time].
    #[must_use]
    pub fn left_between(&self, before: Option<f64>, time: f64) -> (f64, f64) {
        let inside = |p: &&Point| p.time <= time && before.is_none_or(|b| p.time > b);
        self.points
            .iter()
            .filter(inside)
            .fold((0.0, 0.0), |(e, c), p| (e + p.events, c + p.censored))
    }

    /// The median survival time with its interval, by R's rule: the first time with S <= 1/2; if S
    /// is exactly 1/2 there, the middle between it and the next drop.
    #[must_use]
    pub fn median(&self) -> Quantile {
        let cross = |curve: &dyn Fn(&Point) -> Option<f64>| {
            let tolerance = f64::EPSILON.sqrt();
            let below: Vec<(f64, f64)> = self
                .points
                .iter()
                .filter_map(|p| curve(p).map(|y| (p.time, y)))
                .filter(|(_, y)| *y < 0.5 + tolerance)
                .collect();
            let (time, y) = *below.first()?;
            if (y - 0.5).abs() < tolerance
                && let Some((next, _)) = below.iter().find(|(_, later)| *later < y)
            {
                return Some(f64::midpoint(time, *next));
            }
            Some(time)
        };
        Quantile {
            time: cross(&|p| Some(p.survival)),
            lower: cross(&|p| p.lower),
            upper: cross(&|p| p.upper),
        }
    }
}
