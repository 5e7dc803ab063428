//! Overlapping windows averaged into final pixel rows, without a canvas.
//!
//! Windows come row by row. Only what later windows still need is kept: the right strip of the last
//! window and the bottom strips of the last two rows of windows. A pixel's probabilities are added
//! in row-major order of their windows and divided by their number, so its average depends on
//! nothing but the windows that cover it. Single points take the highest instead of the mean.

use crate::grid::{Frame, Grid, WindowAt};
use crate::recipe::Overlap;
use mitosis::ProbMap;
use std::collections::BTreeMap;

/// Takes averaged pixels as they become final.
pub(crate) trait Sink {
    /// Pixels `x..` of row `y`. Within one cell row, spans of a pixel row come from left to right;
    /// pixels that no window covers are left out.
    fn span(&mut self, x: u32, y: u32, values: &[f32]);
    /// All pixels of rows `[from, to)` have been given; called for every row of the frame, in order.
    fn rows_done(&mut self, from: u32, to: u32);
}

/// Stitching under way.
pub(crate) struct Stitcher {
    grid: Grid,
    overlap: Overlap,
    frame: Frame,
    /// Row of cells now being filled.
    row: u32,
    /// First column whose cell in this row is not finished.
    col: u32,
    /// Last window of this row.
    last: Option<(u32, ProbMap)>,
    /// Bottom strips, `overlap` rows of `window` pixels, of the row of windows above.
    above: BTreeMap<u32, Vec<f32>>,
    /// The same of this row.
    below: BTreeMap<u32, Vec<f32>>,
    averaged: Vec<f32>,
}

impl Stitcher {
    /// Starts at the row of windows `row`; the row above can be given by [`Stitcher::prime`].
    pub(crate) fn new(grid: Grid, overlap: Overlap, frame: Frame, row: u32) -> Self {
        Self {
            grid,
            overlap,
            frame,
            row,
            col: 0,
            last: None,
            above: BTreeMap::new(),
            below: BTreeMap::new(),
            averaged: Vec::new(),
        }
    }

    /// A window of the row above the first, whose own cell is already done.
    pub(crate) fn prime(&mut self, col: u32, map: &ProbMap) {
        self.above.insert(col, self.bottom(map));
    }

    /// The next window, in row-major order. Windows that could not be read are left out.
    pub(crate) fn push(&mut self, at: WindowAt, map: ProbMap, sink: &mut impl Sink) {
        self.close_rows(at.row, sink);
        self.fill_until(at.col, sink);
        self.below.insert(at.col, self.bottom(&map));
        self.cell(at.col, Some(&map), sink);
        self.col = at.col + 1;
        self.last = Some((at.col, map));
    }

    /// No window of a row before `row` will come any more.
    pub(crate) fn close_rows(&mut self, row: u32, sink: &mut impl Sink) {
        while self.row < row {
            let from = self.row.saturating_mul(self.grid.stride()).min(self.frame.height);
            if from == self.frame.height {
                return;
            }
            self.fill_until(u32::MAX, sink);
            sink.rows_done(from, from.saturating_add(self.grid.stride()).min(self.frame.height));
            self.above = std::mem::take(&mut self.below);
            self.last = None;
            self.col = 0;
            self.row += 1;
        }
    }

    /// No more windows: every row of the frame is final.
    pub(crate) fn finish(mut self, sink: &mut impl Sink) {
        self.close_rows(u32::MAX, sink);
    }

    fn bottom(&self, map: &ProbMap) -> Vec<f32> {
        map.data[(self.grid.stride() * self.grid.window()) as usize..].to_vec()
    }

    /// Cells before `col` without a window of their own that neighbours reach into.
    fn fill_until(&mut self, col: u32, sink: &mut impl Sink) {
        if self.grid.overlap() == 0 {
            return;
        }
        let mut cells: Vec<u32> = self
            .above
            .range(self.col.saturating_sub(1)..col)
            .flat_map(|(&c, _)| [c, c + 1])
            .collect();
        cells.extend(self.last.as_ref().map(|l| l.0 + 1));
        cells.retain(|&c| c >= self.col && c < col);
        cells.sort_unstable();
        cells.dedup();
        for c in cells {
            self.cell(c, None, sink);
        }
    }

    /// Averages cell (self.row, `col`) from the up to four windows that reach into it.
    fn cell(&mut self, col: u32, own: Option<&ProbMap>, sink: &mut impl Sink) {
        let (window, stride) = (self.grid.window() as usize, self.grid.stride() as usize);
        let overlap = self.grid.overlap() as usize;
        let (x0, y0) = (col * self.grid.stride(), self.row * self.grid.stride());
        let width = stride.min(self.frame.width.saturating_sub(x0) as usize);
        let height = stride.min(self.frame.height.saturating_sub(y0) as usize);
        let join = match self.overlap {
            Overlap::Mean => mean,
            Overlap::Highest => highest,
        };
        let before = col.checked_sub(1);
        let upper_left = before.and_then(|c| self.above.get(&c));
        let upper = self.above.get(&col);
        let left = self.last.as_ref().filter(|l| Some(l.0) == before).map(|l| &l.1.data);
        let mut averaged = std::mem::take(&mut self.averaged);
        for y in 0..height {
            // Row-major order of the windows: upper left, upper, left, own.
            let in_strip = y < overlap;
            let row = |start: usize| start + y * window;
            let upper_left = upper_left.filter(|_| in_strip).map(|s| &s[row(stride)..row(window)]);
            let upper = upper.filter(|_| in_strip).map(|s| &s[row(0)..row(window)]);
            let left = left.map(|m| &m[row(stride)..row(window)]);
            let own = own.map(|m| &m.data[row(0)..row(window)]);
            let seam = overlap.min(width);
            averaged.clear();
            let near = [upper_left, upper, left, own];
            join(&mut near.iter().flatten().map(|s| &s[..seam]), &mut averaged);
            let reached = averaged.len();
            let far = [upper, own];
            let n = join(&mut far.iter().flatten().map(|s| &s[seam..width]), &mut averaged);
            // One span where both parts exist, else the part that does.
            if reached == 0 && n > 0 {
                sink.span(x0 + seam as u32, y0 + y as u32, &averaged);
            } else if !averaged.is_empty() {
                sink.span(x0, y0 + y as u32, &averaged);
            }
        }
        self.averaged = averaged;
    }
}

/// Appends the mean of equally long slices, added in order; returns how many there were.
fn mean(slices: &mut dyn Iterator<Item = &[f32]>, out: &mut Vec<f32>) -> usize {
    let Some(first) = slices.next() else { return 0 };
    let from = out.len();
    out.extend_from_slice(first);
    let mut n = 1;
    for slice in slices {
        out[from..].iter_mut().zip(slice).for_each(|(sum, p)| *sum += p);
        n += 1;
    }
    if n > 1 {
        out[from..].iter_mut().for_each(|sum| *sum /= n as f32);
    }
    n
}

/// Appends the highest of equally long slices; returns how many there were.
fn highest(slices: &mut dyn Iterator<Item = &[f32]>, out: &mut Vec<f32>) -> usize {
    let from = out.len();
    let mut n = 0;
    for slice in slices {
        match n {
            0 => out.extend_from_slice(slice),
            _ => out[from..].iter_mut().zip(slice).for_each(|(m, p)| *m = m.max(*p)),
        }
        n += 1;
    }
    n
}

/// Joins all windows of a frame into one probability map: the whole-image form of what the
/// pipeline does as a stream, with the same bits. Pixels that no window covers are 0.
///
/// # Panics
/// When the windows are not in ascending row-major order or a map is not of the window's size.
#[must_use]
pub fn stitch(
    grid: Grid,
    overlap: Overlap,
    frame: Frame,
    windows: impl IntoIterator<Item = (WindowAt, ProbMap)>,
) -> ProbMap {
    struct Canvas(ProbMap);
    impl Sink for Canvas {
        fn span(&mut self, x: u32, y: u32, values: &[f32]) {
            let at = y as usize * self.0.width + x as usize;
            self.0.data[at..at + values.len()].copy_from_slice(values);
        }
        fn rows_done(&mut self, _: u32, _: u32) {}
    }
    let (width, height) = (frame.width as usize, frame.height as usize);
    let mut canvas = Canvas(ProbMap { width, height, data: vec![0.0; width * height] });
    let mut stitcher = Stitcher::new(grid, overlap, frame, 0);
    let mut before = None;
    for (at, map) in windows {
        assert!(before < Some(at), "window {at:?} after {before:?}: not in row-major order");
        let side = grid.window() as usize;
        assert_eq!((map.width, map.height, map.data.len()), (side, side, side * side));
        before = Some(at);
        stitcher.push(at, map, &mut canvas);
    }
    stitcher.finish(&mut canvas);
    canvas.0
}

#[cfg(test)]
mod tests;
