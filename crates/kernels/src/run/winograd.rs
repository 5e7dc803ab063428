//! Dense 3 x 3 convolutions by Winograd's F(2 x 2, 3 x 3): 16 products per channel for four outputs in place of 36.
//!
//! Outputs go in tiles of 2 x 2. The 4 x 4 pixels `d` that a tile reads and the kernel `g` are transformed, multiplied
//! position by position and summed over the channels, and transformed back (Lavin and Gray, 2016):
//! `A' [(G g G') * (B' d B)] A`. Each of the 16 positions is a product of two matrices, tiles by channels and channels
//! by outputs. Of a source that is enlarged twofold the rows and columns of `d` are `a, b, b, c`: a row and a column of
//! `B' d B` are zero, and 9 products are left of 16.

use super::conv::{Inputs, Read, Write};
use crate::ir::{Act, Conv, Shape};
use crate::isa::{Clamp, InputTiles, Isa, OutputTiles, POSITIONS, Rows, Source, Start, kept};
use crate::layout::Layout;
use crate::pack::Packed;
use std::ops::Range;

/// Bytes of transformed tiles that stay in the second-level cache.
const BLOCK: usize = 384 << 10;
/// Depth of one part of a product.
const PART: usize = 400;
/// Channels below which transforming costs more than it saves.
const LEAST: usize = 8;

/// A convolution with its weights transformed and packed.
#[derive(Debug)]
pub(crate) struct Planned {
    isa: Isa,
    /// One per position: channels by outputs. Where sources are enlarged, some have fewer channels than others.
    products: Vec<Packed>,
    up: Vec<bool>,
    bias: Vec<f32>,
    act: Act,
    /// Tiles that are transformed together.
    block: usize,
}

/// Tiles of one row of tiles: image, row, first column, how many, and how many of the block come before.
struct Line {
    image: usize,
    y: usize,
    x: usize,
    tiles: usize,
    before: usize,
}

impl Planned {
    /// Packs a convolution of `sources`, or nothing where it has another kernel, a side of the output is odd, or there
    /// are too few channels.
    pub(crate) fn new(isa: Isa, conv: &Conv, sources: &[Layout], out: Layout) -> Option<Self> {
        let (cin, cout) = (sources.iter().map(|s| s.c).sum::<usize>(), conv.bias.len());
        let fits = conv.slide.square() == Some((3, 1))
            && conv.groups == 1
            && cin.min(cout) >= LEAST
            && out.h.is_multiple_of(2)
            && out.w.is_multiple_of(2);
        if !fits {
            return None;
        }
        let nothing = vec![0.0; cout];
        let pack = |rows: Vec<f32>| Packed::new(isa, cout, &rows, &nothing);
        let products = matrices(conv, sources).into_iter().map(pack).collect();
        let block = BLOCK / (4 * POSITIONS * (cin + cout));
        Some(Self {
            isa,
            products,
            up: conv.up.clone(),
            bias: conv.bias.clone(),
            act: conv.act,
            block: block.next_multiple_of(8).clamp(32, 256),
        })
    }

    /// Bytes of packed weights.
    pub(crate) fn bytes(&self) -> usize {
        self.products.iter().map(Packed::bytes).sum()
    }

    /// How many of the inputs are sources; the next is the residual.
    pub(crate) fn sources(&self) -> usize {
        self.up.len()
    }

    /// Multiply-accumulates of the products for one image.
    pub(crate) fn macs(&self, out: Shape) -> u64 {
        let depth: usize = self.products.iter().map(|p| p.depth).sum();
        (depth * self.bias.len() * (out.h / 2) * (out.w / 2)) as u64
    }

    /// Runs on so many images.
    pub(crate) fn run(
        &self,
        Inputs { sources, residual }: Inputs<'_, '_>,
        mut out: Write<'_>,
        images: usize,
        [spread, sums]: [&mut Vec<f32>; 2],
    ) {
        let all = images * (out.layout.h / 2) * (out.layout.w / 2);
        let (depth, cout) = (self.products.iter().map(|p| p.depth).sum::<usize>(), self.bias.len());
        let most = self.block.min(all);
        grow(spread, most * depth);
        grow(sums, most * POSITIONS * cout);
        for first in (0..all).step_by(self.block) {
            let tiles = first..all.min(first + self.block);
            let lines = lines(&tiles, out.layout);
            self.spread(sources, &lines, tiles.len(), spread);
            self.multiply(tiles.len(), spread, sums);
            for line in &lines {
                self.collect(line, tiles.len(), sums, residual, &mut out);
            }
        }
    }

    /// Where the tiles of each position begin in a block of so many.
    fn places(&self, tiles: usize) -> [usize; POSITIONS] {
        let mut at = 0;
        std::array::from_fn(|p| {
            let next = at + tiles * self.products[p].depth;
            std::mem::replace(&mut at, next)
        })
    }

    /// `B' d B` of every tile, `[position][tile][channel]`.
    fn spread(&self, sources: &[Read<'_>], lines: &[Line], tiles: usize, to: &mut [f32]) {
        let places = self.places(tiles);
        let mut channel = [0; POSITIONS];
        for (Read { data, layout }, up) in sources.iter().zip(&self.up) {
            for line in lines {
                let side = if *up { 1 } else { 2 };
                let (y, x) = ((line.y * side) as isize - 1, (line.x * side) as isize - 1);
                let steps = std::array::from_fn(|p| self.products[p].depth);
                self.isa.input_tiles(InputTiles {
                    data,
                    at: layout.at(line.image, y, x),
                    row: layout.row(),
                    channels: layout.c,
                    enlarged: *up,
                    tiles: line.tiles,
                    out: to,
                    places: std::array::from_fn(|p| {
                        places[p] + line.before * steps[p] + channel[p]
                    }),
                    steps,
                });
            }
            for (p, c) in channel.iter_mut().enumerate().filter(|(p, _)| !up || kept(*p)) {
                debug_assert!(*c + layout.c <= self.products[p].depth);
                *c += layout.c;
            }
        }
    }

    /// The sums of every position over the channels, `[position][tile][output]`.
    fn multiply(&self, tiles: usize, spread: &[f32], sums: &mut [f32]) {
        let (places, cout) = (self.places(tiles), self.bias.len());
        for (p, packed) in self.products.iter().enumerate() {
            for panel in &packed.panels {
                for from in (0..packed.depth.max(1)).step_by(PART) {
                    let len = PART.min(packed.depth - from);
                    let at = places[p] + from;
                    let source =
                        Source { data: spread, at, pixel: packed.depth, tap: 0, taps: 1, len };
                    self.isa.rows(Rows {
                        sources: &[source],
                        pixels: tiles,
                        weights: packed.weights(panel, from),
                        registers: panel.registers,
                        columns: panel.columns,
                        start: match from {
                            0 => Start::Bias(packed.bias(panel)),
                            _ => Start::Sums,
                        },
                        clamp: Clamp::NONE,
                        residual: None,
                        residual_places: None,
                        out: sums,
                        out_at: p * tiles * cout + panel.column,
                        out_step: cout,
                        places: None,
                    });
                }
            }
        }
    }

    /// `A' m A` of the tiles of a line, and what follows the sums.
    fn collect(
        &self,
        line: &Line,
        tiles: usize,
        sums: &[f32],
        residual: Option<Read<'_>>,
        Write { data: out, layout: ol }: &mut Write<'_>,
    ) {
        let cout = self.bias.len();
        let (y, x) = ((2 * line.y) as isize, (2 * line.x) as isize);
        let at = ol.at(line.image, y, x);
        self.isa.output_tiles(OutputTiles {
            sums,
            at: line.before * cout,
            position: tiles * cout,
            bias: &self.bias,
            clamp: self.act.clamp,
            residual: residual.map(|r| (r.data, r.layout.at(line.image, y, x), r.layout.row())),
            tiles: line.tiles,
            out,
            out_at: at,
            out_row: ol.row(),
        });
        if let Some(f) = self.act.then {
            for at in [at, at + ol.row()] {
                self.isa.map(f, &mut out[at..at + 2 * line.tiles * cout]);
            }
        }
    }
}

/// At least so long; what is in it does not matter.
fn grow(values: &mut Vec<f32>, n: usize) {
    if values.len() < n {
        values.resize(n, 0.0);
    }
}

/// A block's tiles by their rows; tiles are counted along rows, rows along images.
fn lines(tiles: &Range<usize>, out: Layout) -> Vec<Line> {
    let (h, w) = (out.h / 2, out.w / 2);
    let mut all = Vec::new();
    let mut at = tiles.start;
    while at < tiles.end {
        let x = at % w;
        let n = (w - x).min(tiles.end - at);
        let before = at - tiles.start;
        all.push(Line { image: at / (h * w), y: at / w % h, x, tiles: n, before });
        at += n;
    }
    all
}

/// `G` for pixels as they are.
const PLAIN: [[f64; 3]; 4] = [[1.0, 0.0, 0.0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0.0, 0.0, 1.0]];
/// `G` for pixels that are enlarged: of `a - b, 2 b, 0, b - c` the second row takes the factor.
const ENLARGED: [[f64; 3]; 4] = [[1.0, 0.0, 0.0], [1.0, 1.0, 1.0], [0.0; 3], [0.0, 0.0, 1.0]];

/// `G g G'` of all kernels: for each position `[channel][output]` of the channels that it has.
fn matrices(conv: &Conv, sources: &[Layout]) -> Vec<Vec<f32>> {
    let (cin, cout) = (sources.iter().map(|s| s.c).sum::<usize>(), conv.bias.len());
    let mut all = vec![Vec::new(); POSITIONS];
    let mut first = 0;
    for (source, up) in sources.iter().zip(&conv.up) {
        let g = if *up { ENLARGED } else { PLAIN };
        let before: Vec<usize> = all.iter().map(Vec::len).collect();
        for (p, matrix) in all.iter_mut().enumerate().filter(|(p, _)| !up || kept(*p)) {
            matrix.resize(before[p] + source.c * cout, 0.0);
        }
        for c in 0..source.c {
            for n in 0..cout {
                let kernel = &conv.weight[(n * cin + first + c) * 9..][..9];
                let rows: [[f64; 3]; 4] = std::array::from_fn(|i| {
                    std::array::from_fn(|b| {
                        (0..3).map(|a| g[i][a] * f64::from(kernel[3 * a + b])).sum()
                    })
                });
                for (p, matrix) in all.iter_mut().enumerate().filter(|(p, _)| !up || kept(*p)) {
                    let v: f64 = (0..3).map(|b| rows[p / 4][b] * g[p % 4][b]).sum();
                    matrix[before[p] + c * cout + n] = v as f32;
                }
            }
        }
        first += source.c;
    }
    all
}
