//! Weights by rank, with sums on either side of one: behind the O(n log n) concordance.

use base::fenwick::Fenwick;

/// Weights by rank.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ranks {
    sums: Fenwick<f64>,
    at: Vec<f64>,
    total: f64,
}

impl Ranks {
    pub(crate) fn reset(&mut self, ranks: usize) {
        self.sums.reset(ranks);
        self.at.clear();
        self.at.resize(ranks, 0.0);
        self.total = 0.0;
    }

    pub(crate) fn add(&mut self, rank: usize, weight: f64) {
        self.at[rank] += weight;
        self.total += weight;
        self.sums.add(rank, weight);
    }

    /// The weights below, at and above `rank`.
    pub(crate) fn around(&self, rank: usize) -> (f64, f64, f64) {
        let (below, at) = (self.sums.below(rank), self.at[rank]);
        (below, at, self.total - below - at)
    }
}
