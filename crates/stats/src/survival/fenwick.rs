//! Prefix sums that change: the tree behind the O(n log n) concordance.

/// Weights by rank, with prefix sums in O(log n).
#[derive(Debug, Clone, Default)]
pub(crate) struct Fenwick {
    tree: Vec<f64>,
    at: Vec<f64>,
    total: f64,
}

impl Fenwick {
    pub(crate) fn reset(&mut self, ranks: usize) {
        self.tree.clear();
        self.tree.resize(ranks + 1, 0.0);
        self.at.clear();
        self.at.resize(ranks, 0.0);
        self.total = 0.0;
    }

    pub(crate) fn add(&mut self, rank: usize, weight: f64) {
        self.at[rank] += weight;
        self.total += weight;
        let mut i = rank + 1;
        while i < self.tree.len() {
            self.tree[i] += weight;
            i += i & i.wrapping_neg();
        }
    }

    /// The weights below, at and above `rank`.
    pub(crate) fn around(&self, rank: usize) -> (f64, f64, f64) {
        let mut below = 0.0;
        let mut i = rank;
        while i > 0 {
            below += self.tree[i];
            i &= i - 1;
        }
        let at = self.at[rank];
        (below, at, self.total - below - at)
    }
}
