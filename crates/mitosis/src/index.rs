//! Fixed-radius neighbours on the plane: a KD-tree with the border decided exactly.

use kiddo::{Chebyshev, ImmutableKdTree};

/// Points indexed once, queried often.
pub(crate) struct Index<'a> {
    points: &'a [[f64; 2]],
    tree: Option<ImmutableKdTree<f64, 2>>,
}

impl<'a> Index<'a> {
    /// Indexes finite points; fewer than `u32::MAX` of them.
    pub(crate) fn new(points: &'a [[f64; 2]]) -> Self {
        // A handful of points needs no tree (and kiddo none of zero points).
        let tree = (points.len() > 16)
            .then(|| ImmutableKdTree::new_from_slice(points).expect("finite points, checked"));
        Self { points, tree }
    }

    /// Calls `found(index)` for every point with Chebyshev distance `<= half` from `at`, in no
    /// particular order.
    ///
    /// The tree is asked for a hair more than `half`, and the border is decided here by one plain
    /// comparison per axis, so that the answer equals brute force bit for bit.
    pub(crate) fn square(&self, at: [f64; 2], half: f64, mut found: impl FnMut(usize)) {
        let inside = |p: [f64; 2]| (p[0] - at[0]).abs() <= half && (p[1] - at[1]).abs() <= half;
        match &self.tree {
            None => (0..self.points.len()).filter(|&i| inside(self.points[i])).for_each(found),
            Some(tree) => {
                let slack = half + (half + at[0].abs() + at[1].abs()) * 1e-12;
                for hit in tree.query(&at).within::<Chebyshev<f64>>(slack).unsorted().execute() {
                    let i = hit.item as usize;
                    if inside(self.points[i]) {
                        found(i);
                    }
                }
            }
        }
    }
}
