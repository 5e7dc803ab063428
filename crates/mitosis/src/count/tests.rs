use super::*;
use crate::{Mpp, ResolutionSource};
use proptest::prelude::*;

fn resolution(x: f64, y: f64) -> Resolution {
    Resolution { x: Mpp::new(x).unwrap(), y: Mpp::new(y).unwrap(), source: ResolutionSource::User }
}

/// All pairs, straight from the definition.
fn brute_counts(figures: &[Point<Level0>], r: &Resolution) -> Vec<usize> {
    let um = |p: &Point<Level0>| (p.x * r.x.get(), p.y * r.y.get());
    figures
        .iter()
        .map(|a| {
            let (ax, ay) = um(a);
            figures
                .iter()
                .filter(|b| {
                    let (bx, by) = um(b);
                    (ax - bx).abs().max((ay - by).abs()) <= HALF_SIDE_UM
                })
                .count()
        })
        .collect()
}

fn check(figures: &[Point<Level0>], r: &Resolution) {
    let counts = brute_counts(figures, r);
    match hotspot(figures, r).unwrap() {
        None => assert!(figures.is_empty()),
        Some(h) => {
            let most = *counts.iter().max().unwrap();
            assert_eq!(h.count, most);
            assert_eq!(counts[h.index], most);
            assert_eq!(h.centre, figures[h.index]);
            let first = figures
                .iter()
                .zip(&counts)
                .filter(|&(_, &c)| c == most)
                .map(|(p, _)| (p.y, p.x))
                .min_by(|a, b| a.partial_cmp(b).unwrap())
                .unwrap();
            assert_eq!((h.centre.y, h.centre.x), first);
        }
    }
}

proptest! {
    #[test]
    fn equals_brute_force(
        points in prop::collection::vec((0.0..20_000.0f64, 0.0..20_000.0f64), 0..200),
        mx in 0.2..1.0f64, my in 0.2..1.0f64,
    ) {
        let figures: Vec<_> = points.iter().map(|&(x, y)| Point::new(x, y)).collect();
        check(&figures, &resolution(mx, my));
    }

    /// Many coincident points and columns, which trees find hard.
    #[test]
    fn equals_brute_force_on_a_lattice(
        points in prop::collection::vec((0u32..6, 0u32..6), 0..300),
    ) {
        let figures: Vec<_> = points
            .iter()
            .map(|&(x, y)| Point::new(f64::from(x) * 1414.0, f64::from(y) * 1415.0))
            .collect();
        check(&figures, &resolution(0.25, 0.25));
    }

    #[test]
    fn the_order_of_the_slice_does_not_move_it(
        points in prop::collection::vec((0.0..9_000.0f64, 0.0..9_000.0f64), 1..60),
    ) {
        let r = resolution(0.25, 0.25);
        let a: Vec<_> = points.iter().map(|&(x, y)| Point::new(x, y)).collect();
        let b: Vec<_> = a.iter().rev().copied().collect();
        let (a, b) = (hotspot(&a, &r).unwrap().unwrap(), hotspot(&b, &r).unwrap().unwrap());
        prop_assert_eq!((a.count, a.centre, a.min, a.max), (b.count, b.centre, b.min, b.max));
    }
}

#[test]
fn the_border_belongs_to_the_square() {
    // 1 um/px, so that HALF_SIDE_UM is also the distance in pixels.
    let r = resolution(1.0, 1.0);
    let count = |d: f64| {
        let f = [Point::new(0.0, 0.0), Point::new(d, -d)];
        hotspot(&f, &r).unwrap().unwrap().count
    };
    assert_eq!(count(HALF_SIDE_UM), 2);
    assert_eq!(count(HALF_SIDE_UM.next_up()), 1);
}

#[test]
fn each_axis_has_its_own_resolution() {
    // 2,900 px apart: 725 um at 0.25 um/px (outside), 696 um at 0.24 (inside).
    let apart = 2_900.0;
    let along_x = [Point::new(0.0, 0.0), Point::new(apart, 0.0)];
    let along_y = [Point::new(0.0, 0.0), Point::new(0.0, apart)];
    let r = resolution(0.25, 0.24);
    assert_eq!(hotspot(&along_x, &r).unwrap().unwrap().count, 1);
    let h = hotspot(&along_y, &r).unwrap().unwrap();
    assert_eq!(h.count, 2);
    let area = (h.max.x - h.min.x) * 0.25e-3 * (h.max.y - h.min.y) * 0.24e-3;
    assert!((area - 2.0).abs() < 1e-9, "{area}");
}

#[test]
fn nothing_is_a_count_of_zero() {
    let c = Count::new(&[], &resolution(0.25, 0.25), Mm2(3.0), Mm2(0.0)).unwrap();
    assert_eq!((c.figures, c.hotspot, c.hotspot_count(), c.density_per_20_mm2), (0, None, 0, 0.0));
}

#[test]
fn density_leaves_out_what_was_not_read() {
    let figures = [Point::new(1.0, 1.0), Point::new(2.0, 9.0), Point::new(3.0, 4.0)];
    let c = Count::new(&figures, &resolution(0.25, 0.25), Mm2(15.0), Mm2(5.0)).unwrap();
    assert_eq!(c.density_per_20_mm2, 4.0);
    assert_eq!(c.unread, Mm2(5.0));
}

#[test]
fn refuses_what_is_not_an_area_or_place() {
    let r = resolution(0.25, 0.25);
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(Count::new(&[], &r, Mm2(bad), Mm2(0.0)), Err(CountError::NoArea(_))));
    }
    for bad in [-1.0, f64::NAN] {
        let err = Count::new(&[], &r, Mm2(1.0), Mm2(bad));
        assert!(matches!(err, Err(CountError::UnreadArea(_))));
    }
    let bad = [Point::new(0.0, 0.0), Point::new(f64::NAN, 0.0)];
    assert_eq!(hotspot(&bad, &r), Err(CountError::NotFinite(1)));
}

/// `tests/golden/hotspot.py` asks scipy's cKDTree (p = infinity) the same question.
#[test]
fn equals_scipy() {
    #[derive(Deserialize)]
    struct Golden {
        mpp: [f64; 2],
        points: Vec<[f64; 2]>,
        counts: Vec<usize>,
    }
    let cases: Vec<Golden> =
        serde_json::from_str(include_str!("../../tests/golden/hotspot.json")).unwrap();
    assert!(cases.len() >= 3);
    for case in cases {
        let figures: Vec<_> = case.points.iter().map(|p| Point::new(p[0], p[1])).collect();
        let r = resolution(case.mpp[0], case.mpp[1]);
        assert_eq!(brute_counts(&figures, &r), case.counts);
        let h = hotspot(&figures, &r).unwrap().unwrap();
        assert_eq!(h.count, *case.counts.iter().max().unwrap());
        assert_eq!(case.counts[h.index], h.count);
    }
}

/// The area that a file states, divided by the reader, must give the density that it states.
#[test]
fn the_density_is_that_of_the_stated_area() {
    let figures: Vec<_> = (0..7).map(|i| Point::new(f64::from(i), 1.0)).collect();
    for analysed in [0.234_567_49, 0.312_345_678_9, 1.0 / 3.0, 12.000_000_4] {
        let c = Count::new(&figures, &resolution(0.25, 0.25), Mm2(analysed), Mm2(0.0)).unwrap();
        let written = format!("{:.6}", analysed).parse::<f64>().unwrap();
        assert_eq!(Some(c.density_per_20_mm2), density_per_20_mm2(7.0, Mm2(written)));
        assert_eq!(
            format!("{}", c.density_per_20_mm2),
            format!("{}", (7.0 / written * 20.0 * 1e6).round() / 1e6)
        );
    }
    // An area too small to be stated in a file.
    assert_eq!(density_per_20_mm2(1.0, Mm2(1e-7)), None);
    assert!(Count::new(&figures, &resolution(0.25, 0.25), Mm2(1e-7), Mm2(0.0)).is_err());
}
