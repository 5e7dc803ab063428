//! 8-connected regions, row by row: a union-find over the runs of two neighbouring rows.

use super::opening::Runs;
use super::region::Region;
use super::rows::SparseRow;
use serde::{Deserialize, Serialize};

/// Regions that the last row still touches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Regions {
    /// Row number of the next row.
    y: u32,
    open: Vec<Region>,
    /// Runs of the last row and the open region of each.
    last: Vec<(u32, u32, usize)>,
}

impl Regions {
    /// Takes the next row: `runs` are inside the runs of `row`. Regions that end above it go to
    /// `done`.
    pub(crate) fn push(&mut self, row: &SparseRow, runs: &Runs, done: &mut Vec<Region>) {
        let y = self.y;
        self.y += 1;
        if runs.is_empty() {
            self.last.clear();
            done.append(&mut self.open);
            return;
        }
        let mut parent: Vec<usize> = (0..self.open.len()).collect();
        let mut now = Vec::with_capacity(runs.len());
        let (mut above, mut hint) = (0, 0);
        for &(start, end) in runs {
            let n = u64::from(end - start);
            let mut id = self.open.len();
            self.open.push(Region {
                first: (y, start),
                area: n,
                // start + ... + (end - 1)
                sum_x: n * u64::from(start) + n * (n - 1) / 2,
                sum_y: n * u64::from(y),
                sum_p: row.slice(start, end, &mut hint).iter().map(|&p| u64::from(p)).sum(),
            });
            parent.push(id);
            // Diagonal neighbours count: [a, b) above touches [start, end) when a <= end, start <= b.
            while above < self.last.len() && self.last[above].1 < start {
                above += 1;
            }
            for &(_, _, other) in self.last[above..].iter().take_while(|l| l.0 <= end) {
                let (a, b) = (root(&mut parent, id), root(&mut parent, other));
                id = a.min(b);
                parent[a.max(b)] = id;
            }
            now.push((start, end, id));
        }
        // Everyone adds to its root; roots that this row touches stay open.
        let mut place = vec![usize::MAX; self.open.len()];
        let mut open: Vec<Region> = Vec::new();
        let roots: Vec<usize> = (0..self.open.len()).map(|i| root(&mut parent, i)).collect();
        for run in &mut now {
            let r = roots[run.2];
            if place[r] == usize::MAX {
                place[r] = open.len();
                open.push(self.open[r]);
            }
            run.2 = place[r];
        }
        for (i, region) in self.open.iter().enumerate() {
            match place[roots[i]] {
                usize::MAX => done.push(*region),
                p if roots[i] != i => open[p].merge(region),
                _ => {}
            }
        }
        self.open = open;
        self.last = now;
    }

    /// No more rows.
    pub(crate) fn finish(&mut self, done: &mut Vec<Region>) {
        self.last.clear();
        done.append(&mut self.open);
    }
}

fn root(parent: &mut [usize], mut i: usize) -> usize {
    while parent[i] != i {
        parent[i] = parent[parent[i]];
        i = parent[i];
    }
    i
}
