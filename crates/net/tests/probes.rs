//! Probes of frozen features equal scikit-learn's.

use crate::common::{golden, signed, to_vec};
use net::probe::{Logistic, Neighbours};
use serde::Deserialize;
use tch::{Device, Kind, Tensor};

const N: i64 = 120;
const D: i64 = 12;

/// Features, labels and queries, as `golden/probes.py` draws them.
fn drawn(classes: i64) -> (Tensor, Vec<i64>, Tensor) {
    let mut labels: Vec<i64> = (0..N).map(|i| i % classes).collect();
    labels.iter_mut().step_by(10).for_each(|l| *l = (*l + 1) % classes);
    let centres = signed(&format!("centres{classes}"), &[classes, D], 1.0);
    let around = |name: &str, n: i64| {
        let own = Tensor::arange(n, (Kind::Int64, Device::Cpu)).remainder(classes);
        signed(&format!("{name}{classes}"), &[n, D], 2.0) + centres.index_select(0, &own)
    };
    (around("features", N), labels, around("queries", 30))
}

#[derive(Deserialize)]
struct Knn {
    classes: i64,
    k: i64,
    temperature: Option<f64>,
    probabilities: Vec<Vec<f64>>,
}

#[derive(Deserialize)]
struct Regression {
    classes: i64,
    c: f64,
    probabilities: Vec<Vec<f64>>,
}

#[derive(Deserialize)]
struct Golden {
    knn: Vec<Knn>,
    logistic: Vec<Regression>,
}

/// Largest difference of a probability.
fn apart(have: &Tensor, want: &[Vec<f64>]) -> f64 {
    assert_eq!(have.size(), [want.len() as i64, want[0].len() as i64]);
    let want = want.iter().flatten();
    to_vec(have).iter().zip(want).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

#[test]
fn neighbours_equal_scikit_learns() {
    for case in golden::<Golden>("probes").knn {
        let (x, labels, queries) = drawn(case.classes);
        let votes = Neighbours { k: case.k, temperature: case.temperature };
        let p = votes.probabilities(&x, &labels, &queries, case.classes).expect("valid");
        let off = apart(&p, &case.probabilities);
        assert!(off < 1e-6, "{} classes, k {}: {off:e}", case.classes, case.k);
    }
}

#[test]
fn regression_equals_scikit_learns() {
    for case in golden::<Golden>("probes").logistic {
        let what = format!("{} classes, c {}", case.classes, case.c);
        let (x, labels, queries) = drawn(case.classes);
        let settings = Logistic { c: case.c, tolerance: 1e-7, iterations: 1000 };
        let fit = settings.fit(&x, &labels, case.classes, 1).expect("valid");
        assert!(fit.converged && fit.iterations < 200, "{what}: {fit:?}");
        let off = apart(&fit.probabilities(&queries), &case.probabilities);
        assert!(off < 1e-5, "{what}: {off:e}");
        // The same items twice, as one: nothing changes.
        let twice = settings
            .fit(&Tensor::cat(&[&x, &x], 0), &[labels.clone(), labels].concat(), case.classes, 2)
            .expect("valid");
        let off = apart(&twice.probabilities(&queries), &case.probabilities);
        assert!(off < 1e-5, "{what}, twice: {off:e}");
        let short = Logistic { iterations: 2, ..settings };
        let fit = short.fit(&x, &drawn(case.classes).1, case.classes, 1).expect("valid");
        assert!(!fit.converged && fit.iterations == 2, "{what}: {fit:?}");
    }
}

#[test]
fn what_has_no_answer_is_named() {
    let (x, labels, queries) = drawn(2);
    for (key, votes) in [
        ("k", Neighbours { k: 0, temperature: None }),
        ("k", Neighbours { k: N + 1, temperature: None }),
        ("temperature", Neighbours { k: 1, temperature: Some(0.0) }),
    ] {
        let why = votes.probabilities(&x, &labels, &queries, 2).expect_err(key).to_string();
        assert!(why.contains(&format!("`{key}`")), "{why}");
    }
    // A vector without a direction is as near to one as to another.
    let votes = Neighbours { k: N, temperature: Some(0.1) };
    let p = votes.probabilities(&x, &labels, &queries.zeros_like(), 2).expect("valid");
    let share = labels.iter().sum::<i64>() as f64 / N as f64;
    assert!((p.double_value(&[0, 1]) - share).abs() < 1e-12, "{p:?}");
    let good = Logistic { c: 1.0, tolerance: 1e-6, iterations: 10 };
    for (key, bad) in [
        ("c", Logistic { c: -1.0, ..good }),
        ("tolerance", Logistic { tolerance: f64::NAN, ..good }),
        ("iterations", Logistic { iterations: 0, ..good }),
    ] {
        let why = bad.fit(&x, &labels, 2, 1).expect_err(key).to_string();
        assert!(why.contains(&format!("`{key}`")), "{why}");
    }
    assert!(good.fit(&x, &labels[1..], 2, 1).is_err());
    assert!(good.fit(&x, &labels, 1, 1).is_err());
}
