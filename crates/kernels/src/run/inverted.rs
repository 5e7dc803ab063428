//! Filters per channel, alone and between an expansion and a projection.
//!
//! The expanded value is six times as wide as its neighbours and never whole in memory. On large maps a ring holds
//! the few expanded rows under the filter; on small maps, whose weights are larger than their rows, a block
//! of the expanded channels is taken through all three steps for the whole map before the next.

use super::conv::{Read, Write};
use crate::aligned::Aligned;
use crate::ir::{Conv, Depthwise, Inverted, Shape};
use crate::isa::{Clamp, Depthwise as Row, Isa, Rows, Source, Start, Strided};
use crate::layout::Layout;
use crate::pack::{Packed, matrix};

/// Expanded rows up to this wide are taken by blocks of channels.
const SMALL: usize = 40;
/// Expanded channels of a block.
const BLOCK: usize = 96;

/// A filter's weights as `[kernel][kernel][channel]`.
#[derive(Debug)]
pub(crate) struct Filter {
    kernel: usize,
    stride: usize,
    weights: Aligned,
    bias: Aligned,
    act: crate::ir::Act,
}

impl Filter {
    /// Of the channels from `first` on.
    fn new(d: &Depthwise, first: usize, channels: usize) -> Self {
        let (kernel, stride) = d.slide.square().expect("others are dense convolutions");
        let taps = kernel * kernel;
        let at = |tap: usize, c: usize| d.weight[(first + c) * taps + tap];
        let weights = (0..taps).flat_map(|tap| (0..channels).map(move |c| (tap, c)));
        Self {
            kernel,
            stride,
            weights: Aligned::copied(&weights.map(|(tap, c)| at(tap, c)).collect::<Vec<_>>()),
            bias: Aligned::copied(&d.bias[first..first + channels]),
            act: d.act,
        }
    }

    fn row(&self, isa: Isa, rows: &[&[f32]], pixels: usize, out: &mut [f32]) {
        let channels = self.bias.len();
        isa.depthwise(Row {
            rows,
            channels,
            kernel: self.kernel,
            stride: self.stride,
            weights: &self.weights,
            bias: &self.bias,
            clamp: self.act.clamp,
            pixels,
            out,
        });
        if let Some(f) = self.act.then {
            isa.map(f, &mut out[..pixels * channels]);
        }
    }
}

/// A filter of its own.
#[derive(Debug)]
pub(crate) struct Alone(Filter);

impl Alone {
    pub(crate) fn new(d: &Depthwise) -> Self {
        Self(Filter::new(d, 0, d.bias.len()))
    }

    pub(crate) fn macs(&self, out: Shape) -> u64 {
        (self.0.kernel * self.0.kernel * out.len()) as u64
    }

    pub(crate) fn run(
        &self,
        isa: Isa,
        x: Read<'_>,
        Write { data: out, layout: ol }: Write<'_>,
        images: usize,
    ) {
        let (k, pad) = (self.0.kernel, (self.0.kernel / 2) as isize);
        for image in 0..images {
            for y in 0..ol.h {
                let top = (y * self.0.stride) as isize - pad;
                let rows: Vec<&[f32]> = (0..k as isize)
                    .map(|ky| &x.data[x.layout.at(image, top + ky, -pad)..])
                    .collect();
                self.0.row(isa, &rows, ol.w, ol.inner_mut(out, image, y));
            }
        }
    }
}

/// A product with one row of weights per input channel.
#[derive(Debug)]
struct Point {
    packed: Packed,
    act: crate::ir::Act,
}

/// Some pixels: values, index of the first, distance between two, and how many.
#[derive(Clone, Copy)]
struct Pixels<'a> {
    data: &'a [f32],
    at: usize,
    step: usize,
    count: usize,
}

/// Where some pixels are written: index of the first, and distance between two.
struct Target<'a> {
    data: &'a mut [f32],
    at: usize,
    step: usize,
}

/// What an inverted residual reads.
#[derive(Clone, Copy)]
pub(crate) struct Inputs<'a> {
    pub x: Read<'a>,
    /// Added to the result, where there is one.
    pub residual: Option<Read<'a>>,
}

impl Point {
    /// Of the outputs `columns` and the inputs `depth`.
    fn new(
        isa: Isa,
        c: &Conv,
        columns: std::ops::Range<usize>,
        depth: std::ops::Range<usize>,
    ) -> Self {
        let cin = c.weight.len() / c.bias.len();
        let at = |k: usize, n: usize| c.weight[(columns.start + n) * cin + depth.start + k];
        let matrix = matrix(depth.len(), columns.len(), at);
        let packed = Packed::new(isa, columns.len(), &matrix, &c.bias[columns]);
        Self { packed, act: c.act }
    }

    /// Products of `x` into `to`; they start from what is there where `adds`, and are finished where `ends`.
    fn run(
        &self,
        isa: Isa,
        x: Pixels<'_>,
        Target { data: out, at: to, step }: Target<'_>,
        residual: Option<Pixels<'_>>,
        (adds, ends): (bool, bool),
    ) {
        let source = Source {
            data: x.data,
            at: x.at,
            pixel: x.step,
            tap: 0,
            taps: 1,
            len: self.packed.depth,
        };
        for panel in &self.packed.panels {
            isa.rows(Rows {
                sources: &[source],
                pixels: x.count,
                weights: self.packed.weights(panel, 0),
                registers: panel.registers,
                columns: panel.columns,
                start: if adds { Start::Sums } else { Start::Bias(self.packed.bias(panel)) },
                clamp: if ends { self.act.clamp } else { Clamp::NONE },
                residual: residual.map(|Pixels { data, at, step, .. }| {
                    Strided { data, at, step }.after(panel.column)
                }),
                residual_places: None,
                out,
                out_at: to + panel.column,
                out_step: step,
                places: None,
            });
        }
        if let (Some(f), true) = (self.act.then, ends) {
            let columns = self.packed.columns;
            if step == columns {
                isa.map(f, &mut out[to..to + x.count * step]);
            } else {
                (0..x.count).for_each(|i| isa.map(f, &mut out[to + i * step..][..columns]));
            }
        }
    }
}

/// Expansion, filter and projection of some channels.
#[derive(Debug)]
struct Block {
    expand: Option<Point>,
    filter: Filter,
    project: Point,
}

/// An inverted residual with its weights packed: one block, or several of some channels each.
#[derive(Debug)]
pub(crate) struct Planned {
    blocks: Vec<Block>,
    small: bool,
    width: usize,
    depth: (usize, usize, usize),
}

/// Scratch memory of a run.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    ring: Aligned,
    filtered: Aligned,
}

impl Planned {
    pub(crate) fn new(isa: Isa, i: &Inverted, input: Layout) -> Self {
        let wide = i.filter.bias.len();
        let small = i.expand.is_some() && input.w <= SMALL && input.h <= SMALL;
        let width = if small { BLOCK.min(wide) } else { wide };
        let cout = i.project.bias.len();
        let blocks = (0..wide).step_by(width).map(|first| {
            let channels = first..(first + width).min(wide);
            let expand = |c: &Conv| Point::new(isa, c, channels.clone(), 0..input.c);
            Block {
                expand: i.expand.as_ref().map(expand),
                filter: Filter::new(&i.filter, first, channels.len()),
                project: Point::new(isa, &i.project, 0..cout, channels.clone()),
            }
        });
        let taps = i.filter.slide.kernel[0] * i.filter.slide.kernel[1];
        let expanded = i.expand.as_ref().map_or(0, |c| c.weight.len());
        Self { blocks: blocks.collect(), small, width, depth: (expanded, taps * wide, wide * cout) }
    }

    pub(crate) fn bytes(&self) -> usize {
        let bytes = |b: &Block| {
            b.expand.as_ref().map_or(0, |e| e.packed.bytes())
                + b.project.packed.bytes()
                + 4 * b.filter.weights.len()
        };
        self.blocks.iter().map(bytes).sum()
    }

    pub(crate) fn macs(&self, input: Shape, out: Shape) -> u64 {
        let (expand, filter, project) = self.depth;
        (expand * input.h * input.w + (filter + project) * out.h * out.w) as u64
    }

    pub(crate) fn run(
        &self,
        isa: Isa,
        inputs: Inputs<'_>,
        out: Write<'_>,
        images: usize,
        scratch: &mut Scratch,
    ) {
        if self.small {
            self.by_channels(isa, inputs, out, images, scratch);
        } else {
            self.by_rows(isa, inputs, out, images, scratch);
        }
    }

    fn by_rows(
        &self,
        isa: Isa,
        Inputs { x, residual }: Inputs<'_>,
        Write { data: out, layout: ol }: Write<'_>,
        images: usize,
        scratch: &mut Scratch,
    ) {
        let Block { expand, filter, project } = &self.blocks[0];
        let (k, wide, l) = (filter.kernel, self.width, x.layout);
        let pad = k / 2;
        let length = (l.w + 2 * pad) * wide;
        if expand.is_some() {
            scratch.ring.grow((k + 1) * length);
            // The last row of the ring is the zeros above and below the map.
            let (rows, rest) = scratch.ring.split_at_mut(k * length);
            for row in rows.chunks_exact_mut(length) {
                row[..pad * wide].fill(0.0);
                row[length - pad * wide..].fill(0.0);
            }
            rest[..length].fill(0.0);
        }
        scratch.filtered.grow(ol.w * wide);
        for image in 0..images {
            let mut next = 0;
            for y in 0..ol.h {
                let top = (y * filter.stride) as isize - pad as isize;
                if let Some(expand) = expand {
                    let end = (top + k as isize).clamp(0, l.h as isize) as usize;
                    while next < end {
                        let at = l.at(image, next as isize, 0);
                        let pixels = Pixels { data: x.data, at, step: l.c, count: l.w };
                        let to = next % k * length + pad * wide;
                        expand.run(
                            isa,
                            pixels,
                            Target { data: &mut scratch.ring, at: to, step: wide },
                            None,
                            (false, true),
                        );
                        next += 1;
                    }
                }
                let rows: Vec<&[f32]> = (0..k as isize)
                    .map(|ky| top + ky)
                    .map(|row| match expand {
                        None => &x.data[l.at(image, row, -(pad as isize))..],
                        Some(_) if row < 0 || row >= l.h as isize => &scratch.ring[k * length..],
                        Some(_) => &scratch.ring[row as usize % k * length..],
                    })
                    .collect();
                filter.row(isa, &rows, ol.w, &mut scratch.filtered);
                let pixels = Pixels { data: &scratch.filtered, at: 0, step: wide, count: ol.w };
                let to = ol.at(image, y as isize, 0);
                let residual = residual.map(|r| line(r, image, y));
                project.run(
                    isa,
                    pixels,
                    Target { data: out, at: to, step: ol.c },
                    residual,
                    (false, true),
                );
            }
        }
    }

    fn by_channels(
        &self,
        isa: Isa,
        Inputs { x, residual }: Inputs<'_>,
        Write { data: out, layout: ol }: Write<'_>,
        images: usize,
        scratch: &mut Scratch,
    ) {
        let l = x.layout;
        let kernel = self.blocks[0].filter.kernel;
        let pad = kernel / 2;
        // Without borders rows follow one another, and tiles need not end with them.
        let flat = ol.pad == 0 && residual.is_none_or(|r| r.layout.pad == 0);
        for (b, block) in self.blocks.iter().enumerate() {
            let Block { expand: Some(expand), filter, project } = block else {
                unreachable!("small maps have an expansion");
            };
            let wide = filter.bias.len();
            let inner = Layout { c: wide, h: l.h, w: l.w, pad };
            scratch.ring.grow(inner.image());
            scratch.filtered.grow(ol.h * ol.w * wide);
            // The border's position depends on the block's width; nothing else is written there.
            if b == 0 || wide != self.blocks[b - 1].filter.bias.len() {
                inner.clear_border(&mut scratch.ring, 1);
            }
            let (adds, ends) = (b > 0, b + 1 == self.blocks.len());
            for image in 0..images {
                for y in 0..l.h {
                    let at = l.at(image, y as isize, 0);
                    let pixels = Pixels { data: x.data, at, step: l.c, count: l.w };
                    let to = inner.at(0, y as isize, 0);
                    expand.run(
                        isa,
                        pixels,
                        Target { data: &mut scratch.ring, at: to, step: wide },
                        None,
                        (false, true),
                    );
                }
                for y in 0..ol.h {
                    let top = (y * filter.stride) as isize - pad as isize;
                    let row = |ky| &scratch.ring[inner.at(0, top + ky, -(pad as isize))..];
                    let rows: Vec<&[f32]> = (0..kernel as isize).map(row).collect();
                    filter.row(isa, &rows, ol.w, &mut scratch.filtered[y * ol.w * wide..]);
                }
                let residual = residual.filter(|_| ends);
                let lines = if flat { 1 } else { ol.h };
                for y in 0..lines {
                    let count = ol.h * ol.w / lines;
                    let pixels =
                        Pixels { data: &scratch.filtered, at: y * count * wide, step: wide, count };
                    let residual = residual.map(|r| Pixels { count, ..line(r, image, y) });
                    let to = ol.at(image, y as isize, 0);
                    project.run(
                        isa,
                        pixels,
                        Target { data: out, at: to, step: ol.c },
                        residual,
                        (adds, ends),
                    );
                }
            }
        }
    }
}

/// A row of a value.
fn line(r: Read<'_>, image: usize, y: usize) -> Pixels<'_> {
    Pixels {
        data: r.data,
        at: r.layout.at(image, y as isize, 0),
        step: r.layout.c,
        count: r.layout.w,
    }
}
