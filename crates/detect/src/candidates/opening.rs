//! Morphological opening with a square, row by row on runs.
//!
//! With radius r the opened row y needs the rows y - 2r to y + 2r: it comes out 2r rows late.

use super::rows::SparseRow;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Ascending, separate intervals `[start, end)`.
pub(crate) type Runs = Vec<(u32, u32)>;

/// Opening under way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Opening {
    radius: u32,
    /// Rows not yet given out, oldest first.
    rows: VecDeque<SparseRow>,
    /// The last 2r + 1 rows eroded along x.
    thinned: VecDeque<Runs>,
    /// The last 2r + 1 fully eroded rows, widened again along x.
    widened: VecDeque<Runs>,
}

impl Opening {
    pub(crate) fn new(radius: u32) -> Self {
        // Rows above the map are empty.
        let span = 2 * radius as usize;
        let empty = || VecDeque::from(vec![Runs::new(); span]);
        Self { radius, rows: VecDeque::new(), thinned: empty(), widened: empty() }
    }

    pub(crate) fn radius(&self) -> u32 {
        self.radius
    }

    /// How many rows late the opened rows come.
    pub(crate) fn delay(&self) -> usize {
        2 * self.radius as usize
    }

    /// Takes row y; gives row y - 2r with its opened runs, once there is one.
    pub(crate) fn push(&mut self, row: SparseRow) -> Option<(SparseRow, Runs)> {
        if self.radius == 0 {
            let runs = row.runs.iter().map(|r| (r.start, r.end)).collect();
            return Some((row, runs));
        }
        let r = self.radius;
        let thin = row.runs.iter().filter(|run| run.end - run.start > 2 * r);
        self.thinned.push_back(thin.map(|run| (run.start + r, run.end - r)).collect());
        self.rows.push_back(row);
        let eroded = intersection(self.thinned.make_contiguous());
        self.thinned.pop_front();
        // Eroded runs are at least r inside a run, so widening cannot go below column 0.
        self.widened.push_back(eroded.iter().map(|&(a, b)| (a - r, b + r)).collect());
        let opened = union(self.widened.make_contiguous());
        self.widened.pop_front();
        if self.rows.len() <= self.delay() {
            return None;
        }
        self.rows.pop_front().map(|row| (row, opened))
    }
}

fn intersection(rows: &[Runs]) -> Runs {
    let Some((first, rest)) = rows.split_first() else { return Runs::new() };
    if rows.iter().any(Vec::is_empty) {
        return Runs::new();
    }
    rest.iter().fold(first.clone(), |a, b| {
        let (mut i, mut j, mut out) = (0, 0, Runs::new());
        while i < a.len() && j < b.len() {
            let (start, end) = (a[i].0.max(b[j].0), a[i].1.min(b[j].1));
            if start < end {
                out.push((start, end));
            }
            if a[i].1 < b[j].1 { i += 1 } else { j += 1 }
        }
        out
    })
}

fn union(rows: &[Runs]) -> Runs {
    let mut all: Runs = rows.iter().flatten().copied().collect();
    all.sort_unstable();
    let mut out = Runs::new();
    for (start, end) in all {
        match out.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => out.push((start, end)),
        }
    }
    out
}
