//! Most pairs, then least total distance: successive shortest augmenting paths on the sparse graph
//! of pairs in reach.
//!
//! Costs are whole picometres, so that nothing depends on the order of floating-point additions.
//! Every ground-truth point also has a private way out that costs more than all distances together:
//! the cheapest assignment of everyone is then the one with the fewest ways out, which is the
//! largest matching, and among those the shortest.

use super::{Pair, Reach};
use crate::Microns;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

const PICOMETRES_PER_UM: f64 = 1e6;
const NONE: usize = usize::MAX;

pub(super) fn assign(reach: &Reach, predictions: usize) -> Vec<Pair> {
    let mut search = Search::new(reach, predictions);
    for truth in 0..reach.near.len() {
        if !reach.near[truth].is_empty() {
            search.augment(truth);
        }
    }
    let pairs = reach.near.iter().enumerate().filter_map(|(truth, near)| {
        // No hit: the point holds nothing, or its way out.
        let &(distance, prediction) = near.iter().find(|&&(_, p)| p == search.held[truth])?;
        Some(Pair { truth, prediction, distance: Microns(distance) })
    });
    pairs.collect()
}

/// Columns are the predictions, then one way out for each ground-truth point.
struct Search<'a> {
    reach: &'a Reach,
    predictions: usize,
    way_out: i128,
    /// Ground-truth point that holds each column, and the column each of them holds.
    owner: Vec<usize>,
    held: Vec<usize>,
    /// Potentials of ground truth and of columns.
    u: Vec<i128>,
    v: Vec<i128>,
    /// Per column, for the search under way.
    distance: Vec<i128>,
    from: Vec<usize>,
    settled: Vec<bool>,
    touched: Vec<usize>,
}

impl<'a> Search<'a> {
    fn new(reach: &'a Reach, predictions: usize) -> Self {
        let truths = reach.near.len();
        let columns = predictions + truths;
        let longest = reach.near.iter().flatten().map(|&(d, _)| cost(d)).max().unwrap_or(0);
        Self {
            reach,
            predictions,
            way_out: (longest + 1) * (truths as i128 + 1),
            owner: vec![NONE; columns],
            held: vec![NONE; truths],
            u: vec![0; truths],
            v: vec![0; columns],
            distance: vec![i128::MAX; columns],
            from: vec![NONE; columns],
            settled: vec![false; columns],
            touched: Vec::new(),
        }
    }

    /// Gives `source` a column, moving others along the cheapest alternating path (Dijkstra on
    /// reduced costs).
    fn augment(&mut self, source: usize) {
        let mut heap = BinaryHeap::new();
        let mut settled: Vec<usize> = Vec::new();
        let (mut truth, mut base) = (source, 0i128);
        let end = loop {
            let reach = self.reach;
            let steps = reach.near[truth].iter().map(|&(d, p)| (p, cost(d)));
            for (column, c) in steps.chain([(self.predictions + truth, self.way_out)]) {
                if self.settled[column] {
                    continue;
                }
                let along = base + c - self.u[truth] - self.v[column];
                if along < self.distance[column] {
                    if self.distance[column] == i128::MAX {
                        self.touched.push(column);
                    }
                    self.distance[column] = along;
                    self.from[column] = truth;
                    heap.push(Reverse((along, column)));
                }
            }
            let column = loop {
                let Reverse((at, column)) = heap.pop().expect("every point has its own way out");
                if !self.settled[column] && at == self.distance[column] {
                    break column;
                }
            };
            base = self.distance[column];
            if self.owner[column] == NONE {
                break column;
            }
            self.settled[column] = true;
            settled.push(column);
            truth = self.owner[column];
        };
        self.u[source] += base;
        for &column in &settled {
            self.u[self.owner[column]] += base - self.distance[column];
            self.v[column] -= base - self.distance[column];
        }
        let mut column = end;
        loop {
            let truth = self.from[column];
            let before = std::mem::replace(&mut self.held[truth], column);
            self.owner[column] = truth;
            if truth == source {
                break;
            }
            column = before;
        }
        for column in self.touched.drain(..) {
            self.distance[column] = i128::MAX;
            self.from[column] = NONE;
            self.settled[column] = false;
        }
    }
}

fn cost(um: f64) -> i128 {
    (um * PICOMETRES_PER_UM).round() as i128
}
