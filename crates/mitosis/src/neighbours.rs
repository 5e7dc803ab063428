//! How many points are in the square around each: one sweep, however crowded they are.

use base::fenwick::Fenwick;

/// For every point the number of points, itself included, within Chebyshev distance `half` of it.
/// `steps` counts the visits of the sums below, about `4 n log2 n`.
///
/// The border is decided by one plain comparison per axis, so that the answer equals brute force bit
/// for bit: a rounded difference grows with the coordinate, so that the points within `half` of a
/// coordinate are neighbours in its order.
pub(crate) fn counts(points: &[[f64; 2]], half: f64, steps: &mut u64) -> Vec<usize> {
    let sorted = |axis: usize| {
        let mut all: Vec<f64> = points.iter().map(|p| p[axis]).collect();
        all.sort_by(f64::total_cmp);
        all
    };
    let (xs, ys) = (sorted(0), sorted(1));
    let span = |all: &[f64], at: f64| {
        let low = all.partition_point(|&v| v - at < -half);
        (low, all.partition_point(|&v| v - at <= half))
    };
    // Points by row, each at its own place in the order of columns.
    let mut columns: Vec<usize> = (0..points.len()).collect();
    columns.sort_by(|&a, &b| points[a][0].total_cmp(&points[b][0]));
    let mut place = vec![0; points.len()];
    for (rank, &i) in columns.iter().enumerate() {
        place[i] = rank;
    }
    let mut rows = columns;
    rows.sort_by(|&a, &b| points[a][1].total_cmp(&points[b][1]));
    // What is asked when so many rows are in: the point, and whether it is added or taken off.
    let mut asked: Vec<(usize, usize, bool)> = Vec::with_capacity(2 * points.len());
    for (i, p) in points.iter().enumerate() {
        let (low, high) = span(&ys, p[1]);
        asked.push((low, i, false));
        asked.push((high, i, true));
    }
    asked.sort_unstable();
    let mut sums = Fenwick::new(points.len());
    let mut counts = vec![0usize; points.len()];
    let mut inside = 0;
    for (row, i, added) in asked {
        while inside < row {
            *steps += sums.add(place[rows[inside]], 1_usize) as u64;
            inside += 1;
        }
        let (low, high) = span(&xs, points[i][0]);
        let n = sums.below(high) - sums.below(low);
        *steps += u64::from(high.count_ones() + low.count_ones());
        // The lower edge of a point's rows comes before its upper one.
        counts[i] = if added { n - counts[i] } else { n };
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::counts;

    #[test]
    fn dense_points_cost_no_more_steps_than_sparse_ones() {
        let n = 150_000usize;
        for spread in [0.001, 1000.0] {
            let points: Vec<[f64; 2]> = (0..n)
                .map(|i| [(i * 7919 % n) as f64 * spread, (i * 104_729 % n) as f64 * spread])
                .collect();
            let mut steps = 0;
            let all = counts(&points, 707.0, &mut steps);
            assert!(all.iter().all(|&c| c >= 1));
            assert!((steps as f64) < 5.0 * n as f64 * (n as f64).log2(), "{steps} steps");
            if spread < 1.0 {
                assert!(all.iter().all(|&c| c == n), "all are in every square");
            }
        }
    }

    #[test]
    fn borders_and_doubles_count() {
        let points = [[0.0, 0.0], [10.0, 0.0], [10.0, 10.0], [10.1, 0.0], [0.0, 0.0]];
        assert_eq!(counts(&points, 10.0, &mut 0), [4, 5, 5, 3, 4]);
        assert!(counts(&[], 1.0, &mut 0).is_empty());
    }
}
