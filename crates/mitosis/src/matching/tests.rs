use super::*;
use crate::{OperatingPoint, Score};
use proptest::prelude::*;

fn points(v: &[(f64, f64)]) -> Vec<Point<Physical>> {
    v.iter().map(|&(x, y)| Point::new(x, y)).collect()
}

fn run(truth: &[(f64, f64)], predictions: &[(f64, f64)], r: f64, rule: Rule) -> Matched {
    match_points(&points(truth), &points(predictions), Microns(r), rule).unwrap()
}

/// Every one-to-one pairing, by recursion: (pairs, total distance) of the best.
fn best_by_enumeration(truth: &[(f64, f64)], predictions: &[(f64, f64)], r: f64) -> (usize, f64) {
    fn go(t: &[(f64, f64)], p: &[(f64, f64)], used: &mut [bool], r: f64) -> (usize, f64) {
        let Some((&first, rest)) = t.split_first() else { return (0, 0.0) };
        let mut best = go(rest, p, used, r);
        for i in 0..p.len() {
            let d = (p[i].0 - first.0).hypot(p[i].1 - first.1);
            if used[i] || d > r {
                continue;
            }
            used[i] = true;
            let (n, sum) = go(rest, p, used, r);
            used[i] = false;
            if n + 1 > best.0 || (n + 1 == best.0 && sum + d < best.1) {
                best = (n + 1, sum + d);
            }
        }
        best
    }
    go(truth, predictions, &mut vec![false; predictions.len()], r)
}

/// The MIDOG evaluation, written out with plain loops.
fn greedy_by_loops(
    truth: &[(f64, f64)],
    predictions: &[(f64, f64)],
    r: f64,
) -> Vec<(usize, usize)> {
    let mut used = vec![false; predictions.len()];
    let mut pairs = Vec::new();
    for (t, a) in truth.iter().enumerate() {
        let mut nearest: Option<(f64, usize)> = None;
        for (p, b) in predictions.iter().enumerate() {
            let d = (a.0 - b.0).hypot(a.1 - b.1);
            if !used[p] && d <= r && nearest.is_none_or(|(least, _)| d < least) {
                nearest = Some((d, p));
            }
        }
        if let Some((_, p)) = nearest {
            used[p] = true;
            pairs.push((t, p));
        }
    }
    pairs
}

fn cloud(n: usize) -> impl Strategy<Value = Vec<(f64, f64)>> {
    prop::collection::vec((0.0..30.0f64, 0.0..30.0f64), 0..n)
}

/// Whole numbers: many equal distances and coincident points.
fn lattice(n: usize) -> impl Strategy<Value = Vec<(f64, f64)>> {
    prop::collection::vec((0u8..8, 0u8..8), 0..n)
        .prop_map(|v| v.into_iter().map(|(x, y)| (f64::from(x), f64::from(y))).collect())
}

fn check_optimal(truth: &[(f64, f64)], predictions: &[(f64, f64)], r: f64) {
    let m = run(truth, predictions, r, Rule::Optimal);
    let (pairs, distance) = best_by_enumeration(truth, predictions, r);
    assert_eq!(m.pairs.len(), pairs);
    let total: f64 = m.pairs.iter().map(|p| p.distance.0).sum();
    assert!((total - distance).abs() < 1e-4, "{total} against {distance}");
    let mut used = vec![false; predictions.len()];
    for p in &m.pairs {
        assert!(!std::mem::replace(&mut used[p.prediction], true), "a prediction used twice");
    }
    assert!(m.pairs.is_sorted_by(|a, b| a.truth < b.truth));
}

proptest! {
    #[test]
    fn optimal_equals_enumeration(t in cloud(7), p in cloud(7), r in 0.0..20.0f64) {
        check_optimal(&t, &p, r);
    }

    #[test]
    fn optimal_equals_enumeration_with_ties(t in lattice(7), p in lattice(7), r in 0u8..6) {
        check_optimal(&t, &p, f64::from(r));
    }

    #[test]
    fn midog_equals_plain_loops(t in lattice(60), p in lattice(60), r in 0u8..5) {
        let m = run(&t, &p, f64::from(r), Rule::Midog);
        let got: Vec<_> = m.pairs.iter().map(|p| (p.truth, p.prediction)).collect();
        prop_assert_eq!(got, greedy_by_loops(&t, &p, f64::from(r)));
    }

    #[test]
    fn midog_never_finds_more_than_optimal(t in cloud(50), p in cloud(50), r in 0.0..9.0f64) {
        let (a, b) = (run(&t, &p, r, Rule::Midog), run(&t, &p, r, Rule::Optimal));
        prop_assert!(a.tally.tp <= b.tally.tp);
        for m in [a, b] {
            prop_assert_eq!(m.tally.tp + m.tally.fn_, t.len());
            prop_assert_eq!(m.tally.tp + m.tally.fp, p.len());
        }
    }
}

#[test]
fn where_the_rules_differ() {
    // The first figure takes the only prediction the second could have had.
    let truth = [(0.0, 0.0), (10.0, 0.0)];
    let predictions = [(-6.0, 0.0), (4.0, 0.0)];
    assert_eq!(run(&truth, &predictions, 7.5, Rule::Midog).tally, Tally { tp: 1, fp: 1, fn_: 1 });
    assert_eq!(run(&truth, &predictions, 7.5, Rule::Optimal).tally, Tally { tp: 2, fp: 0, fn_: 0 });
    // Given the other way round the greedy rule finds both: its answer depends on the order.
    let back = [(10.0, 0.0), (0.0, 0.0)];
    assert_eq!(run(&back, &predictions, 7.5, Rule::Midog).tally.tp, 2);
}

#[test]
fn the_radius_belongs_to_the_disc() {
    for rule in Rule::ALL {
        assert_eq!(run(&[(0.0, 0.0)], &[(4.5, 6.0)], 7.5, rule).tally.tp, 1);
        assert_eq!(run(&[(0.0, 0.0)], &[(4.5, 6.0f64.next_up())], 7.5, rule).tally.tp, 0);
        // Inside the square around the disc, outside the disc.
        assert_eq!(run(&[(0.0, 0.0)], &[(7.0, 7.0)], 7.5, rule).tally.tp, 0);
    }
}

#[test]
fn what_is_undefined_is_reported() {
    let none = Tally::default();
    assert_eq!((none.precision(), none.recall(), none.f1()), (None, None, None));
    let nothing_found = Tally { tp: 0, fp: 0, fn_: 3 };
    assert_eq!(nothing_found.precision(), None);
    assert_eq!((nothing_found.recall(), nothing_found.f1()), (Some(0.0), Some(0.0)));
    let nothing_there = Tally { tp: 0, fp: 2, fn_: 0 };
    assert_eq!((nothing_there.precision(), nothing_there.recall()), (Some(0.0), None));
    let pooled: Tally =
        [Tally { tp: 3, fp: 1, fn_: 0 }, Tally { tp: 0, fp: 0, fn_: 2 }].into_iter().sum();
    assert_eq!(pooled, Tally { tp: 3, fp: 1, fn_: 2 });
    assert_eq!((pooled.precision(), pooled.recall()), (Some(0.75), Some(0.6)));
    assert!((pooled.f1().unwrap() - 2.0 / 3.0).abs() < 1e-15);
}

#[test]
fn refuses_what_cannot_be_matched() {
    let here = points(&[(0.0, 0.0)]);
    let nowhere = points(&[(0.0, 0.0), (f64::NAN, 0.0)]);
    for bad in [-1.0, f64::NAN, f64::INFINITY] {
        let err = match_points(&here, &here, Microns(bad), Rule::Midog);
        assert!(matches!(err, Err(MatchError::Radius(_))), "{bad}");
    }
    let err = match_points(&here, &nowhere, PAPER_RADIUS, Rule::Optimal).unwrap_err();
    assert_eq!(err, MatchError::NotFinite { list: "prediction", index: 1 });
    assert_eq!("optimal".parse::<Rule>().unwrap(), Rule::Optimal);
    assert!("nearest".parse::<Rule>().unwrap_err().to_string().contains("midog, optimal"));
}

/// A small generator, so that the scale tests need no crate.
fn noise(seed: u64) -> impl FnMut() -> f64 {
    let mut s = seed;
    move || {
        s = s.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (s >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[test]
fn a_hundred_thousand_points() {
    let mut next = noise(7);
    let mut draw = |n| (0..n).map(|_| (next() * 6_000.0, next() * 6_000.0)).collect::<Vec<_>>();
    // Dense enough (about 0.5 partners each) that long chains of figures compete.
    let (t, p) = (draw(100_000), draw(100_000));
    let start = std::time::Instant::now();
    let greedy = run(&t, &p, 7.5, Rule::Midog);
    let optimal = run(&t, &p, 7.5, Rule::Optimal);
    assert!(greedy.tally.tp > 30_000 && optimal.tally.tp > greedy.tally.tp);
    assert!(start.elapsed().as_secs() < 60, "{:?}", start.elapsed());
}

fn score(v: u8) -> Score {
    Score::new(f32::from(v) / 20.0).unwrap()
}

fn case(truth: Vec<(f64, f64)>, candidates: Vec<((f64, f64), u8, u8)>, two_stages: bool) -> Case {
    let candidates = candidates.into_iter().map(|((x, y), seg, cls)| Scored {
        at: Point::new(x, y),
        s_seg: score(seg),
        s_cls: two_stages.then(|| score(cls)),
    });
    Case { name: "case".into(), truth: points(&truth), candidates: candidates.collect() }
}

/// Every pair of scores that occur anywhere, each matched from scratch: largest F1, then most TP.
fn best_by_trying(folds: &[Fold], r: Microns, rule: Rule) -> Option<(f64, usize)> {
    let all = || folds.iter().flat_map(|f| &f.cases);
    let seg: Vec<_> = all().flat_map(|c| &c.candidates).map(|c| c.s_seg).collect();
    let cls: Vec<_> = all().flat_map(|c| &c.candidates).filter_map(|c| c.s_cls).collect();
    let cls = if cls.is_empty() { vec![Score::ZERO] } else { cls };
    let mut best: Option<(f64, usize)> = None;
    for &seg in &seg {
        for &cls in &cls {
            let point = OperatingPoint { seg, cls, provenance: String::new() };
            let t: Tally = all().map(|c| c.tally(&point, r, rule).unwrap()).sum();
            let f1 = t.f1().unwrap_or(0.0);
            let close = best.is_some_and(|(b, _)| (f1 - b).abs() < 1e-12);
            if best.is_none_or(|(b, tp)| (!close && f1 > b) || (close && t.tp > tp)) {
                best = Some((f1, t.tp));
            }
        }
    }
    best
}

type AnyCase = (Vec<(f64, f64)>, Vec<((f64, f64), u8, u8)>);

fn any_case() -> impl Strategy<Value = AnyCase> {
    let place = || (0u8..9, 0u8..9).prop_map(|(x, y)| (f64::from(x) * 3.0, f64::from(y) * 3.0));
    (
        prop::collection::vec(place(), 0..7),
        prop::collection::vec((place(), 0u8..=20, 0u8..=20), 0..14),
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn calibration_equals_trying_every_pair(
        folds in prop::collection::vec(prop::collection::vec(any_case(), 1..3), 1..4),
        two_stages: bool,
        optimal: bool,
    ) {
        let rule = if optimal { Rule::Optimal } else { Rule::Midog };
        let folds: Vec<Fold> = folds
            .into_iter()
            .enumerate()
            .map(|(i, cases)| Fold {
                name: format!("A0{i}"),
                cases: cases.into_iter().map(|(t, c)| case(t, c, two_stages)).collect(),
            })
            .collect();
        let truths: usize = folds.iter().flat_map(|f| &f.cases).map(|c| c.truth.len()).sum();
        let tried = best_by_trying(&folds, PAPER_RADIUS, rule).filter(|&(f1, _)| f1 > 0.0);
        match calibrate(&folds, PAPER_RADIUS, rule) {
            Ok(c) => {
                let (f1, tp) = tried.expect("a pair that finds something");
                prop_assert!((c.pooled.f1().unwrap() - f1).abs() < 1e-12);
                prop_assert_eq!(c.pooled.tp, tp);
                let again: Tally = folds
                    .iter()
                    .flat_map(|f| &f.cases)
                    .map(|k| k.tally(&c.point, PAPER_RADIUS, rule).unwrap())
                    .sum();
                prop_assert_eq!(again, c.pooled);
                prop_assert!(two_stages || c.point.cls == Score::ZERO);
            }
            Err(CalibrateError::NoTruth) => prop_assert_eq!(truths, 0),
            Err(CalibrateError::NothingMatches { .. }) => prop_assert_eq!(tried, None),
            Err(e) => panic!("{e}"),
        }
    }
}

#[test]
fn the_pair_is_chosen_over_the_folds_together() {
    // Alone, fold a would take cls 0.9 and fold b cls 0.3; together one pair serves both.
    let fold = |name: &str, cases| Fold { name: name.into(), cases };
    let a = case(
        vec![(0.0, 0.0), (100.0, 0.0)],
        vec![((0.0, 0.0), 10, 18), ((100.0, 0.0), 10, 18), ((300.0, 0.0), 10, 12)],
        true,
    );
    let b = case(
        vec![(0.0, 0.0)],
        vec![((1.0, 0.0), 8, 6), ((50.0, 0.0), 2, 20), ((90.0, 0.0), 3, 2)],
        true,
    );
    let c =
        calibrate(&[fold("a", vec![a]), fold("b", vec![b])], PAPER_RADIUS, Rule::Midog).unwrap();
    assert_eq!(c.pooled, Tally { tp: 3, fp: 1, fn_: 0 });
    assert_eq!(
        c.per_fold[0],
        FoldTally { name: "a".into(), tally: Tally { tp: 2, fp: 1, fn_: 0 } }
    );
    assert_eq!(
        c.per_fold[1],
        FoldTally { name: "b".into(), tally: Tally { tp: 1, fp: 0, fn_: 0 } }
    );
    // Half-way between 0.4 kept and 0.15 rejected; between 0.3 kept and 0.1 rejected.
    assert!((c.point.seg.get() - 0.275).abs() < 1e-6, "{}", c.point.seg);
    assert!((c.point.cls.get() - 0.2).abs() < 1e-6, "{}", c.point.cls);
    for word in ["a, b", "midog", "7.5 um", "TP 3, FP 1, FN 0", "0.8571"] {
        assert!(c.point.provenance.contains(word), "{word} in {}", c.point.provenance);
    }
}

#[test]
fn calibration_states_why_it_fails() {
    let one = |c| [Fold { name: "a".into(), cases: vec![c] }];
    let nothing_there = one(case(vec![], vec![((0.0, 0.0), 9, 9)], true));
    let err = calibrate(&nothing_there, PAPER_RADIUS, Rule::Midog).unwrap_err();
    assert_eq!(err, CalibrateError::NoTruth);
    let far = one(case(vec![(90.0, 0.0)], vec![((0.0, 0.0), 9, 9)], true));
    let err = calibrate(&far, PAPER_RADIUS, Rule::Midog).unwrap_err();
    assert!(matches!(err, CalibrateError::NothingMatches { candidates: 1, truths: 1, .. }));
    let mut mixed = case(vec![(0.0, 0.0)], vec![((0.0, 0.0), 9, 9), ((1.0, 0.0), 9, 9)], true);
    mixed.candidates[1].s_cls = None;
    let err = calibrate(&one(mixed), PAPER_RADIUS, Rule::Midog).unwrap_err();
    assert_eq!(err, CalibrateError::Mixed("case".into()));
}

#[test]
fn calibrating_many_candidates_is_quick() {
    let mut next = noise(3);
    let truth: Vec<_> = (0..500).map(|_| (next() * 5e3, next() * 5e3)).collect();
    let candidates = (0..20_000).map(|i| {
        let near = truth[i % truth.len()];
        let at = if i % 10 < 3 {
            (near.0 + next() * 6.0, near.1 + next() * 6.0)
        } else {
            (next() * 5e3, next() * 5e3)
        };
        Scored {
            at: Point::new(at.0, at.1),
            s_seg: Score::new(next() as f32).unwrap(),
            s_cls: Some(Score::new(next() as f32).unwrap()),
        }
    });
    let cases =
        vec![Case { name: "c".into(), candidates: candidates.collect(), truth: points(&truth) }];
    let start = std::time::Instant::now();
    for rule in Rule::ALL {
        let c = calibrate(&[Fold { name: "f".into(), cases: cases.clone() }], PAPER_RADIUS, rule);
        assert!(c.unwrap().pooled.tp > 100);
    }
    assert!(start.elapsed().as_secs() < 60, "{:?}", start.elapsed());
}
