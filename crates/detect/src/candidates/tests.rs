use super::*;
use mitosis::Point;
use proptest::prelude::*;

fn score(p: f32) -> Score {
    Score::new(p).unwrap()
}

fn regions(threshold: f32, opening_radius: u32, min_area_px: u64) -> CandidateRule {
    CandidateRule::Regions { threshold: score(threshold), opening_radius, min_area_px }
}

/// `tests/golden/candidates.py` asks scipy.ndimage the same question.
#[test]
fn equals_scipy() {
    #[derive(Deserialize)]
    struct Golden {
        rule: CandidateRule,
        width: usize,
        #[serde(default)]
        map256: Vec<u16>,
        #[serde(default)]
        map4096: Vec<u16>,
        found: Vec<(f64, f64, f64, u64)>,
    }
    let cases: Vec<Golden> =
        serde_json::from_str(include_str!("../../tests/golden/candidates.json")).unwrap();
    assert!(cases.len() >= 7);
    for case in cases {
        let data: Vec<f32> = case
            .map256
            .iter()
            .map(|&v| f32::from(v) / 256.0)
            .chain(case.map4096.iter().map(|&v| f32::from(v) / 4096.0))
            .collect();
        let map = ProbMap { width: case.width, height: data.len() / case.width, data };
        let found = extract(&map, &case.rule);
        assert!(!case.found.is_empty());
        assert_eq!(found.len(), case.found.len(), "{:?}", case.rule);
        for (got, &(x, y, mean, area)) in found.iter().zip(&case.found) {
            assert!((got.at.x - x).abs() < 1e-9 && (got.at.y - y).abs() < 1e-9, "{got:?} {x} {y}");
            assert!((f64::from(got.s_seg.get()) - mean).abs() < 1e-6, "{got:?} {mean}");
            assert_eq!(got.area_px, area);
        }
    }
}

/// Opening and labelling straight from their definitions, pixel by pixel.
fn slow_regions(map: &ProbMap, t: f32, r: i64, min_area: u64) -> Vec<(f64, f64, f64, u64)> {
    let (w, h) = (map.width as i64, map.height as i64);
    let at = |v: &[bool], x: i64, y: i64| {
        (0..w).contains(&x) && (0..h).contains(&y) && v[(y * w + x) as usize]
    };
    let square =
        |x: i64, y: i64| (-r..=r).flat_map(move |dy| (-r..=r).map(move |dx| (x + dx, y + dy)));
    let each = || (0..h).flat_map(move |y| (0..w).map(move |x| (x, y)));
    let fore: Vec<bool> = map.data.iter().map(|&p| p >= t && p > 0.0).collect();
    let eroded: Vec<bool> =
        each().map(|(x, y)| square(x, y).all(|(a, b)| at(&fore, a, b))).collect();
    let opened: Vec<bool> =
        each().map(|(x, y)| square(x, y).any(|(a, b)| at(&eroded, a, b))).collect();
    let mut seen = vec![false; opened.len()];
    let mut out = Vec::new();
    for (x, y) in each() {
        if !at(&opened, x, y) || seen[(y * w + x) as usize] {
            continue;
        }
        let (mut stack, mut members) = (vec![(x, y)], Vec::new());
        seen[(y * w + x) as usize] = true;
        while let Some((x, y)) = stack.pop() {
            members.push((x, y));
            for (a, b) in (-1..=1).flat_map(|dy| (-1..=1).map(move |dx| (x + dx, y + dy))) {
                if at(&opened, a, b) && !seen[(b * w + a) as usize] {
                    seen[(b * w + a) as usize] = true;
                    stack.push((a, b));
                }
            }
        }
        let n = members.len() as f64;
        let mean = |f: &dyn Fn(&(i64, i64)) -> f64| members.iter().map(f).sum::<f64>() / n;
        if members.len() as u64 >= min_area {
            out.push((
                mean(&|m| m.0 as f64 + 0.5),
                mean(&|m| m.1 as f64 + 0.5),
                mean(&|m| f64::from(map.data[(m.1 * w + m.0) as usize])),
                members.len() as u64,
            ));
        }
    }
    out
}

fn slow_peaks(map: &ProbMap, t: f32, d: i64) -> Vec<(f64, f64, f64, u64)> {
    let (w, h) = (map.width as i64, map.height as i64);
    let p = |x: i64, y: i64| map.data[(y * w + x) as usize];
    let mut out = Vec::new();
    for (x, y) in (0..h).flat_map(|y| (0..w).map(move |x| (x, y))) {
        let here = p(x, y);
        let mut peak = here >= t && here > 0.0;
        for (a, b) in (-d..=d).flat_map(|dy| (-d..=d).map(move |dx| (x + dx, y + dy))) {
            if (0..w).contains(&a) && (0..h).contains(&b) && (a, b) != (x, y) {
                let earlier = (b, a) < (y, x);
                peak &= if earlier { p(a, b) < here } else { p(a, b) <= here };
            }
        }
        if peak {
            out.push((x as f64 + 0.5, y as f64 + 0.5, f64::from(here), 1));
        }
    }
    out
}

/// Maps of few levels: touching corners, plateaus, holes, lines along the border.
fn any_map() -> impl Strategy<Value = ProbMap> {
    (1usize..24, 1usize..24, 2u8..6).prop_flat_map(|(width, height, levels)| {
        prop::collection::vec(0..levels, width * height).prop_map(move |v| ProbMap {
            width,
            height,
            data: v.into_iter().map(|p| f32::from(p) / f32::from(levels - 1)).collect(),
        })
    })
}

fn same(found: &[RawCandidate], slow: &[(f64, f64, f64, u64)]) {
    assert_eq!(found.len(), slow.len());
    for (a, b) in found.iter().zip(slow) {
        assert!((a.at.x - b.0).abs() < 1e-9 && (a.at.y - b.1).abs() < 1e-9, "{a:?} {b:?}");
        assert!((f64::from(a.s_seg.get()) - b.2).abs() < 1e-6, "{a:?} {b:?}");
        assert_eq!(a.area_px, b.3);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]
    #[test]
    fn regions_equal_the_definition(
        map in any_map(), t in 0.0..1.0f32, r in 0u32..4, min_area in 0u64..6,
    ) {
        same(&extract(&map, &regions(t, r, min_area)), &slow_regions(&map, t, r.into(), min_area));
    }

    #[test]
    fn peaks_equal_the_definition(map in any_map(), t in 0.0..1.0f32, d in 1u32..5) {
        let rule = CandidateRule::Peaks { threshold: score(t), min_distance_px: d };
        let found = extract(&map, &rule);
        same(&found, &slow_peaks(&map, t, d.into()));
        for (i, a) in found.iter().enumerate() {
            for b in &found[..i] {
                let apart = (a.at.x - b.at.x).abs().max((a.at.y - b.at.y).abs());
                prop_assert!(apart > f64::from(d));
            }
        }
    }

    /// Stopping at any row, storing the state and resuming changes nothing.
    #[test]
    fn state_survives_storage(map in any_map(), cut in 0usize..24, r in 0u32..3, peaks: bool) {
        let rule = if peaks {
            CandidateRule::Peaks { threshold: score(0.4), min_distance_px: r + 1 }
        } else {
            regions(0.4, r, 1)
        };
        let mut extractor = Extractor::new(&rule);
        let mut done = Vec::new();
        for (y, values) in map.data.chunks(map.width).enumerate() {
            if y == cut {
                let text = serde_json::to_string(&(&extractor, &done)).unwrap();
                (extractor, done) = serde_json::from_str(&text).unwrap();
            }
            let mut row = SparseRow::default();
            row.push_span(0, values, rule.threshold());
            extractor.push(row, &mut done);
        }
        extractor.finish(&mut done);
        done.sort_unstable_by_key(|r| r.first);
        let found: Vec<_> = done.iter().map(Region::candidate).collect();
        prop_assert_eq!(found, extract(&map, &rule));
    }
}

#[test]
fn zero_is_never_foreground() {
    let map = ProbMap { width: 3, height: 2, data: vec![0.0, f32::NAN, 0.0, 0.0, 0.25, 0.0] };
    let found = extract(&map, &regions(0.0, 0, 1));
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].at, found[0].s_seg.get()), (Point::new(1.5, 1.5), 0.25));
    assert!(
        extract(&ProbMap { width: 0, height: 0, data: vec![] }, &regions(0.5, 1, 1)).is_empty()
    );
}

#[test]
fn the_mean_is_exact_where_f32_sums_drift() {
    let p = 0.3f32;
    let map = ProbMap { width: 1000, height: 1000, data: vec![p; 1_000_000] };
    assert_eq!(extract(&map, &regions(0.2, 1, 1))[0].s_seg.get(), p);
}
