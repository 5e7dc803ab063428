//! Metrics and intervals against scikit-learn and scipy (`golden/metrics.py`).

use serde::Deserialize;
use stats::bootstrap::{Plan, bootstrap_indices, draw_counts};
use stats::interval::{
    Stratum, holm, median, pool_weighted, precision_range, quantile_sorted, wilson,
};
use stats::metrics::{
    ConfusionMatrix, binary_report, f1_threshold, macro_roc_auc, roc_auc, summarize,
};

#[derive(Deserialize)]
struct Golden {
    multi: Vec<Multi>,
    binary: Vec<Binary>,
    wilson: Vec<(u64, u64, f64, f64, f64)>,
    values: Vec<f64>,
    mean: f64,
    sd: f64,
    quantiles: Vec<(f64, f64)>,
}

#[derive(Deserialize)]
struct Multi {
    classes: usize,
    truth: Vec<usize>,
    predicted: Vec<usize>,
    confusion: Vec<Vec<u64>>,
    accuracy: f64,
    precision: Vec<f64>,
    recall: Vec<f64>,
    f1: Vec<f64>,
    macro_precision: f64,
    macro_recall: f64,
    macro_f1: f64,
    balanced_accuracy: f64,
    kappa: Option<f64>,
}

#[derive(Deserialize)]
struct Binary {
    truth: Vec<u8>,
    scores: Vec<f64>,
    accuracy: f64,
    precision: f64,
    recall: f64,
    f1: f64,
    specificity: f64,
    balanced_accuracy: f64,
    roc_auc: Option<f64>,
}

fn golden() -> Golden {
    serde_json::from_str(include_str!("golden/metrics.json")).expect("golden values")
}

#[track_caller]
fn close(got: f64, want: f64) {
    assert!((got - want).abs() <= 1e-12 * want.abs().max(1.0), "{got} against {want}");
}

#[test]
fn multiclass_equals_scikit_learn() {
    for case in golden().multi {
        let matrix =
            ConfusionMatrix::from_labels(&case.truth, &case.predicted, case.classes).unwrap();
        assert!(matrix.rows().eq(case.confusion.iter().map(Vec::as_slice)));
        close(matrix.accuracy(), case.accuracy);
        for c in 0..case.classes {
            close(matrix.precision(c), case.precision[c]);
            close(matrix.recall(c), case.recall[c]);
            close(matrix.f1(c), case.f1[c]);
        }
        close(matrix.macro_precision(), case.macro_precision);
        close(matrix.macro_recall(), case.macro_recall);
        close(matrix.macro_f1(), case.macro_f1);
        close(matrix.balanced_accuracy(), case.balanced_accuracy);
        assert_eq!(matrix.cohen_kappa().is_some(), case.kappa.is_some());
        if let (Some(got), Some(want)) = (matrix.cohen_kappa(), case.kappa) {
            close(got, want);
        }
    }
}

#[test]
fn binary_equals_scikit_learn() {
    for case in golden().binary {
        let truth: Vec<bool> = case.truth.iter().map(|&t| t == 1).collect();
        let predicted: Vec<bool> = case.scores.iter().map(|&s| s > 0.5).collect();
        let report = binary_report(&truth, &predicted, Some(&case.scores)).unwrap();
        close(report.accuracy, case.accuracy);
        close(report.precision, case.precision);
        close(report.recall, case.recall);
        close(report.sensitivity, case.recall);
        close(report.f1, case.f1);
        close(report.specificity, case.specificity);
        close(report.balanced_accuracy, case.balanced_accuracy);
        assert_eq!(report.roc_auc.is_some(), case.roc_auc.is_some());
        if let (Some(got), Some(want)) = (report.roc_auc, case.roc_auc) {
            close(got, want);
        }
    }
}

#[test]
fn wilson_equals_scipy_and_the_paper() {
    for (k, n, level, low, high) in golden().wilson {
        let i = wilson(k, n, level).unwrap();
        assert!((i.lower - low).abs() < 1e-10 && (i.upper - high).abs() < 1e-10, "{k}/{n} {i:?}");
    }
    let i = wilson(55, 280, 0.95).unwrap();
    assert_eq!(format!("{:.1}-{:.1}", 100.0 * i.lower, 100.0 * i.upper), "15.4-24.7");
    assert!(wilson(3, 2, 0.95).is_err());
    assert!(wilson(0, 0, 0.95).is_err());
    assert!(wilson(1, 2, 1.0).is_err());
    assert!(wilson(1, 2, f64::NAN).is_err());
}

#[test]
fn summaries_and_quantiles_equal_numpy() {
    let g = golden();
    let s = summarize(&g.values).unwrap();
    close(s.mean, g.mean);
    close(s.sd.unwrap(), g.sd);
    let mut sorted = g.values.clone();
    sorted.sort_by(f64::total_cmp);
    for (q, want) in g.quantiles {
        close(quantile_sorted(&sorted, q), want);
    }
    close(median(&[3.0, 1.0, 2.0, 10.0]).unwrap(), 2.5);
    assert_eq!(summarize(&[0.5]).unwrap().sd, None);
    assert!(summarize(&[]).is_err());
    assert!(summarize(&[1.0, f64::NAN]).is_err());
}

#[test]
fn ranges_and_pools() {
    let r = precision_range(390, 12, 18, 0.95).unwrap();
    close(r.unsure_wrong.estimate, 390.0 / 420.0);
    close(r.unsure_right.estimate, 408.0 / 420.0);
    let strata = [
        Stratum { successes: 30, trials: 30, pool: 100.0 },
        Stratum { successes: 24, trials: 30, pool: 300.0 },
    ];
    let i = pool_weighted(&strata, 0.95).unwrap();
    close(i.estimate, 0.25 + 0.75 * 0.8);
    assert!(i.lower < i.estimate && i.estimate < i.upper && i.upper <= 1.0);
    assert!(pool_weighted(&[], 0.95).is_err());
    assert!(pool_weighted(&[Stratum { pool: 0.0, ..strata[0] }], 0.95).is_err());
}

#[test]
fn holm_equals_r() {
    // R: p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm")
    let got = holm(&[0.01, 0.04, 0.03, 0.005]).unwrap();
    for (g, w) in got.iter().zip([0.03, 0.06, 0.06, 0.02]) {
        close(*g, w);
    }
    assert!(holm(&[0.5, f64::NAN]).is_err());
}

#[test]
fn bad_labels_and_scores_are_errors() {
    assert!(ConfusionMatrix::from_labels(&[0, 1], &[0], 2).is_err());
    assert!(ConfusionMatrix::from_labels(&[0, 2], &[0, 1], 2).is_err());
    assert!(ConfusionMatrix::from_labels(&[], &[], 2).is_err());
    assert!(roc_auc(&[0.1, f64::NAN], &[true, false]).is_err());
    assert_eq!(roc_auc(&[0.1, 0.2], &[true, true]), Ok(None));
    let scores = [0.7, 0.2, 0.1, 0.1, 0.8, 0.1];
    assert_eq!(macro_roc_auc(&scores, &[0, 1], 3), Ok(Some(1.0)));
}

#[test]
fn bootstrap_depends_on_seed_alone() {
    let values: Vec<f64> = (0..50).map(f64::from).collect();
    let mean = |i: &[usize]| Some(i.iter().map(|&i| values[i]).sum::<f64>() / i.len() as f64);
    let plan = Plan { seed: 7, ..Plan::default() };
    let once = bootstrap_indices(50, plan, 24.5, mean).unwrap();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    assert_eq!(once, pool.install(|| bootstrap_indices(50, plan, 24.5, mean).unwrap()));
    assert_ne!(once, bootstrap_indices(50, Plan { seed: 8, ..plan }, 24.5, mean).unwrap());
    // The standard error of the mean is 14.43 / sqrt(50) = 2.04.
    let width = once.interval.upper - once.interval.lower;
    assert!((7.0..9.0).contains(&width), "{width}");
    let mut counts = Vec::new();
    draw_counts(50, 7, 3, &mut counts);
    assert_eq!(counts.iter().sum::<u32>(), 50);
}

#[test]
fn the_threshold_of_the_largest_f1_is_that_of_every_cut() {
    let scores: Vec<f64> = (0..60).map(|i| f64::from(i * 37 % 61 / 3) / 20.0).collect();
    let positive: Vec<bool> = (0..60).map(|i| i * 37 % 61 > 30 + (i % 7) * 4).collect();
    let f1 = |from: f64| {
        let called: Vec<usize> = scores.iter().map(|&s| usize::from(s >= from)).collect();
        let truth: Vec<usize> = positive.iter().map(|&p| usize::from(p)).collect();
        ConfusionMatrix::from_labels(&truth, &called, 2).unwrap().f1(1)
    };
    let (threshold, most) = f1_threshold(&scores, &positive).unwrap().unwrap();
    assert!((f1(threshold) - most).abs() < 1e-12);
    assert!(scores.iter().all(|&s| f1(s) <= most + 1e-12));
    let lowest = scores.iter().copied().filter(|&s| s >= threshold).fold(1.0, f64::min);
    assert!(scores.iter().filter(|&&s| s > lowest).all(|&s| f1(s) < most), "the highest of equals");
    assert_eq!(f1_threshold(&[0.1, 0.9], &[false, true]).unwrap(), Some((0.5, 1.0)));
    assert_eq!(f1_threshold(&[0.1, 0.9], &[false, false]).unwrap(), None);
    assert!(f1_threshold(&[f64::NAN], &[true]).is_err());
}
