//! Weights in the order in which the kernels read them.

use crate::aligned::Aligned;
use crate::isa::Isa;
use crate::isa::half::{DEPTH, SIDE, TILE};
use half::bf16;

/// Depth of one part of a product: its weights, 48 columns wide, are 48 KiB and stay in the second-level cache.
const PART: usize = 256;
/// Products up to this depth are not split.
const WHOLE: usize = 400;

/// One run of consecutive depth: values of one source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// Which source.
    pub source: usize,
    /// Row and column offset of its first tap to the first tap of the source's window.
    pub dy: isize,
    pub dx: isize,
    /// Taps, and what divides them.
    pub taps: usize,
    pub along: Along,
    /// First value inside a tap, and how many.
    pub from: usize,
    pub len: usize,
}

/// The step between two taps of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Along {
    /// So many rows.
    Rows(usize),
    /// So many pixels.
    Pixels(usize),
}

impl Run {
    pub(crate) fn depth(&self) -> usize {
        self.taps * self.len
    }
}

/// Parts of a depth, each a list of runs: split where a product is too deep.
pub(crate) fn parts(runs: &[Run]) -> Vec<Vec<Run>> {
    let depth: usize = runs.iter().map(Run::depth).sum();
    if depth <= WHOLE {
        return vec![runs.to_vec()];
    }
    let mut all: Vec<Vec<Run>> = vec![Vec::new()];
    let mut room = PART;
    for run in runs {
        for tap in 0..run.taps {
            let mut from = 0;
            while from < run.len {
                if room == 0 {
                    all.push(Vec::new());
                    room = PART;
                }
                let len = (run.len - from).min(room);
                let (mut dy, mut dx) = (run.dy, run.dx);
                match run.along {
                    Along::Rows(n) => dy += (tap * n) as isize,
                    Along::Pixels(n) => dx += (tap * n) as isize,
                }
                let piece = Run { taps: 1, dy, dx, from: run.from + from, len, ..*run };
                all.last_mut().expect("never empty").push(piece);
                from += len;
                room -= len;
            }
        }
    }
    all
}

/// `[depth][columns]` of the values at each depth and column. Some columns at once: each is a filter, which is read
/// from one end to the other.
pub(crate) fn matrix(depth: usize, columns: usize, at: impl Fn(usize, usize) -> f32) -> Vec<f32> {
    let mut all = vec![0.0; depth * columns];
    for first in (0..columns).step_by(SIDE) {
        let some = first..columns.min(first + SIDE);
        for (k, row) in all.chunks_exact_mut(columns).enumerate() {
            row[some.clone()].iter_mut().zip(some.clone()).for_each(|(v, n)| *v = at(k, n));
        }
    }
    all
}

/// A matrix `[depth][columns]` in panels of one to three registers, `[panel][depth][registers * lanes]`.
#[derive(Debug)]
pub(crate) struct Packed {
    pub columns: usize,
    pub depth: usize,
    pub panels: Vec<Panel>,
    values: Aligned,
    bias: Aligned,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Panel {
    pub column: usize,
    pub columns: usize,
    pub registers: usize,
    wide: usize,
    at: usize,
}

/// The columns of one register of a packed matrix.
pub(crate) struct Register<'a> {
    values: &'a mut [f32],
    wide: usize,
    columns: usize,
}

impl Register<'_> {
    /// Its columns at a depth.
    pub(crate) fn row(&mut self, k: usize) -> &mut [f32] {
        &mut self.values[k * self.wide..][..self.columns]
    }
}

impl Packed {
    /// `matrix[k * columns + n]`.
    pub(crate) fn new(isa: Isa, columns: usize, matrix: &[f32], bias: &[f32]) -> Self {
        let depth = matrix.len() / columns.max(1);
        let mut packed = Self::zeros(isa, [depth, columns], bias);
        let Self { panels, values, .. } = &mut packed;
        for panel in panels {
            let rows = values[panel.at..].chunks_exact_mut(panel.wide);
            for (to, row) in rows.zip(matrix.chunks_exact(columns)) {
                to[..panel.columns].copy_from_slice(&row[panel.column..][..panel.columns]);
            }
        }
        packed
    }

    /// Weights of zero, for so much depth and so many columns.
    pub(crate) fn zeros(isa: Isa, [depth, columns]: [usize; 2], bias: &[f32]) -> Self {
        let lanes = isa.lanes();
        let mut left = columns.div_ceil(lanes);
        let values = Aligned::zeros(depth * left * lanes);
        let (mut panels, mut column) = (Vec::new(), 0);
        while left > 0 {
            // Four as two and two: a panel of one register is the slowest.
            let registers = match (isa.widest(), left) {
                (3, 4 | 2) => 2,
                (widest, left) => left.min(widest),
            };
            let wide = registers * lanes;
            let at = depth * column;
            panels.push(Panel { column, columns: wide.min(columns - column), registers, wide, at });
            column += wide;
            left -= registers;
        }
        let mut padded = Aligned::zeros(column);
        padded[..columns].copy_from_slice(bias);
        Self { columns, depth, panels, values, bias: padded }
    }

    /// The columns of the register that begins with `column`.
    pub(crate) fn register(&mut self, column: usize) -> Register<'_> {
        let i = self.panels.partition_point(|p| p.column <= column) - 1;
        let panel = self.panels[i];
        let within = column - panel.column;
        let columns = (panel.wide / panel.registers).min(panel.columns - within);
        // A matrix without depth is empty.
        let values = self.values.get_mut(panel.at + within..).unwrap_or_default();
        Register { values, wide: panel.wide, columns }
    }

    /// A panel's weights from depth `from` on.
    pub(crate) fn weights(&self, panel: &Panel, from: usize) -> &[f32] {
        &self.values[panel.at + from * panel.wide..panel.at + self.depth * panel.wide]
    }

    pub(crate) fn bias(&self, panel: &Panel) -> &[f32] {
        &self.bias[panel.column..panel.column + panel.wide]
    }

    pub(crate) fn bytes(&self) -> usize {
        4 * self.values.len()
    }
}

/// A matrix `[depth][columns]` in bf16, in panels of one or two tiles of columns.
#[derive(Clone, Debug)]
pub(crate) struct HalfPacked {
    pub runs: Vec<Run>,
    pub panels: Vec<HalfPanel>,
    values: Vec<u16>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct HalfPanel {
    pub column: usize,
    pub columns: usize,
    pub tiles: usize,
    at: usize,
}

impl HalfPacked {
    /// `matrix[k * columns + n]` with the depth in the order of the runs; each run's taps are filled up to whole tiles.
    pub(crate) fn new(columns: usize, runs: &[Run], matrix: &[f32]) -> Self {
        let (mut panels, mut values) = (Vec::new(), Vec::new());
        let mut column = 0;
        while column < columns {
            let tiles = (columns - column).div_ceil(SIDE).min(2);
            let at = values.len();
            let n = (tiles * SIDE).min(columns - column);
            panels.push(HalfPanel { column, columns: n, tiles, at });
            let mut depth = 0;
            for run in runs {
                for _ in 0..run.taps {
                    for from in (0..run.len).step_by(DEPTH) {
                        let len = DEPTH.min(run.len - from);
                        let chunk = values.len();
                        values.resize(chunk + tiles * TILE, 0);
                        for k in 0..len {
                            let row = &matrix[(depth + from + k) * columns + column..][..n];
                            for (j, v) in row.iter().enumerate() {
                                let tile = chunk + j / SIDE * TILE;
                                let to = tile + k / 2 * 2 * SIDE + j % SIDE * 2 + k % 2;
                                values[to] = bf16::from_f32(*v).to_bits();
                            }
                        }
                    }
                    depth += run.len;
                }
            }
            column += n;
        }
        Self { runs: runs.to_vec(), panels, values }
    }

    pub(crate) fn weights(&self, panel: &HalfPanel) -> &[u16] {
        &self.values[panel.at..]
    }

    pub(crate) fn bytes(&self) -> usize {
        2 * self.values.len()
    }
}
