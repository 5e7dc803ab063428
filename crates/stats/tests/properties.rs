//! What must hold for any table: row order, time units, copies as weights, slow oracles; and that
//! hard cases are reported.

use proptest::prelude::*;
use stats::bootstrap::Plan;
use stats::survival::concordance::{Pairs, Scratch, concordance};
use stats::survival::cox::{
    CoxData, Diagnosis, Options, Ties, TimeTransform, fit, likelihood_ratio,
};
use stats::survival::km::{self, kaplan_meier};
use stats::survival::logrank::logrank;
use stats::survival::{Survival, SurvivalError};

#[derive(Debug, Clone)]
struct Table {
    time: Vec<f64>,
    event: Vec<bool>,
    x: Vec<f64>,
    copies: Vec<u32>,
    group: Vec<usize>,
}

/// Small tables full of ties: times 1..12, covariates on a coarse grid.
fn tables() -> impl Strategy<Value = Table> {
    prop::collection::vec(
        (1_u32..12, any::<bool>(), -4_i32..5, 0_i32..2, 1_u32..4, 0_usize..3),
        12..40,
    )
    .prop_map(|rows| Table {
        time: rows.iter().map(|r| f64::from(r.0)).collect(),
        event: rows.iter().map(|r| r.1).collect(),
        x: rows.iter().flat_map(|r| [f64::from(r.2) / 2.0, f64::from(r.3)]).collect(),
        copies: rows.iter().map(|r| r.4).collect(),
        group: rows.iter().map(|r| r.5).collect(),
    })
}

impl Table {
    fn pick(&self, rows: &[usize]) -> Self {
        Self {
            time: rows.iter().map(|&i| self.time[i]).collect(),
            event: rows.iter().map(|&i| self.event[i]).collect(),
            x: rows.iter().flat_map(|&i| [self.x[2 * i], self.x[2 * i + 1]]).collect(),
            copies: rows.iter().map(|&i| self.copies[i]).collect(),
            group: rows.iter().map(|&i| self.group[i]).collect(),
        }
    }

    fn survival(&self) -> Survival {
        Survival::new(&self.time, &self.event).unwrap()
    }
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-7 * a.abs().max(b.abs()).max(1.0)
}

/// Harrell's C by looking at every pair.
fn slow_pairs(t: &Table, weight: impl Fn(usize) -> f64) -> [f64; 5] {
    let mut out = [0.0; 5];
    for i in 0..t.time.len() {
        for j in 0..t.time.len() {
            let (risk_i, risk_j) = (t.x[2 * i], t.x[2 * j]);
            let w = weight(i) * weight(j);
            let first =
                t.event[i] && (t.time[i] < t.time[j] || (t.time[i] == t.time[j] && !t.event[j]));
            if first {
                let k = match risk_i.total_cmp(&risk_j) {
                    std::cmp::Ordering::Greater => 0,
                    std::cmp::Ordering::Less => 1,
                    std::cmp::Ordering::Equal => 2,
                };
                out[k] += w;
            } else if i < j && t.event[i] && t.event[j] && t.time[i] == t.time[j] {
                out[if risk_i == risk_j { 4 } else { 3 }] += w;
            }
        }
    }
    out
}

/// The partial log-likelihood written down from its definition.
fn slow_loglik(t: &Table, beta: &[f64], ties: Ties) -> f64 {
    let n = t.time.len();
    let lp: Vec<f64> = (0..n).map(|i| t.x[2 * i] * beta[0] + t.x[2 * i + 1] * beta[1]).collect();
    let mut times: Vec<f64> = (0..n).filter(|&i| t.event[i]).map(|i| t.time[i]).collect();
    times.sort_by(f64::total_cmp);
    times.dedup();
    let mut out = 0.0;
    for time in times {
        let risk: f64 = (0..n).filter(|&i| t.time[i] >= time).map(|i| lp[i].exp()).sum();
        let dead: Vec<usize> = (0..n).filter(|&i| t.event[i] && t.time[i] == time).collect();
        let dying: f64 = dead.iter().map(|&i| lp[i].exp()).sum();
        for (k, &i) in dead.iter().enumerate() {
            let share = if ties == Ties::Efron { k as f64 / dead.len() as f64 } else { 0.0 };
            out += lp[i] - (risk - share * dying).ln();
        }
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn concordance_equals_all_pairs(t in tables(), seed in 0_u64..1000) {
        let x: Vec<f64> = t.x.iter().step_by(2).copied().collect();
        let slow = slow_pairs(&t, |_| 1.0);
        let weights: Vec<f64> = t.copies.iter().map(|&c| f64::from(c) * 0.3).collect();
        match concordance(&t.survival(), &x) {
            Ok(c) => {
                let got = [c.concordant, c.discordant, c.tied_risk, c.tied_time, c.tied_both];
                prop_assert_eq!(got, slow);
                let pairs = Pairs::new(&t.survival(), &x, Some(&weights), None).unwrap();
                let c = pairs.concordance(None).unwrap();
                let slow = slow_pairs(&t, |i| weights[i]);
                prop_assert!(near(c.concordant, slow[0]) && near(c.tied_both, slow[4]));
                // A resample's C is the C of the copied rows.
                let mut counts = Vec::new();
                stats::bootstrap::draw_counts(t.time.len(), seed, 0, &mut counts);
                let rows: Vec<usize> = counts.iter().enumerate()
                    .flat_map(|(i, &c)| std::iter::repeat_n(i, c as usize)).collect();
                let copied = t.pick(&rows);
                let pairs = Pairs::new(&t.survival(), &x, None, None).unwrap();
                let fast = pairs.resampled(&mut Scratch::default(), &counts);
                let cx: Vec<f64> = copied.x.iter().step_by(2).copied().collect();
                let slow = concordance(&copied.survival(), &cx).ok().map(|c| c.c_index);
                prop_assert_eq!(fast, slow);
            }
            Err(e) => {
                prop_assert_eq!(e, SurvivalError::NoPairs);
                prop_assert_eq!(slow[0] + slow[1] + slow[2], 0.0);
            }
        }
    }

    #[test]
    fn cox_does_not_depend_on_row_order_or_time_unit(t in tables(), breslow in any::<bool>()) {
        let options = Options {
            ties: if breslow { Ties::Breslow } else { Ties::Efron },
            ..Options::default()
        };
        let outcome = t.survival();
        let data = CoxData::new(&outcome, &t.x, 2).unwrap();
        let Ok(a) = fit(&data, &options) else { return Ok(()) };
        if a.diagnoses.is_empty() {
            let slow = slow_loglik(&t, &a.beta, options.ties);
            prop_assert!(near(a.loglik, slow), "{} against {slow}", a.loglik);
            prop_assert!(near(a.loglik_null, slow_loglik(&t, &[0.0, 0.0], options.ties)));
            // No step uphill is left.
            for d in [[1e-3, 0.0], [-1e-3, 0.0], [0.0, 1e-3], [0.0, -1e-3]] {
                let moved = [a.beta[0] + d[0], a.beta[1] + d[1]];
                prop_assert!(slow_loglik(&t, &moved, options.ties) <= slow + 1e-9);
            }
        }
        let reversed: Vec<usize> = (0..t.time.len()).rev().collect();
        let mut turned = t.pick(&reversed);
        turned.time.iter_mut().for_each(|v| *v *= 30.4375);
        let outcome = turned.survival();
        let b = fit(&CoxData::new(&outcome, &turned.x, 2).unwrap(), &options).unwrap();
        prop_assert_eq!(&a.left_out, &b.left_out);
        prop_assert!(near(a.loglik, b.loglik));
        if a.diagnoses.is_empty() {
            for j in 0..2 {
                prop_assert!(near(a.beta[j], b.beta[j]));
                prop_assert!(near(a.variance[3 * j], b.variance[3 * j]));
            }
        }
    }

    #[test]
    fn weights_are_copies(t in tables()) {
        let rows: Vec<usize> = t.copies.iter().enumerate()
            .flat_map(|(i, &c)| std::iter::repeat_n(i, c as usize)).collect();
        let copied = t.pick(&rows);
        let weights: Vec<f64> = t.copies.iter().map(|&c| f64::from(c)).collect();
        let (once, many) = (t.survival(), copied.survival());
        // Breslow's likelihood is additive over copies; Efron's is not, by its definition.
        let options = Options { ties: Ties::Breslow, ..Options::default() };
        let weighted = CoxData::new(&once, &t.x, 2).unwrap().with_weights(&weights).unwrap();
        let plain = CoxData::new(&many, &copied.x, 2).unwrap();
        if let (Ok(a), Ok(b)) = (fit(&weighted, &options), fit(&plain, &options)) {
            prop_assert!(near(a.loglik, b.loglik));
            if a.diagnoses.is_empty() && b.diagnoses.is_empty() {
                prop_assert!(near(a.beta[0], b.beta[0]) && near(a.beta[1], b.beta[1]));
                prop_assert!(near(a.variance[0], b.variance[0]));
            }
        }
        let options = km::KaplanMeierOptions { weights: Some(&weights), ..km::KaplanMeierOptions::default() };
        let a = kaplan_meier(&once, &options).unwrap();
        let b = kaplan_meier(&many, &km::KaplanMeierOptions::default()).unwrap();
        prop_assert_eq!(a.points.len(), b.points.len());
        for (p, q) in a.points.iter().zip(&b.points) {
            prop_assert!(near(p.survival, q.survival) && near(p.at_risk, q.at_risk));
            prop_assert_eq!(p.lower.is_some(), q.lower.is_some());
        }
    }

    #[test]
    fn curves_and_tests_do_not_depend_on_row_order_or_time_unit(t in tables()) {
        let reversed: Vec<usize> = (0..t.time.len()).rev().collect();
        let mut turned = t.pick(&reversed);
        turned.time.iter_mut().for_each(|v| *v *= 30.4375);
        let (one, two) = (t.survival(), turned.survival());
        let a = kaplan_meier(&one, &km::KaplanMeierOptions::default()).unwrap();
        let b = kaplan_meier(&two, &km::KaplanMeierOptions::default()).unwrap();
        prop_assert_eq!(a.points.len(), b.points.len());
        for (p, q) in a.points.iter().zip(&b.points) {
            prop_assert!(near(p.time * 30.4375, q.time) && near(p.survival, q.survival));
            prop_assert_eq!((p.at_risk, p.events), (q.at_risk, q.events));
        }
        prop_assert_eq!(a.median().time.is_some(), b.median().time.is_some());
        match (logrank(&one, &t.group, 3, None, 0.0), logrank(&two, &turned.group, 3, None, 0.0)) {
            (Ok(a), Ok(b)) => prop_assert!(near(a.test.chi2, b.test.chi2) && a.test.df == b.test.df),
            (a, b) => prop_assert_eq!(a.is_err(), b.is_err()),
        }
        let risk = |t: &Table| t.x.iter().step_by(2).copied().collect::<Vec<f64>>();
        prop_assert_eq!(
            concordance(&one, &risk(&t)).map(|c| c.c_index),
            concordance(&two, &risk(&turned)).map(|c| c.c_index)
        );
    }

    #[test]
    fn curves_fall_within_their_limits(t in tables()) {
        for interval in [km::IntervalType::Plain, km::IntervalType::Log, km::IntervalType::LogLog] {
            let options = km::KaplanMeierOptions { interval, ..km::KaplanMeierOptions::default() };
            let curve = kaplan_meier(&t.survival(), &options).unwrap();
            let mut last = 1.0;
            for p in &curve.points {
                prop_assert!(p.survival <= last && (0.0..=1.0).contains(&p.survival));
                if let (Some(l), Some(u)) = (p.lower, p.upper) {
                    prop_assert!(0.0 <= l && l <= p.survival + 1e-12);
                    prop_assert!(p.survival <= u + 1e-12 && u <= 1.0);
                }
                last = p.survival;
            }
        }
    }

    #[test]
    fn logrank_is_the_score_test(t in tables()) {
        // With two groups and no ties in time, the log-rank chi-squared is Cox's score test.
        let mut distinct = t.clone();
        for (i, v) in distinct.time.iter_mut().enumerate() { *v += i as f64 * 0.01; }
        let group: Vec<usize> = t.group.iter().map(|&g| usize::from(g > 0)).collect();
        let x: Vec<f64> = group.iter().map(|&g| g as f64).collect();
        let outcome = distinct.survival();
        if let (Ok(a), Ok(b)) = (
            logrank(&outcome, &group, 2, None, 0.0),
            fit(&CoxData::new(&outcome, &x, 1).unwrap(), &Options::default()),
        ) {
            prop_assert!(near(a.test.chi2, b.score.chi2), "{} {}", a.test.chi2, b.score.chi2);
            let observed: f64 = a.groups.iter().map(|g| g.observed).sum();
            let expected: f64 = a.groups.iter().map(|g| g.expected).sum();
            prop_assert!(near(observed, expected));
        }
    }
}

fn model(
    time: &[f64],
    event: &[u8],
    x: &[f64],
    p: usize,
) -> Result<stats::survival::cox::CoxFit, SurvivalError> {
    let event: Vec<bool> = event.iter().map(|&e| e == 1).collect();
    let outcome = Survival::new(time, &event)?;
    fit(&CoxData::new(&outcome, x, p)?, &Options::default())
}

#[test]
fn separation_is_reported() {
    // All events in the group x = 1, all before anybody else leaves.
    let time = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0];
    let event = [1, 1, 1, 0, 0, 0, 0, 0];
    let x = [1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0];
    let f = model(&time, &event, &x, 1).unwrap();
    assert_eq!(f.diagnoses, [Diagnosis::Infinite { column: 0 }]);
    assert!(!f.converged());
    // A perfectly ordered covariate: the likelihood rises to zero.
    let order: Vec<f64> = (0..8).rev().map(f64::from).collect();
    let f = model(&time, &[1; 8], &order, 1).unwrap();
    assert!(!f.converged(), "{:?} {:?}", f.beta, f.diagnoses);
}

#[test]
fn useless_covariates_are_reported() {
    let time = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    let event = [1, 0, 1, 1, 0, 1];
    let a = [0.3, 1.2, 0.7, 2.0, 0.1, 1.1];
    let x: Vec<f64> = a.iter().flat_map(|&v| [0.1, v, 3.0 - 2.0 * v]).collect();
    let f = model(&time, &event, &x, 3).unwrap();
    assert_eq!(
        f.diagnoses,
        [Diagnosis::Constant { column: 0 }, Diagnosis::Collinear { column: 2 }]
    );
    assert_eq!((f.df(), f.coefficient(0), f.coefficient(2)), (1, None, None));
    let alone = model(&time, &event, &a, 1).unwrap();
    assert!((alone.beta[0] - f.beta[1]).abs() < 1e-9);
    assert_eq!(model(&time, &event, &[7.7; 6], 1).unwrap_err(), SurvivalError::NoInformation);
    assert_eq!(model(&time, &[0; 6], &a, 1).unwrap_err(), SurvivalError::NoEvents { rows: 6 });
    // Constant within each stratum, though not over the table.
    let outcome = Survival::new(&time, &[true; 6]).unwrap();
    let strata = [0, 0, 0, 1, 1, 1];
    let x = [0.1, 0.1, 0.1, 0.7, 0.7, 0.7];
    let data = CoxData::new(&outcome, &x, 1).unwrap().with_strata(&strata).unwrap();
    assert_eq!(fit(&data, &Options::default()).unwrap_err(), SurvivalError::NoInformation);
}

#[test]
fn bad_input_is_an_error() {
    assert_eq!(
        Survival::new(&[1.0, -0.5], &[true, true]),
        Err(SurvivalError::Time { row: 1, value: -0.5 })
    );
    assert!(Survival::new(&[f64::NAN], &[true]).is_err());
    assert!(Survival::new(&[f64::INFINITY], &[true]).is_err());
    assert_eq!(Survival::new(&[], &[]), Err(SurvivalError::Empty));
    assert!(Survival::new(&[1.0], &[]).is_err());
    let outcome = Survival::new(&[1.0, 2.0], &[true, false]).unwrap();
    assert!(CoxData::new(&outcome, &[1.0, f64::NAN], 1).is_err());
    assert!(CoxData::new(&outcome, &[1.0], 1).is_err());
    assert!(CoxData::new(&outcome, &[], 0).is_err());
    let data = CoxData::new(&outcome, &[1.0, 2.0], 1).unwrap();
    assert!(data.with_weights(&[1.0, 0.0]).is_err());
    assert!(data.with_strata(&[0]).is_err());
    assert_eq!(logrank(&outcome, &[0, 0], 2, None, 0.0), Err(SurvivalError::OneGroup));
    let censored = Survival::new(&[1.0, 2.0], &[false, false]).unwrap();
    assert_eq!(logrank(&censored, &[0, 1], 2, None, 0.0), Err(SurvivalError::NoEvents { rows: 2 }));
    assert_eq!(concordance(&censored, &[1.0, 2.0]), Err(SurvivalError::NoPairs));
    let curve = kaplan_meier(&censored, &km::KaplanMeierOptions::default()).unwrap();
    assert!(curve.points.iter().all(|p| p.survival == 1.0));
    assert_eq!(curve.median(), km::Quantile::default());
    assert!(
        kaplan_meier(&censored, &km::KaplanMeierOptions { level: 1.0, ..Default::default() })
            .is_err()
    );
}

#[test]
fn nested_models_are_checked() {
    let time = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0];
    let event = [1, 0, 1, 1, 0, 1, 1];
    let a = [0.3, 1.2, 0.7, 2.0, 0.1, 1.1, 0.4];
    let both: Vec<f64> = a.iter().enumerate().flat_map(|(i, &v)| [v, (i % 3) as f64]).collect();
    let small = model(&time, &event, &a, 1).unwrap();
    let big = model(&time, &event, &both, 2).unwrap();
    let test = likelihood_ratio(&small, &big).unwrap();
    assert!(test.df == 1 && test.chi2 >= 0.0);
    assert!(likelihood_ratio(&big, &small).is_err());
    let fewer = model(&time[..6], &event[..6], &a[..6], 1).unwrap();
    assert!(likelihood_ratio(&fewer, &big).is_err());
    let outcome = Survival::new(&time, &event.map(|e| e == 1)).unwrap();
    let data = CoxData::new(&outcome, &both, 2).unwrap();
    assert!(big.proportional_hazards(&data, TimeTransform::Log, &[0, 0]).is_ok());
    assert!(small.proportional_hazards(&data, TimeTransform::Km, &[0]).is_err());
}

#[test]
fn near_ties_are_one_time() {
    let s = Survival::new(&[0.1 + 0.2, 0.3, 1.0], &[true; 3]).unwrap();
    assert_eq!(s.time()[0], s.time()[1]);
    assert_eq!(s.merged(), 1);
    assert_eq!(Survival::exact(&[0.1 + 0.2, 0.3], &[true; 2]).unwrap().merged(), 0);
}

#[test]
fn clusters_are_drawn_whole() {
    let t = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    let outcome = Survival::new(&t, &[true; 6]).unwrap();
    let risk = [6.0, 1.0, 4.0, 5.0, 2.0, 3.0];
    let pairs = Pairs::new(&outcome, &risk, None, None).unwrap();
    let plan = Plan { replicates: 200, ..Plan::default() };
    let rows = pairs.bootstrap(plan).unwrap();
    let own = pairs.bootstrap_clusters(&[9, 8, 7, 6, 5, 4], plan).unwrap();
    assert_eq!(rows.interval.estimate, own.interval.estimate);
    let one = pairs.bootstrap_clusters(&[3; 6], plan).unwrap();
    assert_eq!(
        (one.interval.lower, one.interval.upper),
        (own.interval.estimate, own.interval.estimate)
    );
}
