//! Dense convolutions as products over rows of pixels.
//!
//! The values under a kernel's row are consecutive in memory, so a k x k kernel is k runs of k * c values per source
//! and nothing is copied. Sources are read where they are, however many there are. One that is enlarged twofold is
//! read small: of its nine taps an output meets four different pixels, and which depends on whether its row
//! and column are even. Maps too narrow for a tile are gathered first, many images side by side.

use crate::aligned::Aligned;
use crate::ir::{Act, Conv, Shape};
use crate::isa::half::{self, Half, Products};
use crate::isa::{Dots, Finish, Isa, Rows, Source, Start, Strided};
use crate::layout::Layout;
use crate::pack::{Along, HalfPacked, Packed, Run, matrix, parts};
use std::ops::Range;

/// Outputs up to this wide are gathered.
const NARROW: usize = 20;
/// Bytes of source that stay in the second-level cache while all panels pass.
const BLOCK: usize = 256 << 10;
/// Columns up to which a scalar product per output is faster than a register of columns.
const FEW: usize = 3;

/// A value and where its pixels are.
#[derive(Clone, Copy)]
pub(crate) struct Read<'a> {
    pub data: &'a [f32],
    pub layout: Layout,
}

/// A value to be written, and where its pixels are.
pub(crate) struct Write<'a> {
    pub data: &'a mut [f32],
    pub layout: Layout,
}

/// What a convolution reads.
#[derive(Clone, Copy)]
pub(crate) struct Inputs<'a, 'b> {
    pub sources: &'b [Read<'a>],
    /// Added to the result, where there is one.
    pub residual: Option<Read<'a>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Pixels of all images in one row: 1 x 1 without borders.
    Long,
    /// Row after row.
    Rows,
    /// Pixels copied side by side first.
    Gather,
    /// A scalar product per output.
    Dots,
}

/// Rows that are computed together in bf16: what they read is rounded once.
const HALF_ROWS: usize = 8;
/// Pixels that are computed together in bf16 where rows do not matter.
const HALF_PIXELS: usize = 256;

/// Weights of the outputs of one parity, or of one group.
#[derive(Debug)]
struct Part {
    runs: Vec<Vec<Run>>,
    weights: Weights,
}

#[derive(Debug)]
enum Weights {
    F32(Packed),
    /// Over all runs.
    Bf16(HalfPacked),
}

impl Part {
    fn packed(&self) -> &Packed {
        match &self.weights {
            Weights::F32(packed) => packed,
            Weights::Bf16(_) => unreachable!("planned for bf16"),
        }
    }

    fn half(&self) -> &HalfPacked {
        match &self.weights {
            Weights::Bf16(packed) => packed,
            Weights::F32(_) => unreachable!("planned for f32"),
        }
    }

    fn bytes(&self) -> usize {
        match &self.weights {
            Weights::F32(packed) => packed.bytes(),
            Weights::Bf16(packed) => packed.bytes(),
        }
    }
}

/// A thread's memory for convolutions.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    /// Pixels side by side, and the rows of a resize.
    pub gathered: Aligned,
    /// Sources in bf16.
    values: Vec<u16>,
    sums: Aligned,
}

impl Scratch {
    /// Transformed tiles, and their sums.
    pub(crate) fn tiles(&mut self) -> [&mut Aligned; 2] {
        [&mut self.gathered, &mut self.sums]
    }

    /// Room for so many pixels of one depth in bf16; what is read behind them is zero.
    fn rounded(&mut self, pixels: usize, depth: usize) -> &mut [u16] {
        let (n, slack) = (pixels * depth, 2 * half::SIDE * depth + half::DEPTH);
        if self.values.len() < n + slack {
            self.values.resize(n + slack, 0);
        }
        self.values[n..n + slack].fill(0);
        &mut self.values[..n]
    }
}

/// A convolution with its weights packed.
#[derive(Debug)]
pub(crate) struct Planned {
    mode: Mode,
    stride: [usize; 2],
    act: Act,
    up: Vec<bool>,
    /// One, one per group, or one per parity of row and column.
    parts: Vec<Part>,
    /// Weights of `Mode::Dots`.
    dots: Vec<f32>,
    bias: Vec<f32>,
    parity: bool,
    /// Whether the pixels of all images are one row already, for `Mode::Gather` in f32.
    gathered: bool,
    groups: usize,
    depth: usize,
    /// How bf16 is multiplied, where it is.
    half: Option<Half>,
}

/// A row of outputs: image, output row, first column, distance between columns, outputs.
#[derive(Clone, Copy)]
struct Line {
    image: usize,
    y: usize,
    x: usize,
    step: usize,
    pixels: usize,
}

impl Planned {
    /// Packs a convolution of `sources` whose values have the borders of `layouts`. Dense ones of more than a few
    /// columns are multiplied in bf16 where `half` is given.
    pub(crate) fn new(
        isa: Isa,
        half: Option<Half>,
        conv: &Conv,
        sources: &[Layout],
        residual: Option<Layout>,
        out: Layout,
    ) -> Self {
        let parity = conv.up.contains(&true);
        let [kh, kw] = conv.slide.kernel;
        let cin: usize = sources.iter().map(|s| s.c).sum();
        let (cout, groups) = (conv.bias.len(), conv.groups);
        let matrix = Matrix { conv, sources, cin: cin / groups };
        let variants: Vec<Vec<Run>> = if parity {
            (0..4).map(|p| matrix.parity_runs(p / 2, p % 2)).collect()
        } else {
            (0..groups).map(|g| matrix.runs(g)).collect()
        };
        let depth: usize = variants[0].iter().map(Run::depth).sum();
        let borders = sources.iter().chain(&residual).any(|s| s.pad > 0) || out.pad > 0;
        let point = conv.slide.is_point() && !parity && groups == 1;
        let mode = if groups > 1 || parity {
            Mode::Rows
        } else if cout <= FEW && depth >= isa.lanes() && out.w > 4 {
            Mode::Dots
        } else if point && sources.len() == 1 && !borders {
            Mode::Long
        } else if out.w <= NARROW && !(point && out.w.is_multiple_of(8)) {
            Mode::Gather
        } else {
            Mode::Rows
        };
        let half = half.filter(|_| mode != Mode::Dots && groups == 1);
        let columns = cout / groups;
        let mut packed = Vec::new();
        let mut dots = Vec::new();
        for (v, runs) in variants.iter().enumerate() {
            let (first, bias) = match groups > 1 {
                true => (v * columns, &conv.bias[v * columns..(v + 1) * columns]),
                false => (0, &*conv.bias),
            };
            let rows = matrix.values(runs, parity.then_some((v / 2, v % 2)), first, columns);
            if mode == Mode::Dots {
                dots = (0..columns)
                    .flat_map(|n| rows.iter().skip(n).step_by(columns))
                    .copied()
                    .collect();
            }
            let weights = match half {
                Some(_) => Weights::Bf16(HalfPacked::new(columns, runs, &rows)),
                None => Weights::F32(Packed::new(isa, columns, &rows, bias)),
            };
            packed.push(Part { runs: parts(runs), weights });
        }
        debug_assert!(kh * kw * cin / groups >= depth);
        Self {
            mode,
            stride: conv.slide.stride,
            act: conv.act,
            up: conv.up.clone(),
            parts: packed,
            dots,
            bias: conv.bias.clone(),
            parity,
            gathered: point && sources.len() == 1 && sources[0].pad == 0,
            groups,
            depth,
            half,
        }
    }

    /// Bytes of packed weights.
    pub(crate) fn bytes(&self) -> usize {
        self.parts.iter().map(Part::bytes).sum::<usize>() + 4 * self.dots.len()
    }

    /// How many of the inputs are sources; the next is the residual.
    pub(crate) fn sources(&self) -> usize {
        self.up.len()
    }

    /// Multiply-accumulates for one image.
    pub(crate) fn macs(&self, out: Shape) -> u64 {
        (self.depth * out.len()) as u64
    }

    /// Runs on so many images.
    pub(crate) fn run(
        &self,
        isa: Isa,
        Inputs { sources, residual }: Inputs<'_, '_>,
        Write { data: out, layout: ol }: Write<'_>,
        images: usize,
        scratch: &mut Scratch,
    ) {
        let mut call = Call { conv: self, isa, sources, residual, out, ol };
        match (self.mode, self.half) {
            (Mode::Long, Some(half)) => call.half_long(half, images, scratch),
            (Mode::Long, None) => call.long(images),
            (Mode::Gather, Some(half)) => call.half_gather(half, images, scratch),
            (Mode::Gather, None) => call.gather(images, &mut scratch.gathered),
            (Mode::Rows, Some(half)) => call.half_rows(half, images, scratch),
            (Mode::Rows, None) => call.rows(images),
            (Mode::Dots, _) => call.dots(images),
        }
    }
}

/// The weights of a convolution as a matrix.
struct Matrix<'a> {
    conv: &'a Conv,
    sources: &'a [Layout],
    /// Input channels of a group.
    cin: usize,
}

impl Matrix<'_> {
    fn runs(&self, group: usize) -> Vec<Run> {
        let slide = &self.conv.slide;
        let [kh, kw] = slide.kernel;
        let (top, left) = (-(slide.pads[0] as isize), -(slide.pads[1] as isize));
        let mut all = Vec::new();
        for (source, layout) in self.sources.iter().enumerate() {
            if self.conv.groups == 1 && slide.dilation[1] == 1 {
                let along = Along::Rows(slide.dilation[0]);
                let len = kw * layout.c;
                all.push(Run { source, dy: top, dx: left, taps: kh, along, from: 0, len });
                continue;
            }
            let (from, len) = match self.conv.groups {
                1 => (0, layout.c),
                _ => (group * self.cin, self.cin),
            };
            let along = Along::Pixels(slide.dilation[1]);
            for ky in 0..kh {
                let dy = top + (ky * slide.dilation[0]) as isize;
                all.push(Run { source, dy, dx: left, taps: kw, along, from, len });
            }
        }
        all
    }

    /// 3 x 3 for outputs whose row and column leave `py` and `px` when halved.
    fn parity_runs(&self, py: usize, px: usize) -> Vec<Run> {
        let along = Along::Rows(1);
        let all = self.sources.iter().zip(&self.conv.up).enumerate();
        let run = |(source, (layout, up)): (usize, (&Layout, &bool))| match up {
            true => {
                let (dy, dx) = (py as isize - 1, px as isize - 1);
                Run { source, dy, dx, taps: 2, along, from: 0, len: 2 * layout.c }
            }
            false => Run { source, dy: -1, dx: -1, taps: 3, along, from: 0, len: 3 * layout.c },
        };
        all.map(run).collect()
    }

    /// `[depth][columns]` in the order of the runs, of the outputs from `first` on.
    fn values(
        &self,
        runs: &[Run],
        parity: Option<(usize, usize)>,
        first: usize,
        columns: usize,
    ) -> Vec<f32> {
        let [kh, kw] = self.conv.slide.kernel;
        let grouped = self.conv.groups > 1;
        let before: Vec<usize> = self
            .sources
            .iter()
            .scan(0, |sum, s| Some(std::mem::replace(sum, *sum + s.c)))
            .collect();
        // Row and column of the kernel (of a source that is enlarged, of its small pixels), channel, and the parity of
        // what is enlarged.
        let mut taps = Vec::new();
        for run in runs {
            let width = self.sources[run.source].c;
            for tap in 0..run.taps {
                for v in 0..run.len {
                    let (row, column, channel) = match run.along {
                        Along::Rows(_) => (tap, v / width, before[run.source] + v % width),
                        Along::Pixels(_) => {
                            let top = -(self.conv.slide.pads[0] as isize);
                            let ky = (run.dy - top) as usize / self.conv.slide.dilation[0].max(1);
                            let channel = if grouped { v } else { before[run.source] + v };
                            (ky, tap, channel)
                        }
                    };
                    taps.push((row, column, channel, parity.filter(|_| self.conv.up[run.source])));
                }
            }
        }
        matrix(taps.len(), columns, |k, n| {
            let (row, column, channel, up) = taps[k];
            let filter = ((first + n) * self.cin + channel) * kh * kw;
            let at = |ky: usize, kx: usize| self.conv.weight[filter + ky * kw + kx];
            match up {
                None => at(row, column),
                // Taps of the kernel that meet the same small pixel are added.
                Some((py, px)) => {
                    let mut sum = 0.0;
                    for ky in met(py, row) {
                        for kx in met(px, column) {
                            sum += f64::from(at(ky, kx));
                        }
                    }
                    sum as f32
                }
            }
        })
    }
}

/// Which of three taps meet the first or second small pixel, for even and odd outputs.
fn met(parity: usize, small: usize) -> Range<usize> {
    match (parity, small) {
        (0, 0) => 0..1,
        (0, _) => 1..3,
        (_, 0) => 0..2,
        _ => 2..3,
    }
}

/// Where the results of some pixels go, and what is added to them.
#[derive(Clone, Copy)]
struct Target<'a, 'b> {
    residual: Option<Strided<'a>>,
    at: usize,
    step: usize,
    /// Distances of outputs and of residuals where they are not regular.
    places: Option<(&'b [u32], &'b [u32])>,
}

struct Call<'a, 'b> {
    conv: &'b Planned,
    isa: Isa,
    sources: &'b [Read<'a>],
    residual: Option<Read<'a>>,
    out: &'b mut [f32],
    ol: Layout,
}

impl<'a> Call<'a, '_> {
    /// A run's values for a line.
    fn source(&self, run: &Run, line: &Line) -> Source<'a> {
        let Read { data, layout } = self.sources[run.source];
        let [sy, sx] = self.conv.stride;
        let up = self.conv.up[run.source];
        let (y, x, step) = match (self.conv.parity, up) {
            (true, true) => (line.y / 2, 0, 1),
            (true, false) => (line.y, line.x, line.step),
            _ => (line.y * sy, line.x * sx, line.step * sx),
        };
        Source {
            data,
            at: layout.at(line.image, y as isize + run.dy, x as isize + run.dx) + run.from,
            pixel: step * layout.c,
            tap: match run.along {
                Along::Rows(n) => n * layout.row(),
                Along::Pixels(n) => n * layout.c,
            },
            taps: run.taps,
            len: run.len,
        }
    }

    fn line_residual(&self, line: &Line) -> Option<Strided<'a>> {
        self.residual.map(|Read { data, layout }| Strided {
            data,
            at: layout.at(line.image, line.y as isize, line.x as isize),
            step: line.step * layout.c,
        })
    }

    /// All panels of a part over some lines; the columns go from `column` on.
    fn product(&mut self, part: &Part, lines: &[Line], column: usize) {
        let clamp = self.conv.act.clamp;
        let mut sources: Vec<Source<'a>> = Vec::new();
        let mut starts = Vec::new();
        for runs in &part.runs {
            starts.push(sources.len());
            for line in lines {
                sources.extend(runs.iter().map(|run| self.source(run, line)));
            }
        }
        let packed = part.packed();
        for panel in &packed.panels {
            let mut from = 0;
            for (p, runs) in part.runs.iter().enumerate() {
                let last = p + 1 == part.runs.len();
                for (l, line) in lines.iter().enumerate() {
                    let first = starts[p] + l * runs.len();
                    let n = column + panel.column;
                    let residual = self.line_residual(line).filter(|_| last);
                    self.isa.rows(Rows {
                        sources: &sources[first..first + runs.len()],
                        pixels: line.pixels,
                        weights: packed.weights(panel, from),
                        registers: panel.registers,
                        columns: panel.columns,
                        start: match p {
                            0 => Start::Bias(packed.bias(panel)),
                            _ => Start::Sums,
                        },
                        clamp: if last { clamp } else { crate::isa::Clamp::NONE },
                        residual: residual.map(|r| r.after(n)),
                        residual_places: None,
                        out_at: self.ol.at(line.image, line.y as isize, line.x as isize) + n,
                        out_step: line.step * self.ol.c,
                        out: self.out,
                        places: None,
                    });
                }
                from += runs.iter().map(Run::depth).sum::<usize>();
            }
        }
    }

    fn then(&mut self, from: usize, len: usize) {
        if let Some(f) = self.conv.act.then {
            self.isa.map(f, &mut self.out[from..from + len]);
        }
    }

    fn rows(&mut self, images: usize) {
        let conv = self.conv;
        let row_bytes: usize =
            self.sources.iter().map(|s| 4 * s.layout.row() * conv.stride[0]).sum();
        // Few weights stay in the cache by themselves.
        let weights: usize = conv.parts.iter().map(Part::bytes).sum();
        let together = match weights {
            w if w <= BLOCK => 2,
            _ => (BLOCK / row_bytes.max(1)).clamp(2, 32),
        };
        let (h, w) = (self.ol.h, self.ol.w);
        for image in 0..images {
            let mut y = 0;
            while y < h {
                let ys = y..(y + together).min(h);
                if conv.parity {
                    for (p, part) in conv.parts.iter().enumerate() {
                        let (py, px) = (p / 2, p % 2);
                        let pixels = (w + 1 - px) / 2;
                        let line = |y| Line { image, y, x: px, step: 2, pixels };
                        let lines: Vec<Line> =
                            ys.clone().filter(|y| y % 2 == py).map(line).collect();
                        self.product(part, &lines, 0);
                    }
                } else {
                    let line = |y| Line { image, y, x: 0, step: 1, pixels: w };
                    let lines: Vec<Line> = ys.clone().map(line).collect();
                    for (g, part) in conv.parts.iter().enumerate() {
                        let column = if conv.groups > 1 { g * part.packed().columns } else { 0 };
                        self.product(part, &lines, column);
                    }
                }
                for y in ys.clone() {
                    self.then(self.ol.at(image, y as isize, 0), w * self.ol.c);
                }
                y = ys.end;
            }
        }
    }

    /// The lines of some rows for each part: its parity, or all.
    fn lines(&self, image: usize, ys: Range<usize>) -> Vec<Vec<Line>> {
        let w = self.ol.w;
        let part_lines = |p: usize| match self.conv.parity {
            true => {
                let (py, x) = (p / 2, p % 2);
                let line = |y| Line { image, y, x, step: 2, pixels: (w + 1 - x) / 2 };
                ys.clone().filter(|y| y % 2 == py).map(line).collect()
            }
            false => ys.clone().map(|y| Line { image, y, x: 0, step: 1, pixels: w }).collect(),
        };
        (0..self.conv.parts.len()).map(part_lines).collect()
    }

    fn half_rows(&mut self, half: Half, images: usize, scratch: &mut Scratch) {
        let conv = self.conv;
        let (h, w) = (self.ol.h, self.ol.w);
        for image in 0..images {
            for y in (0..h).step_by(HALF_ROWS) {
                let ys = y..(y + HALF_ROWS).min(h);
                let lines = self.lines(image, ys.clone());
                let moved = self.rounded(half, &lines, &mut scratch.values);
                for (part, lines) in conv.parts.iter().zip(&lines) {
                    for line in lines {
                        self.half_line(part, line, &moved, scratch);
                    }
                }
                for y in ys {
                    self.then(self.ol.at(image, y as isize, 0), w * self.ol.c);
                }
            }
        }
    }

    /// Rounds what some lines read of each source, and returns by how much each source's places move.
    fn rounded(&self, half: Half, lines: &[Vec<Line>], to: &mut Vec<u16>) -> Vec<isize> {
        let mut ranges = vec![(usize::MAX, 0, 0); self.sources.len()];
        for (part, lines) in self.conv.parts.iter().zip(lines) {
            for line in lines {
                for run in &part.half().runs {
                    let s = self.source(run, line);
                    let last = (line.pixels.max(1) - 1) * s.pixel + (s.taps - 1) * s.tap + s.len;
                    let (first, end, slack) = &mut ranges[run.source];
                    *first = s.at.min(*first);
                    *end = (s.at + last).max(*end);
                    // Pixels up to whole tiles, and depth up to a whole tile.
                    *slack = (2 * half::SIDE * s.pixel + half::DEPTH).max(*slack);
                }
            }
        }
        let mut from = 0;
        let mut moved = Vec::with_capacity(ranges.len());
        for ((first, end, slack), source) in ranges.into_iter().zip(self.sources) {
            let first = first.min(end);
            let n = end - first;
            if to.len() < from + n + slack {
                to.resize(from + n + slack, 0);
            }
            half.round(&source.data[first..end], &mut to[from..from + n]);
            to[from + n..from + n + slack].fill(0);
            moved.push(from as isize - first as isize);
            from += n + slack;
        }
        moved
    }

    /// All panels of a part over a line, in bf16.
    fn half_line(&mut self, part: &Part, line: &Line, moved: &[isize], scratch: &mut Scratch) {
        let place = |run: &Run| {
            let s = self.source(run, line);
            let at = s.at.wrapping_add_signed(moved[run.source]);
            half::Source { at, pixel: s.pixel, tap: s.tap, taps: s.taps, len: s.len }
        };
        let sources: Vec<half::Source> = part.half().runs.iter().map(place).collect();
        let residual = self.line_residual(line);
        let at = self.ol.at(line.image, line.y as isize, line.x as isize);
        let target = Target { residual, at, step: line.step * self.ol.c, places: None };
        self.half_block(part, &sources, line.pixels, target, scratch);
    }

    /// All panels of a part over pixels whose sources were rounded.
    fn half_block(
        &mut self,
        part: &Part,
        sources: &[half::Source],
        pixels: usize,
        target: Target<'_, '_>,
        scratch: &mut Scratch,
    ) {
        let (packed, half) = (part.half(), self.conv.half.expect("planned for bf16"));
        for panel in &packed.panels {
            let wide = panel.tiles * half::SIDE;
            let n = Products::computed(pixels) * wide;
            scratch.sums.grow(n);
            half.products(Products {
                values: &scratch.values,
                sources,
                pixels,
                weights: packed.weights(panel),
                tiles: panel.tiles,
                sums: &mut scratch.sums,
            });
            let (column, columns) = (panel.column, panel.columns);
            self.isa.finish(Finish {
                sums: &scratch.sums,
                wide,
                bias: &self.conv.bias[column..column + columns],
                clamp: self.conv.act.clamp,
                residual: target.residual.map(|r| r.after(column)),
                residual_places: target.places.map(|p| p.1),
                pixels,
                out: self.out,
                out_at: target.at + column,
                out_step: target.step,
                places: target.places.map(|p| p.0),
            });
        }
    }

    /// As [`Self::long`], in bf16.
    fn half_long(&mut self, half: Half, images: usize, scratch: &mut Scratch) {
        let conv = self.conv;
        let (Read { data, layout: Layout { c, .. } }, step) = (self.sources[0], self.ol.c);
        let all = images * self.ol.h * self.ol.w;
        let sources = [half::Source { at: 0, pixel: c, tap: 0, taps: 1, len: c }];
        for first in (0..all).step_by(HALF_PIXELS) {
            let pixels = HALF_PIXELS.min(all - first);
            let values = scratch.rounded(pixels, c);
            half.round(&data[first * c..(first + pixels) * c], values);
            let at = first * step;
            let residual = self.residual.map(|r| Strided { data: r.data, at, step });
            let target = Target { residual, at, step, places: None };
            self.half_block(&conv.parts[0], &sources, pixels, target, scratch);
            self.then(at, pixels * step);
        }
    }

    /// As [`Self::gather`], in bf16.
    fn half_gather(&mut self, half: Half, images: usize, scratch: &mut Scratch) {
        let (part, depth) = (&self.conv.parts[0], self.conv.depth);
        let source = |at: &mut usize, run: &Run| {
            let from = *at;
            *at += run.depth();
            let (taps, len) = (run.taps, run.len);
            Some(half::Source { at: from, pixel: depth, tap: len, taps, len })
        };
        let sources: Vec<half::Source> = part.half().runs.iter().scan(0, source).collect();
        let all = images * self.ol.h * self.ol.w;
        let (mut places, mut others) = (Vec::new(), Vec::new());
        for first in (0..all).step_by(HALF_PIXELS) {
            let pixels = first..all.min(first + HALF_PIXELS);
            let values = scratch.rounded(pixels.len(), depth);
            let round = |from: &[f32], to: &mut [u16]| half.round(from, to);
            self.gathered(&pixels, values, round);
            self.places(&pixels, [&mut places, &mut others]);
            let residual = self.residual.map(|r| Strided { data: r.data, at: 0, step: 0 });
            let target = Target { residual, at: 0, step: 0, places: Some((&places, &others)) };
            self.half_block(part, &sources, pixels.len(), target, scratch);
            self.activate_places(&places);
        }
    }

    fn dots(&mut self, images: usize) {
        let conv = self.conv;
        for image in 0..images {
            for y in 0..self.ol.h {
                let line = Line { image, y, x: 0, step: 1, pixels: self.ol.w };
                let runs = conv.parts[0].runs.iter().flatten();
                let sources: Vec<Source<'a>> = runs.map(|r| self.source(r, &line)).collect();
                let at = self.ol.at(image, y as isize, 0);
                self.isa.dots(Dots {
                    sources: &sources,
                    pixels: line.pixels,
                    weights: &conv.dots,
                    depth: conv.depth,
                    columns: conv.bias.len(),
                    bias: &conv.bias,
                    clamp: conv.act.clamp,
                    residual: self.line_residual(&line),
                    out: self.out,
                    out_at: at,
                    out_step: self.ol.c,
                });
                self.then(at, self.ol.w * self.ol.c);
            }
        }
    }

    /// Pixels of all images as one row.
    fn long(&mut self, images: usize) {
        let conv = self.conv;
        let Read { data, layout } = self.sources[0];
        let all = images * self.ol.h * self.ol.w;
        let chunk = (BLOCK / (4 * layout.c)).clamp(48, 1536) / 48 * 48;
        let part = &conv.parts[0];
        let mut first = 0;
        while first < all {
            let pixels = chunk.min(all - first);
            let (at, step) = (first * self.ol.c, self.ol.c);
            let residual = self.residual.map(|r| Strided { data: r.data, at, step });
            let source = Strided { data, at: first * layout.c, step: layout.c };
            self.block(part, first..first + pixels, source, residual, None);
            self.then(first * self.ol.c, pixels * self.ol.c);
            first += pixels;
        }
    }

    /// All panels over pixels whose depth is consecutive in memory.
    fn block(
        &mut self,
        part: &Part,
        pixels: Range<usize>,
        source: Strided<'_>,
        residual: Option<Strided<'_>>,
        places: Option<(&[u32], &[u32])>,
    ) {
        let clamp = self.conv.act.clamp;
        let packed = part.packed();
        for panel in &packed.panels {
            let mut from = 0;
            for (p, runs) in part.runs.iter().enumerate() {
                let last = p + 1 == part.runs.len();
                let len = runs.iter().map(Run::depth).sum::<usize>();
                let Strided { data, at, step: pixel } = source;
                let source = Source { data, at: at + from, pixel, tap: 0, taps: 1, len };
                let base = if places.is_some() { 0 } else { pixels.start * self.ol.c };
                self.isa.rows(Rows {
                    sources: &[source],
                    pixels: pixels.len(),
                    weights: packed.weights(panel, from),
                    registers: panel.registers,
                    columns: panel.columns,
                    start: match p {
                        0 => Start::Bias(packed.bias(panel)),
                        _ => Start::Sums,
                    },
                    clamp: if last { clamp } else { crate::isa::Clamp::NONE },
                    residual: residual.filter(|_| last).map(|r| r.after(panel.column)),
                    residual_places: places.map(|p| p.1),
                    out: self.out,
                    out_at: base + panel.column,
                    out_step: self.ol.c,
                    places: places.map(|p| p.0),
                });
                from += len;
            }
        }
    }

    /// Pixels copied side by side, all images in one row.
    fn gather(&mut self, images: usize, scratch: &mut Aligned) {
        let (part, depth) = (&self.conv.parts[0], self.conv.depth);
        let all = images * self.ol.h * self.ol.w;
        let chunk = (BLOCK / (4 * depth)).clamp(48, 1536) / 48 * 48;
        if !self.conv.gathered {
            scratch.grow(chunk.min(all) * depth);
        }
        let (mut places, mut others) = (Vec::new(), Vec::new());
        for first in (0..all).step_by(chunk) {
            let pixels = first..all.min(first + chunk);
            let residual = self.residual.map(|r| Strided { data: r.data, at: 0, step: 0 });
            self.places(&pixels, [&mut places, &mut others]);
            let source = if self.conv.gathered {
                Strided { data: self.sources[0].data, at: first * depth, step: depth }
            } else {
                self.gathered(&pixels, scratch, |from, to| to.copy_from_slice(from));
                Strided { data: scratch, at: 0, step: depth }
            };
            self.block(part, 0..pixels.len(), source, residual, Some((&places, &others)));
            self.activate_places(&places);
        }
    }

    /// Copies what each of some pixels reads side by side.
    fn gathered<T>(&self, pixels: &Range<usize>, to: &mut [T], copy: impl Fn(&[f32], &mut [T])) {
        let conv = self.conv;
        let (h, w) = (self.ol.h, self.ol.w);
        for (i, to) in pixels.clone().zip(to.chunks_exact_mut(conv.depth)) {
            let line = Line { image: i / (h * w), y: i / w % h, x: i % w, step: 1, pixels: 1 };
            let mut done = 0;
            for run in conv.parts[0].runs.iter().flatten() {
                let s = self.source(run, &line);
                for t in 0..s.taps {
                    let from = s.at + t * s.tap;
                    copy(&s.data[from..from + s.len], &mut to[done..done + s.len]);
                    done += s.len;
                }
            }
        }
    }

    /// Where the outputs and the residuals of some pixels are.
    fn places(&self, pixels: &Range<usize>, [places, others]: [&mut Vec<u32>; 2]) {
        let (h, w) = (self.ol.h, self.ol.w);
        let place = |layout: &Layout, i: usize| {
            let at = layout.at(i / (h * w), (i / w % h) as isize, (i % w) as isize);
            u32::try_from(at).expect("plans bound buffers")
        };
        places.clear();
        others.clear();
        places.extend(pixels.clone().map(|i| place(&self.ol, i)));
        if let Some(r) = self.residual {
            others.extend(pixels.clone().map(|i| place(&r.layout, i)));
        }
    }

    fn activate_places(&mut self, places: &[u32]) {
        if self.conv.act.then.is_some() {
            for at in places {
                self.then(*at as usize, self.ol.c);
            }
        }
    }
}
