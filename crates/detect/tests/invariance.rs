//! Streaming equals the whole map in memory, and nothing that only concerns speed changes a bit.

use crate::common;
use crate::common::{
    Drawn, Keep, Mean, Restarts, Shade, bits, in_memory, mpp, recipe, run, score, workers,
};
use detect::{CandidateRule, Control, Job, Recipe, SlideResult, Workers};
use proptest::prelude::*;

fn detect(source: &Drawn, job: &Job<'_>, recipe: &Recipe, workers: &Workers) -> SlideResult {
    resumed(source, job, recipe, workers, &mut Keep::default(), &mut Shade::default())
}

fn resumed(
    source: &Drawn,
    job: &Job<'_>,
    recipe: &Recipe,
    workers: &Workers,
    states: &mut Keep,
    shade: &mut Shade,
) -> SlideResult {
    let mut mean = Mean::default();
    let second = recipe.crops.is_some().then_some(&mut mean as &mut dyn mitosis::Classifier);
    let mut restarts = Restarts::default();
    let control = Control::reporting(&mut restarts).stored(states);
    let result = run(source, job, (shade, second), recipe, *workers, control).unwrap();
    assert!(restarts.0.is_empty(), "a state was not used: {:?}", restarts.0);
    result
}

fn from(state: &str) -> Keep {
    Keep { from: Some(serde_json::from_str(state).unwrap()), ..Keep::default() }
}

fn any_recipe() -> impl Strategy<Value = Recipe> {
    (4u32..14, 0u32..14, 0u32..3, any::<bool>(), any::<bool>()).prop_map(
        |(stride, extra, radius, peaks, two_stages)| {
            let mut r = recipe(stride + extra.min(stride), stride, radius);
            if peaks {
                r.candidates =
                    CandidateRule::Peaks { threshold: score(0.3), min_distance_px: radius + 2 };
            }
            if !two_stages {
                r.crops = None;
            }
            r
        },
    )
}

fn any_workers() -> impl Strategy<Value = Workers> {
    (1usize..4, 1usize..9, 1usize..6, 1usize..9, 1usize..30).prop_map(
        |(readers, in_flight, segment_batch, classify_batch, unit_windows)| Workers {
            readers,
            in_flight,
            segment_batch,
            classify_batch,
            unit_windows,
            ..Workers::default()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(60) })]
    #[test]
    fn streaming_equals_memory(
        recipe in any_recipe(), workers in any_workers(), seed: u64,
        width in 1u64..90, height in 1u64..90,
        keep in prop::collection::vec(0u8..4, 97),
    ) {
        let source = Drawn::new(width, height, seed);
        let mut job = Job::whole(&source, &recipe).unwrap();
        // A tissue mask leaves windows out; some cannot be read; the plan comes in another order.
        let mut left = keep.iter().cycle();
        job.windows.retain(|_| *left.next().unwrap() > 0);
        let mut source = source;
        let side = recipe.grid.window() as usize;
        let stride = i64::from(recipe.grid.stride());
        for (w, k) in job.windows.iter().zip(keep.iter().rev().cycle()) {
            if *k == 0 {
                let (x, y) = (i64::from(w.col) * stride, i64::from(w.row) * stride);
                source.broken.insert((x, y, side));
            }
        }
        // Crops have another size than windows here, so that none is broken.
        prop_assume!(recipe.crops.as_ref().is_none_or(|c| c.side as usize != side));
        let expected = in_memory(&source, &job, &recipe);
        job.windows.sort_by_key(|w| common::mix(&[seed, w.row.into(), w.col.into()]));
        let mut states = Keep::default();
        let result =
            resumed(&source, &job, &recipe, &workers, &mut states, &mut Shade::default());
        prop_assert_eq!(bits(&result), &expected[..]);
        // Killed after a unit and resumed: the same, areas and unread windows too.
        let n = states.states.len();
        for state in [0, n / 2, n.saturating_sub(1)].into_iter().filter_map(|i| states.states.get(i)) {
            let (mut state, mut shade) = (from(state), Shade::default());
            let again = resumed(&source, &job, &recipe, &workers, &mut state, &mut shade);
            prop_assert_eq!(bits(&again), &expected[..]);
            prop_assert_eq!(&again.unread, &result.unread);
            prop_assert_eq!(again.analysed, result.analysed);
            prop_assert!(again.resumed_windows > 0);
        }
    }
}

#[test]
fn workers_and_disorder_change_nothing() {
    let mut source = Drawn::new(300, 260, 4);
    source.jitter = true;
    let recipe = recipe(32, 25, 1);
    let job = Job::whole(&source, &recipe).unwrap();
    let expected = in_memory(&source, &job, &recipe);
    assert!(expected.len() > 50, "{}", expected.len());
    for (readers, in_flight, segment_batch, classify_batch, unit_windows) in
        [(1, 1, 1, 1, 1), (3, 1, 5, 2, 1000), (8, 32, 4, 7, 10), (2, 64, 100, 1000, 40)]
    {
        let rest = Workers::default();
        let w = Workers { readers, in_flight, segment_batch, classify_batch, unit_windows, ..rest };
        assert_eq!(bits(&detect(&source, &job, &recipe, &w)), expected, "{w:?}");
    }
}

/// An engine whose answer depends on its batch breaks the port's promise; a resumed run still gives
/// the same bytes, because batches are the same in both.
#[test]
fn resume_repeats_the_same_batches() {
    let source = Drawn::new(300, 200, 9);
    let recipe = recipe(32, 25, 1);
    let job = Job::whole(&source, &recipe).unwrap();
    let sensitive = || Shade { batch_sensitive: true, ..Shade::default() };
    let mut states = Keep::default();
    let mut shade = sensitive();
    let whole = resumed(&source, &job, &recipe, &workers(), &mut states, &mut shade);
    assert!(states.states.len() > 2 && whole.candidates.len() > 30);
    for state in states.states {
        let (mut state, mut shade) = (from(&state), sensitive());
        let again = resumed(&source, &job, &recipe, &workers(), &mut state, &mut shade);
        assert_eq!(bits(&again), bits(&whole));
    }
}

/// A figure on the seam of four windows, of two units and of two rows of windows is one figure.
#[test]
fn nothing_is_doubled_or_cut_at_seams() {
    let source = Drawn::new(400, 400, 11);
    let recipe = recipe(32, 25, 0);
    let job = Job::whole(&source, &recipe).unwrap();
    let result = detect(&source, &job, &recipe, &workers());
    let grid = f64::from(recipe.grid.stride());
    let on_seam = result.detections().filter(|d| {
        let near = |v: f64| (v / grid).fract() * grid < 4.0;
        near(d.candidate.centroid.x) && near(d.candidate.centroid.y)
    });
    assert!(on_seam.count() > 3, "the test image has no figure on a seam");
    // One window over everything sees the same regions: its shading gives other probabilities, but
    // all of them are on the same side of this threshold.
    let candidates =
        CandidateRule::Regions { threshold: score(0.28), opening_radius: 0, min_area_px: 2 };
    let flat = Recipe { candidates, ..recipe };
    let whole = Recipe { grid: detect::Grid::new(400, 400).unwrap(), ..flat.clone() };
    let one = detect(&source, &Job::whole(&source, &whole).unwrap(), &whole, &workers());
    let cut = detect(&source, &job, &flat, &workers());
    let places =
        |r: &SlideResult| -> Vec<_> { r.detections().map(|d| d.candidate.centroid).collect() };
    assert_eq!(places(&one), places(&cut));
}

/// Halves of a division count once: no two candidates stay within the distance, and whatever went had a likelier one
/// near it.
#[test]
fn of_candidates_near_each_other_the_likeliest_stays() {
    let source = Drawn::new(400, 400, 11);
    let all = recipe(32, 25, 0);
    let um = 4.0;
    let apart = Recipe { min_separation_um: Some(um), ..all.clone() };
    let job = Job::whole(&source, &all).unwrap();
    let before = detect(&source, &job, &all, &workers());
    let after = detect(&source, &job, &apart, &workers());
    let (n, stays) = (before.candidates.len(), after.candidates.len());
    assert!(stays > 20 && stays + 20 < n, "{stays} of {n}");
    let near = |a: &mitosis::Detection, b: &mitosis::Detection| {
        let (a, b) = (a.candidate.centroid, b.candidate.centroid);
        (a.x - b.x).hypot(a.y - b.y) * 0.25 <= um
    };
    for d in before.detections() {
        let kept = after.detections().any(|k| k == d);
        let better = after.detections().any(|k| k != d && near(k, d) && k.s_cls >= d.s_cls);
        assert_ne!(kept, better, "{d:?}");
    }
    // Not the first stage alone: without a second, its own score decides.
    let first = Recipe { crops: None, ..apart.clone() };
    let alone = detect(&source, &job, &first, &workers());
    assert!(alone.detections().all(|d| d.s_cls.is_none()));
    assert!(alone.candidates.len() < n);
    let far = Recipe { min_separation_um: Some(51.0), ..apart };
    let e = far.frame(&source).and_then(|_| {
        let mut mean = Mean::default();
        let second = Some(&mut mean as &mut dyn mitosis::Classifier);
        run(&source, &job, (&mut Shade::default(), second), &far, workers(), Control::default())
    });
    assert!(e.unwrap_err().to_string().contains("51 um apart"));
}

#[test]
fn each_axis_and_each_stage_has_its_own_resolution() {
    // 0.25 um/px across, 0.5 down; candidates at 0.25, crops at 0.5.
    let source = Drawn::new(240, 120, 3).anisotropic(0.25, 0.5);
    let mut recipe = recipe(32, 25, 1);
    recipe.crops.as_mut().unwrap().mpp = mpp(0.5);
    let job = Job::whole(&source, &recipe).unwrap();
    assert_eq!(
        (recipe.frame(&source).unwrap().width, recipe.frame(&source).unwrap().height),
        (240, 240)
    );
    let result = detect(&source, &job, &recipe, &workers());
    let expected = in_memory(&source, &job, &recipe);
    assert!(!expected.is_empty());
    assert_eq!(bits(&result), expected);
    assert!(result.detections().all(|d| d.candidate.centroid.y < 120.0));
    // 240 px of 0.25 um by 120 px of 0.5 um.
    let mm2 = 0.06 * 0.06;
    assert!((result.analysed.0 - mm2).abs() < 1e-12, "{:?}", result.analysed);
}
