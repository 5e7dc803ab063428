//! Rows of foreground runs with their probabilities.

use serde::{Deserialize, Serialize};

/// Probability 1 in fixed point. Every f32 from 1/128 to 1 is represented exactly, smaller ones
/// within 5e-10.
pub(crate) const ONE: u32 = 1 << 30;

fn fixed(p: f32) -> u32 {
    // The cast saturates, so that a value above 1 stays representable.
    (f64::from(p) * f64::from(ONE)).round() as u32
}

/// Foreground pixels `[start, end)` of a row; their values start at `offset`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Run {
    pub(crate) start: u32,
    pub(crate) end: u32,
    pub(crate) offset: u32,
}

/// One pixel row: ascending runs that do not touch, and the probability of every pixel in them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SparseRow {
    pub(crate) runs: Vec<Run>,
    pub(crate) values: Vec<u32>,
}

impl SparseRow {
    /// Appends the foreground of `values`, which start at column `x`, right of everything so far.
    pub(crate) fn push_span(&mut self, x: u32, values: &[f32], threshold: f32) {
        // Almost every span has no foreground: one pass that the compiler vectorises.
        if !values.iter().fold(false, |any, &p| any | (p >= threshold)) {
            return;
        }
        let mut end = self.runs.last().map_or(u32::MAX, |r| r.end);
        for (x, &p) in (x..).zip(values) {
            if p >= threshold && p > 0.0 {
                if end == x {
                    self.runs.last_mut().expect("a run that ends here").end += 1;
                } else {
                    let offset = self.values.len() as u32;
                    self.runs.push(Run { start: x, end: x + 1, offset });
                }
                end = x + 1;
                self.values.push(fixed(p));
            }
        }
    }

    /// Values of the columns `[start, end)`, which are inside one run. `hint` is a run at or before
    /// it and moves on.
    pub(crate) fn slice(&self, start: u32, end: u32, hint: &mut usize) -> &[u32] {
        while self.runs[*hint].end < end {
            *hint += 1;
        }
        let run = self.runs[*hint];
        let at = (run.offset + start - run.start) as usize;
        &self.values[at..at + (end - start) as usize]
    }
}
