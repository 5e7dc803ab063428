//! How many points are in the square or circle around each, however crowded they are.

use base::fenwick::Fenwick;
use std::ops::Range;

/// For every point the number of points, itself included, within Chebyshev distance `half`, at least 0, of it.
/// `steps` counts the visits of the sums below, about `4 n log2 n`.
///
/// The border is decided by one plain comparison per axis, so that the answer equals brute force bit
/// for bit: a rounded difference grows with the coordinate, so that the points within `half` of a
/// coordinate are neighbours in its order.
pub(crate) fn counts(points: &[[f64; 2]], half: f64, steps: &mut u64) -> Vec<usize> {
    let (columns, rows) = (Axis::new(points, 0, half), Axis::new(points, 1, half));
    // Of each point its place among the columns, and those within `half` of it.
    let mut columns_of = vec![(0, 0..0); points.len()];
    for (place, (&i, near)) in columns.order.iter().zip(columns.near).enumerate() {
        columns_of[i] = (place, near);
    }
    // Rows are taken in their order. What is in a point's columns once all of its rows are taken, less what was there
    // just before the first of them.
    let mut taken = Taken::new(points.len());
    let mut next = 0;
    let mut when_taken = |until: usize, i: usize| {
        for &j in &rows.order[next..until] {
            *steps += taken.take(columns_of[j].0);
        }
        next = until;
        let near = &columns_of[i].1;
        *steps += Taken::steps(near.start) + Taken::steps(near.end);
        taken.below(near.end) - taken.below(near.start)
    };
    let mut counts = vec![0; points.len()];
    let mut first = rows.order.iter().zip(&rows.near).peekable();
    for (&i, near) in rows.order.iter().zip(&rows.near) {
        // Both ends grow with the point.
        while let Some((&j, own)) = first.next_if(|(_, own)| own.start <= near.end) {
            counts[j] = when_taken(own.start, j);
        }
        counts[i] = when_taken(near.end, i) - counts[i];
    }
    counts
}

/// Points in the order of one coordinate.
struct Axis {
    /// Which point is at a place.
    order: Vec<usize>,
    /// Places of the points within `half` of the one at a place.
    near: Vec<Range<usize>>,
}

impl Axis {
    fn new(points: &[[f64; 2]], axis: usize, half: f64) -> Self {
        let mut all: Vec<(f64, usize)> = points.iter().map(|p| p[axis]).zip(0..).collect();
        all.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let (mut low, mut high) = (0, 0);
        let mut near = Vec::with_capacity(all.len());
        for &(at, _) in &all {
            while all[low].0 - at < -half {
                low += 1;
            }
            while all.get(high).is_some_and(|v| v.0 - at <= half) {
                high += 1;
            }
            near.push(low..high);
        }
        Self { order: all.into_iter().map(|(_, i)| i).collect(), near }
    }
}

/// Places that are taken: a bit each, and how many are in front of each word of bits.
struct Taken {
    bits: Vec<u64>,
    sums: Fenwick<usize>,
}

impl Taken {
    fn new(places: usize) -> Self {
        let words = places / 64 + 1;
        Self { bits: vec![0; words], sums: Fenwick::new(words) }
    }

    /// Takes a place; gives the visits of sums.
    fn take(&mut self, place: usize) -> u64 {
        self.bits[place / 64] |= 1 << (place % 64);
        self.sums.add(place / 64, 1) as u64
    }

    /// How many are taken in front of a place.
    fn below(&self, place: usize) -> usize {
        let bits = self.bits[place / 64] & ((1 << (place % 64)) - 1);
        self.sums.below(place / 64) + bits.count_ones() as usize
    }

    /// The visits of sums by [`Self::below`].
    fn steps(place: usize) -> u64 {
        u64::from((place / 64).count_ones()) + 1
    }
}

/// For every point the number of points, itself included, within the distance `radius` of it; the same as brute force.
/// `steps` counts the boxes that were looked at.
pub(crate) fn counts_in_circle(points: &[[f64; 2]], radius: f64, steps: &mut u64) -> Vec<usize> {
    let mut sorted = points.to_vec();
    let Some(tree) = Boxed::new(&mut sorted, 0) else { return vec![] };
    points.iter().map(|p| tree.within(&sorted, *p, radius, steps)).collect()
}

/// Points of a box, and halves of it where there are many.
struct Boxed {
    low: [f64; 2],
    high: [f64; 2],
    first: usize,
    count: usize,
    halves: Option<Box<[Boxed; 2]>>,
}

/// Points that are compared one by one.
const FEW: usize = 8;
/// Distances of corners are rounded: nearer to the border than this, points decide for themselves.
const ROUNDING: f64 = 1e-12;

impl Boxed {
    /// Of points that follow `first` others; it sorts them.
    fn new(points: &mut [[f64; 2]], first: usize) -> Option<Self> {
        let (&start, count) = (points.first()?, points.len());
        let (mut low, mut high) = (start, start);
        for p in &*points {
            for axis in 0..2 {
                low[axis] = low[axis].min(p[axis]);
                high[axis] = high[axis].max(p[axis]);
            }
        }
        let axis = usize::from(high[1] - low[1] > high[0] - low[0]);
        let halves = if count <= FEW || low == high {
            None
        } else {
            points.select_nth_unstable_by(count / 2, |a, b| a[axis].total_cmp(&b[axis]));
            let (left, right) = points.split_at_mut(count / 2);
            match (Self::new(left, first), Self::new(right, first + count / 2)) {
                (Some(left), Some(right)) => Some(Box::new([left, right])),
                _ => None,
            }
        };
        Some(Self { low, high, first, count, halves })
    }

    fn within(&self, sorted: &[[f64; 2]], p: [f64; 2], radius: f64, steps: &mut u64) -> usize {
        *steps += 1;
        let near = |axis: usize| (self.low[axis] - p[axis]).max(p[axis] - self.high[axis]).max(0.0);
        let far = |axis: usize| (p[axis] - self.low[axis]).max(self.high[axis] - p[axis]);
        if near(0).hypot(near(1)) > radius * (1.0 + ROUNDING) {
            return 0;
        }
        if far(0).hypot(far(1)) * (1.0 + ROUNDING) <= radius {
            return self.count;
        }
        let inside = |q: &[f64; 2]| (q[0] - p[0]).hypot(q[1] - p[1]) <= radius;
        match &self.halves {
            Some(halves) => halves.iter().map(|h| h.within(sorted, p, radius, steps)).sum(),
            None if self.low == self.high => {
                if inside(&self.low) {
                    self.count
                } else {
                    0
                }
            }
            None => sorted[self.first..][..self.count].iter().filter(|q| inside(q)).count(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{counts, counts_in_circle};

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

    #[test]
    fn circles_equal_brute_force_and_crowds_cost_little() {
        // On a raster many distances are exactly the radius.
        let raster: Vec<[f64; 2]> =
            (0..900).map(|i| [f64::from(i % 30) * 3.0, f64::from(i / 30 % 25) * 4.0]).collect();
        for radius in [0.0, 3.0, 5.0, 25.0, 1000.0] {
            let brute = |a: &[f64; 2]| {
                let near = |b: &&[f64; 2]| (b[0] - a[0]).hypot(b[1] - a[1]) <= radius;
                raster.iter().filter(near).count()
            };
            let all: Vec<usize> = raster.iter().map(brute).collect();
            assert_eq!(counts_in_circle(&raster, radius, &mut 0), all, "{radius}");
        }
        assert!(counts_in_circle(&[], 1.0, &mut 0).is_empty());
        // Two crowds at the radius of each other, spread out or each in one place.
        let n = 20_000usize;
        for spread in [0.0, 1e-9, 1e-3] {
            let crowd = |i: usize| {
                [(i % 2 * 1000) as f64 + (i % 317) as f64 * spread, (i / 317) as f64 * spread]
            };
            let points: Vec<[f64; 2]> = (0..n).map(crowd).collect();
            let mut steps = 0;
            counts_in_circle(&points, 1000.0, &mut steps);
            assert!(steps < 200 * n as u64, "{spread}: {steps} steps");
        }
    }
}
