//! Local maxima, row by row.

use super::region::Region;
use super::rows::SparseRow;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Peaks under way: row y is judged when row y + distance has come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Peaks {
    distance: u32,
    /// Row number of the next row.
    y: u32,
    /// The last 2 * distance + 1 rows, oldest first.
    rows: VecDeque<SparseRow>,
}

impl Peaks {
    pub(crate) fn new(distance: u32) -> Self {
        let distance = distance.max(1);
        let above = vec![SparseRow::default(); 2 * distance as usize];
        Self { distance, y: 0, rows: above.into() }
    }

    pub(crate) fn distance(&self) -> u32 {
        self.distance
    }

    pub(crate) fn push(&mut self, row: SparseRow, done: &mut Vec<Region>) {
        self.rows.push_back(row);
        let middle = self.distance as usize;
        let d = self.distance;
        if let Some(y) = self.y.checked_sub(d) {
            for run in &self.rows[middle].runs {
                for x in run.start..run.end {
                    let p = self.rows[middle].values[(run.offset + x - run.start) as usize];
                    if self.is_peak(x, p) {
                        let (sum_x, sum_y) = (u64::from(x), u64::from(y));
                        let sum_p = u64::from(p);
                        done.push(Region { first: (y, x), area: 1, sum_x, sum_y, sum_p });
                    }
                }
            }
        }
        self.rows.pop_front();
        self.y += 1;
    }

    pub(crate) fn finish(mut self, done: &mut Vec<Region>) {
        for _ in 0..self.distance {
            self.push(SparseRow::default(), done);
        }
    }

    /// Whether the pixel at column `x` of the middle row is a peak; near rows are asked first, since
    /// they refuse most pixels.
    fn is_peak(&self, x: u32, p: u32) -> bool {
        let (d, middle) = (self.distance, self.distance as usize);
        let (from, to) = (x.saturating_sub(d), x + d + 1);
        (0..=middle).all(|step| {
            // Columns that come earlier in reading order must be lower, the others not higher.
            let above =
                beats(p, &self.rows[middle - step], from, to, if step == 0 { x } else { to });
            above && (step == 0 || beats(p, &self.rows[middle + step], from, to, 0))
        })
    }
}

/// Whether every value in `[from, to)` is below `p` left of `strict_until`, and at most `p` from there.
fn beats(p: u32, row: &SparseRow, from: u32, to: u32, strict_until: u32) -> bool {
    let first = row.runs.partition_point(|r| r.end <= from);
    row.runs[first..].iter().take_while(|r| r.start < to).all(|run| {
        let (a, b) = (run.start.max(from), run.end.min(to));
        let at = (run.offset + a - run.start) as usize;
        let values = &row.values[at..at + (b - a) as usize];
        (a..b).zip(values).all(|(x, &q)| if x < strict_until { q < p } else { q <= p })
    })
}
