//! Cox, Kaplan-Meier, log-rank and concordance against R (`golden/survival.R`).

use crate::common::{Prepared, Spec, close, prepare};
use serde::Deserialize;
use stats::survival::concordance::Pairs;
use stats::survival::cox::{CoxData, Options, Ties, TimeTransform, fit};
use stats::survival::km::{self, IntervalType, kaplan_meier};
use stats::survival::logrank::logrank;
use stats::survival::{ChiSquared, Survival};
use std::collections::BTreeMap;

#[derive(Deserialize)]
struct Golden {
    cox: Vec<Cox>,
    km: Vec<Km>,
    logrank: Vec<LogRank>,
    concordance: Vec<Concordance>,
}

#[derive(Deserialize)]
struct Cox {
    spec: Spec,
    n: usize,
    events: usize,
    names: Vec<String>,
    beta: Vec<f64>,
    se: Vec<f64>,
    se_naive: Vec<f64>,
    z: Vec<f64>,
    p: Vec<f64>,
    means: Vec<f64>,
    loglik: [f64; 2],
    score: f64,
    wald: f64,
    lrt: [f64; 3],
    robust_score: Option<f64>,
    concordance: [f64; 5],
    c_index: f64,
    c_se: f64,
    rows: usize,
    at: Vec<usize>,
    time: Vec<f64>,
    centred: Vec<f64>,
    at_zero: Vec<f64>,
    zph: BTreeMap<String, Zph>,
}

#[derive(Deserialize)]
struct Zph {
    chi2: Vec<f64>,
    df: Vec<usize>,
    p: Vec<f64>,
}

#[derive(Deserialize)]
struct Km {
    spec: Spec,
    curves: Vec<Curve>,
}

#[derive(Deserialize)]
struct Curve {
    points: usize,
    at: Vec<usize>,
    time: Vec<f64>,
    at_risk: Vec<f64>,
    events: Vec<f64>,
    survival: Vec<f64>,
    std_error: Vec<Option<f64>>,
    hazard: Vec<f64>,
    plain: Limits,
    log: Limits,
    loglog: Limits,
}

#[derive(Deserialize)]
struct Limits {
    lower: Vec<Option<f64>>,
    upper: Vec<Option<f64>>,
    median: [Option<f64>; 3],
}

#[derive(Deserialize)]
struct LogRank {
    spec: Spec,
    n: Vec<usize>,
    observed: Vec<f64>,
    expected: Vec<f64>,
    variance: Vec<Vec<f64>>,
    chi2: f64,
    df: usize,
    p: f64,
}

#[derive(Deserialize)]
struct Concordance {
    spec: Spec,
    counts: [f64; 5],
    c_index: f64,
    se: f64,
}

fn golden() -> Golden {
    serde_json::from_str(include_str!("golden/survival.json")).expect("golden values")
}

fn outcome(p: &Prepared) -> Survival {
    Survival::new(&p.time, &p.event).expect("valid outcome")
}

const TIGHT: f64 = 1e-6;

#[test]
fn cox_equals_r() {
    let mut checked = 0;
    for case in golden().cox {
        let Some(p) = prepare(&case.spec) else { continue };
        checked += 1;
        let outcome = outcome(&p);
        let mut data = CoxData::new(&outcome, &p.x, p.names.len()).unwrap();
        if let Some(w) = &p.weights {
            data = data.with_weights(w).unwrap();
        }
        if let Some(s) = &p.strata {
            data = data.with_strata(s).unwrap();
        }
        if let Some(c) = &p.cluster {
            data = data.with_cluster(c).unwrap();
        }
        let ties =
            if case.spec.ties.as_deref() == Some("breslow") { Ties::Breslow } else { Ties::Efron };
        let got = fit(&data, &Options { ties, ..Options::default() }).unwrap();
        let label = |what: &str| format!("{what} of {:?}", case.spec);
        assert_eq!(p.names, case.names);
        assert_eq!((got.n, got.events), (case.n, case.events), "{}", label("rows"));
        assert!(got.diagnoses.is_empty(), "{:?} {}", got.diagnoses, label("diagnoses"));
        for j in 0..p.names.len() {
            let c = got.coefficient(j).unwrap();
            close(&label("beta"), c.beta, case.beta[j], TIGHT);
            close(&label("se"), c.se, case.se[j], TIGHT);
            close(&label("naive se"), c.se_naive, case.se_naive[j], TIGHT);
            close(&label("z"), c.z, case.z[j], TIGHT);
            close(&label("p"), c.p, case.p[j], TIGHT);
            close(&label("mean"), got.means[j], case.means[j], TIGHT);
        }
        close(&label("null"), got.loglik_null, case.loglik[0], TIGHT);
        close(&label("loglik"), got.loglik, case.loglik[1], TIGHT);
        close(&label("score"), got.score.chi2, case.score, TIGHT);
        close(&label("wald"), got.wald.unwrap().chi2, case.wald, TIGHT);
        let lrt = got.likelihood_ratio();
        close(&label("lrt"), lrt.chi2, case.lrt[0], TIGHT);
        close(&label("lrt df"), lrt.df as f64, case.lrt[1], TIGHT);
        close(&label("lrt p"), lrt.p, case.lrt[2], TIGHT);
        assert_eq!(got.robust_score.is_some(), case.robust_score.is_some());
        if let (Some(g), Some(w)) = (got.robust_score, case.robust_score) {
            close(&label("robust score"), g.chi2, w, TIGHT);
        }
        let c = got.concordance(&data).unwrap();
        let counts = [c.concordant, c.discordant, c.tied_risk, c.tied_time, c.tied_both];
        for (g, w) in counts.iter().zip(case.concordance) {
            close(&label("pairs"), *g, w, TIGHT);
        }
        close(&label("C"), c.c_index, case.c_index, TIGHT);
        close(&label("se(C)"), c.std_error.unwrap(), case.c_se, TIGHT);
        let baseline: Vec<_> =
            got.baseline(&data).unwrap().into_iter().flat_map(|b| b.points).collect();
        assert_eq!(baseline.len(), case.rows);
        for (k, &at) in case.at.iter().enumerate() {
            let point = baseline[at - 1];
            close(&label("baseline time"), point.time, case.time[k], TIGHT);
            close(&label("baseline"), point.centred, case.centred[k], TIGHT);
            close(&label("baseline at 0"), point.at_zero, case.at_zero[k], TIGHT);
        }
        for (name, want) in &case.zph {
            let transform = match name.as_str() {
                "km" => TimeTransform::Km,
                "identity" => TimeTransform::Identity,
                "rank" => TimeTransform::Rank,
                _ => TimeTransform::Log,
            };
            let test = got.proportional_hazards(&data, transform, &p.terms).unwrap();
            let mut all: Vec<ChiSquared> = test.terms.into_iter().flatten().collect();
            all.push(test.global);
            assert_eq!(all.len(), want.chi2.len());
            for (k, t) in all.iter().enumerate() {
                close(&label("zph"), t.chi2, want.chi2[k], TIGHT);
                assert_eq!(t.df, want.df[k]);
                close(&label("zph p"), t.p, want.p[k], TIGHT);
            }
        }
    }
    assert!(checked >= 24, "the synthetic table is always there");
}

#[track_caller]
fn maybe(what: &str, got: Option<f64>, want: Option<f64>) {
    assert_eq!(got.is_some(), want.is_some(), "{what}: {got:?} against R's {want:?}");
    if let (Some(g), Some(w)) = (got, want) {
        close(what, g, w, TIGHT);
    }
}

#[test]
fn kaplan_meier_equals_r() {
    let mut checked = 0;
    for case in golden().km {
        let Some(p) = prepare(&case.spec) else { continue };
        let whole = outcome(&p);
        let group = p.group.clone().unwrap_or_else(|| vec![0; whole.len()]);
        for (g, want) in case.curves.iter().enumerate() {
            checked += 1;
            let rows: Vec<usize> = (0..whole.len()).filter(|&i| group[i] == g).collect();
            let part = whole.select(&rows).unwrap();
            let weights: Option<Vec<f64>> =
                p.weights.as_ref().map(|w| rows.iter().map(|&i| w[i]).collect());
            let cluster: Option<Vec<usize>> =
                p.cluster.as_ref().map(|c| rows.iter().map(|&i| c[i]).collect());
            for (interval, limits) in [
                (IntervalType::Plain, &want.plain),
                (IntervalType::Log, &want.log),
                (IntervalType::LogLog, &want.loglog),
            ] {
                let options = km::KaplanMeierOptions {
                    weights: weights.as_deref(),
                    cluster: cluster.as_deref(),
                    interval,
                    level: 0.95,
                };
                let curve = kaplan_meier(&part, &options).unwrap();
                let label =
                    |what: &str| format!("{what} ({interval:?}, group {g}) {:?}", case.spec);
                assert_eq!(curve.points.len(), want.points, "{}", label("points"));
                for (k, &at) in want.at.iter().enumerate() {
                    let point = curve.points[at - 1];
                    close(&label("time"), point.time, want.time[k], TIGHT);
                    close(&label("at risk"), point.at_risk, want.at_risk[k], TIGHT);
                    close(&label("events"), point.events, want.events[k], TIGHT);
                    close(&label("S"), point.survival, want.survival[k], TIGHT);
                    close(&label("hazard"), point.cumulative_hazard, want.hazard[k], TIGHT);
                    maybe(&label("se"), point.std_error, want.std_error[k]);
                    maybe(&label("lower"), point.lower, limits.lower[k]);
                    maybe(&label("upper"), point.upper, limits.upper[k]);
                }
                let median = curve.median();
                maybe(&label("median"), median.time, limits.median[0]);
                maybe(&label("median lower"), median.lower, limits.median[1]);
                maybe(&label("median upper"), median.upper, limits.median[2]);
            }
        }
    }
    assert!(checked >= 6);
}

#[test]
fn logrank_equals_r() {
    let mut checked = 0;
    for case in golden().logrank {
        let Some(mut p) = prepare(&case.spec) else { continue };
        checked += 1;
        let group = p.group.take().unwrap();
        let groups = case.n.len();
        let rho = case.spec.rho.unwrap();
        let got = logrank(&outcome(&p), &group, groups, p.strata.as_deref(), rho).unwrap();
        let label = |what: &str| format!("{what} of {:?}", case.spec);
        for (g, counts) in got.groups.iter().enumerate() {
            assert_eq!(counts.n, case.n[g]);
            close(&label("observed"), counts.observed, case.observed[g], TIGHT);
            close(&label("expected"), counts.expected, case.expected[g], TIGHT);
            for h in 0..groups {
                close(&label("variance"), got.variance[g * groups + h], case.variance[g][h], TIGHT);
            }
        }
        close(&label("chi2"), got.test.chi2, case.chi2, TIGHT);
        assert_eq!(got.test.df, case.df);
        close(&label("p"), got.test.p, case.p, TIGHT);
    }
    assert!(checked >= 6);
}

#[test]
fn concordance_equals_r() {
    let mut checked = 0;
    for case in golden().concordance {
        let Some(p) = prepare(&case.spec) else { continue };
        checked += 1;
        let pairs =
            Pairs::new(&outcome(&p), &p.x, p.weights.as_deref(), p.strata.as_deref()).unwrap();
        let c = pairs.concordance(p.cluster.as_deref()).unwrap();
        let counts = [c.concordant, c.discordant, c.tied_risk, c.tied_time, c.tied_both];
        let label = |what: &str| format!("{what} of {:?}", case.spec);
        for (g, w) in counts.iter().zip(case.counts) {
            close(&label("pairs"), *g, w, TIGHT);
        }
        close(&label("C"), c.c_index, case.c_index, TIGHT);
        close(&label("se"), c.std_error.unwrap(), case.se, TIGHT);
    }
    assert!(checked >= 5);
}

/// One drawn table of `golden/monotone.R` with R's results.
#[derive(Deserialize)]
struct Monotone {
    time: Vec<f64>,
    event: Vec<u8>,
    strata: Vec<usize>,
    x: BTreeMap<String, Vec<f64>>,
    beta: Vec<f64>,
    se: Vec<f64>,
    loglik: [f64; 2],
    warned: bool,
    lower: Vec<Option<f64>>,
    upper: Vec<Option<f64>>,
    p: Vec<f64>,
}

#[test]
fn estimates_without_a_finite_value_are_reported_with_the_limits_of_their_profile() {
    let golden: BTreeMap<String, Monotone> =
        serde_json::from_str(include_str!("golden/monotone.json")).unwrap();
    for (name, g) in &golden {
        let event: Vec<bool> = g.event.iter().map(|&e| e == 1).collect();
        let outcome = Survival::new(&g.time, &event).unwrap();
        let columns: Vec<&Vec<f64>> = g.x.values().collect();
        let x: Vec<f64> =
            (0..g.time.len()).flat_map(|i| columns.iter().map(move |c| c[i])).collect();
        let data = CoxData::new(&outcome, &x, columns.len()).unwrap();
        let data = data.with_strata(&g.strata).unwrap();
        let found = fit(&data, &Options::default()).unwrap();
        assert!((found.loglik - g.loglik[1]).abs() < 1e-5, "{name}: {}", found.loglik);
        let infinite = |j: usize| g.lower[j].is_none() || g.upper[j].is_none();
        assert_eq!(g.warned, (0..columns.len()).any(infinite), "{name}");
        for j in 0..columns.len() {
            assert_eq!(found.infinite(j).is_some(), infinite(j), "{name}: {:?}", found.diagnoses);
            let c = found.coefficient(j).unwrap();
            // Where the likelihood is flat both stop by the same rule, but not at the same place to
            // the last digit.
            let near = if infinite(j) { 0.02 } else { 1e-6 };
            assert!((c.beta / g.beta[j] - 1.0).abs() < near, "{name}: {} {}", c.beta, g.beta[j]);
            // R's own error loses its digits where two coefficients run away: with 60 digits, at R's
            // coefficients, the information gives these.
            let se = if name == "together" { [2505.95656, 2534.06499][j] } else { g.se[j] };
            assert!((c.se / se - 1.0).abs() < 10.0 * near, "{name}: {} {se}", c.se);
            let profile = found.profile(&data, j, 0.95).unwrap().unwrap();
            for (limit, wanted) in [(profile.lower, g.lower[j]), (profile.upper, g.upper[j])] {
                match wanted {
                    Some(v) => {
                        assert!((limit - v).abs() < 1e-4 * v.abs().max(1.0), "{name}: {limit} {v}")
                    }
                    None => assert!(limit.is_infinite(), "{name}: {limit}"),
                }
            }
            assert!((profile.test.p / g.p[j] - 1.0).abs() < 1e-3, "{name}: {:?}", profile.test);
        }
    }
}

/// One table of `golden/fail.R` with R's results.
#[derive(Deserialize)]
struct OnceFailed {
    /// Empty where the test draws it.
    #[serde(default)]
    time: Vec<f64>,
    #[serde(default)]
    event: Vec<u8>,
    /// Columns.
    #[serde(default)]
    x: Vec<Vec<f64>>,
    beta: Vec<f64>,
    se: Vec<f64>,
    loglik: [f64; 2],
}

#[test]
fn many_rows_and_a_skewed_covariate_and_other_failures_of_old_have_r_s_estimates() {
    let mut golden: BTreeMap<String, OnceFailed> =
        serde_json::from_str(include_str!("golden/fail.json")).unwrap();
    // Few times, many ties, a covariate of which a few values are a thousand times the others: the
    // first step goes too far.
    let (n, skewed) = (3000, golden.get_mut("skewed").unwrap());
    skewed.time = (0..n).map(|i| f64::from(i % 48 + 1)).collect();
    skewed.event = (0..n).map(|i| u8::from(i % 5 < 3)).collect();
    let value = |i: i32| if i % 997 == 3 { 4000.0 } else { f64::from(i * 7919 % 101) / 50.0 };
    skewed.x = vec![(0..n).map(value).collect()];
    for (name, g) in &golden {
        let event: Vec<bool> = g.event.iter().map(|&e| e == 1).collect();
        let outcome = Survival::new(&g.time, &event).unwrap();
        let x: Vec<f64> = (0..g.time.len()).flat_map(|i| g.x.iter().map(move |c| c[i])).collect();
        let data = CoxData::new(&outcome, &x, g.x.len()).unwrap();
        let found = fit(&data, &Options::default()).unwrap();
        assert!(found.converged(), "{name}: {:?}", found.diagnoses);
        for (j, (beta, se)) in g.beta.iter().zip(&g.se).enumerate() {
            let c = found.coefficient(j).unwrap();
            let near = 1e-6 * se;
            assert!((c.beta - beta).abs() < near, "{name}, {j}: {} {beta}", c.beta);
            assert!((c.se - se).abs() < near, "{name}, {j}: {} {se}", c.se);
        }
        assert!((found.loglik - g.loglik[1]).abs() < 1e-6, "{name}: {}", found.loglik);
    }
}
