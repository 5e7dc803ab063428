use super::*;
use proptest::prelude::*;

fn near(a: f64, b: f64) {
    assert!((a - b).abs() <= 1e-9 * b.abs().max(1.0), "{a} is not {b}");
}

#[test]
fn a_ring_that_crosses_itself_encloses_both_loops() {
    let bow = vec![[0.0, 0.0], [4.0, 4.0], [4.0, 0.0], [0.0, 4.0]];
    near(Area::polygon(&bow, &[]).px2(), 8.0);
    let thin = vec![[0.0, 0.0], [4.0, 4.0]];
    assert!(Area::polygon(&thin, &[]).is_empty());
}

#[test]
fn holes_are_taken_out_whichever_way_they_wind() {
    let outer = vec![[0.0, 0.0], [10.0, 0.0], [10.0, 10.0], [0.0, 10.0]];
    let hole = vec![[2.0, 2.0], [4.0, 2.0], [4.0, 4.0], [2.0, 4.0]];
    let turned: Ring = hole.iter().rev().copied().collect();
    for hole in [hole, turned] {
        let area = Area::polygon(&outer, &[hole]);
        near(area.px2(), 96.0);
        let inside = area.index();
        for (x, y, expected) in
            [(1.0, 1.0, true), (3.0, 3.0, false), (11.0, 5.0, false), (5.0, -1.0, false)]
        {
            assert_eq!(inside.contains(Point::new(x, y)), expected, "{x}, {y}");
        }
    }
}

#[test]
fn overlaps_count_once_and_exclusions_are_taken_away() {
    let a = Area::rectangle([0.0, 0.0], [10.0, 10.0]);
    let b = Area::rectangle([5.0, 5.0], [15.0, 15.0]);
    near(a.or(&b).px2(), 175.0);
    near(a.and(&b).px2(), 25.0);
    near(a.minus(&b).px2(), 75.0);
    assert_eq!(a.or(&Area::default()), a);
    assert!(a.and(&Area::default()).is_empty());
    near(a.minus(&Area::default()).px2(), 100.0);
}

proptest! {
    /// The shares of all cells sum to the area on the grid, and each share is that of the cut with its cell.
    #[test]
    fn coverage_is_the_area_of_each_cell(
        points in prop::collection::vec((-3.0..14.0f64, -3.0..11.0f64), 3..9),
    ) {
        let ring: Ring = points.into_iter().map(|(x, y)| [x, y]).collect();
        let area = Area::polygon(&ring, &[]);
        let (cell, size) = ((1.5, 0.75), (6, 9));
        let coverage = Coverage::new(&area, cell, size);
        let mut sum = 0.0;
        for row in 0..size.1 {
            for column in 0..size.0 {
                let low = [column as f64 * cell.0, row as f64 * cell.1];
                let one = Area::rectangle(low, [low[0] + cell.0, low[1] + cell.1]);
                let expected = area.and(&one).px2() / (cell.0 * cell.1);
                let got = coverage.at(column, row);
                prop_assert!((got - expected).abs() < 1e-5, "{column} {row}: {got} is not {expected}");
                sum += got;
            }
        }
        let grid = Area::rectangle([0.0, 0.0], [size.0 as f64 * cell.0, size.1 as f64 * cell.1]);
        prop_assert!((sum * cell.0 * cell.1 - area.and(&grid).px2()).abs() < 1e-4);
        prop_assert_eq!(coverage.at(size.0, 0), 0.0);
    }

    /// Between two areas nothing is covered, whatever the rounding of their edges leaves.
    #[test]
    fn cells_that_no_area_touches_have_no_share(
        one in prop::collection::vec((0.0..4.0f64, 0.0..30.0f64), 3..30),
        other in prop::collection::vec((9.0..14.0f64, 0.0..30.0f64), 3..30),
        side in 0.1..0.7f64,
    ) {
        let ring = |points: Vec<(f64, f64)>| points.into_iter().map(|(x, y)| [x, y]).collect::<Ring>();
        let both = Area::polygon(&ring(one), &[]).or(&Area::polygon(&ring(other), &[]));
        let coverage = Coverage::new(&both, (side, side), (200, 400));
        for column in (4.0 / side).ceil() as usize..(9.0 / side) as usize {
            for row in 0..400 {
                prop_assert_eq!(coverage.at(column, row), 0.0, "{} {}", column, row);
            }
        }
    }

    /// The test of a point agrees with the share of a tiny square around it.
    #[test]
    fn inside_agrees_with_the_cut(
        points in prop::collection::vec((0.0..10.0f64, 0.0..10.0f64), 3..9),
        at in (0.0..10.0f64, 0.0..10.0f64),
    ) {
        let ring: Ring = points.into_iter().map(|(x, y)| [x, y]).collect();
        let area = Area::polygon(&ring, &[]);
        let around = Area::rectangle([at.0 - 1e-3, at.1 - 1e-3], [at.0 + 1e-3, at.1 + 1e-3]);
        let share = area.and(&around).px2() / around.px2();
        prop_assume!(!(0.001..0.999).contains(&share));
        prop_assert_eq!(area.index().contains(Point::new(at.0, at.1)), share > 0.5);
    }
}
