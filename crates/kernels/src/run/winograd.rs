//! Dense 3 x 3 convolutions by Winograd's F(4 x 4, 3 x 3), 36 products per channel for sixteen outputs in place of 144,
//! by F(3 x 3, 3 x 3), 25 for nine in place of 81, or by F(2 x 2, 3 x 3), 16 for four in place of 36.
//!
//! Outputs go in tiles. The pixels `d` that a tile reads, two more on a side, and the kernel `g` are transformed,
//! multiplied position by position and summed over the channels, and transformed back (Lavin and Gray, 2016):
//! `A' [(G g G') * (B' d B)] A`. Each position is a product of two matrices, tiles by channels and channels by outputs.
//! Of a source that is enlarged twofold the rows and columns of `d` are `a, b, b, c` (`a, b, b, c, c, d`): a row and
//! a column of `B' d B` are zero, and 9 products are left of 16, 25 of 36. The points of F(4 x 4), 0, 1, -1, 3/2 and
//! -3/2, are those with the least error of all that leave these zeros.

use super::conv::{Inputs, Read, Write};
use crate::aligned::Aligned;
use crate::ir::{Act, Conv, Shape};
use crate::isa::{Clamp, InputTiles, Isa, OutputTiles, Rows, Source, Start, Strided, Tile};
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
    tile: Tile,
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

/// The largest tile that an output of these sources is whole of; none where the kernel is another or there are too few
/// channels.
pub(crate) fn fit(conv: &Conv, sources: &[Layout], out: Layout) -> Option<Tile> {
    let (cin, cout) = (sources.iter().map(|s| s.c).sum::<usize>(), conv.bias.len());
    let fits = conv.slide.square() == Some((3, 1)) && conv.groups == 1 && cin.min(cout) >= LEAST;
    let whole = |t: &Tile| {
        let enlarged = *t == Tile::Three && conv.up.contains(&true);
        !enlarged && out.h.is_multiple_of(t.side()) && out.w.is_multiple_of(t.side())
    };
    [Tile::Four, Tile::Three, Tile::Two].into_iter().filter(|_| fits).find(whole)
}

impl Planned {
    /// Packs a convolution of `sources` by a tile that [`fit`] gave.
    pub(crate) fn new(isa: Isa, tile: Tile, conv: &Conv, sources: &[Layout]) -> Self {
        let (cin, cout) = (sources.iter().map(|s| s.c).sum::<usize>(), conv.bias.len());
        let products = transformed(isa, tile, conv, sources);
        let block = BLOCK / (4 * tile.positions() * (cin + cout));
        Self {
            isa,
            tile,
            products,
            up: conv.up.clone(),
            bias: conv.bias.clone(),
            act: conv.act,
            block: block.next_multiple_of(8).clamp(16, 256),
        }
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
        (depth * self.bias.len() * self.tiles(out.h, out.w)) as u64
    }

    /// Tiles of one image.
    fn tiles(&self, h: usize, w: usize) -> usize {
        (h / self.tile.side()) * (w / self.tile.side())
    }

    /// Runs on so many images.
    pub(crate) fn run(
        &self,
        Inputs { sources, residual }: Inputs<'_, '_>,
        mut out: Write<'_>,
        images: usize,
        [spread, sums]: [&mut Aligned; 2],
    ) {
        let all = images * self.tiles(out.layout.h, out.layout.w);
        let (depth, cout) = (self.products.iter().map(|p| p.depth).sum::<usize>(), self.bias.len());
        // Nearly equal blocks: each reads all weights.
        let blocks = ((all + self.block / 2) / self.block).max(1);
        let most = all.div_ceil(blocks);
        spread.grow(most * depth);
        sums.grow(most * self.tile.positions() * cout);
        for first in (0..all).step_by(most.max(1)) {
            let tiles = first..all.min(first + most);
            let lines = lines(self.tile, &tiles, out.layout);
            self.spread(sources, &lines, tiles.len(), spread);
            self.multiply(tiles.len(), spread, sums);
            for line in &lines {
                self.collect(line, tiles.len(), sums, residual, &mut out);
            }
        }
    }

    /// Where the tiles of each position begin in a block of so many.
    fn places(&self, tiles: usize) -> Vec<usize> {
        let next = |at: &mut usize, p: &Packed| Some(std::mem::replace(at, *at + tiles * p.depth));
        self.products.iter().scan(0, next).collect()
    }

    /// `B' d B` of every tile, `[position][tile][channel]`.
    fn spread(&self, sources: &[Read<'_>], lines: &[Line], tiles: usize, to: &mut [f32]) {
        let places = self.places(tiles);
        let steps: Vec<usize> = self.products.iter().map(|p| p.depth).collect();
        let mut channel = vec![0; places.len()];
        let mut own = places.clone();
        for (Read { data, layout }, up) in sources.iter().zip(&self.up) {
            for line in lines {
                let side = if *up { self.tile.side() / 2 } else { self.tile.side() };
                let (y, x) = ((line.y * side) as isize - 1, (line.x * side) as isize - 1);
                for (p, own) in own.iter_mut().enumerate() {
                    *own = places[p] + line.before * steps[p] + channel[p];
                }
                self.isa.input_tiles(InputTiles {
                    tile: self.tile,
                    data,
                    at: layout.at(line.image, y, x),
                    row: layout.row(),
                    channels: layout.c,
                    enlarged: *up,
                    tiles: line.tiles,
                    out: to,
                    places: &own,
                    steps: &steps,
                });
            }
            let kept = |p: &usize| !up || self.tile.kept(*p);
            for (p, c) in channel.iter_mut().enumerate().filter(|(p, _)| kept(p)) {
                debug_assert!(*c + layout.c <= steps[p]);
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
        let side = self.tile.side();
        let (y, x) = ((side * line.y) as isize, (side * line.x) as isize);
        let at = ol.at(line.image, y, x);
        self.isa.output_tiles(OutputTiles {
            tile: self.tile,
            sums,
            at: line.before * cout,
            position: tiles * cout,
            bias: &self.bias,
            clamp: self.act.clamp,
            residual: residual.map(|r| Strided {
                data: r.data,
                at: r.layout.at(line.image, y, x),
                step: r.layout.row(),
            }),
            tiles: line.tiles,
            out,
            out_at: at,
            out_row: ol.row(),
        });
        if let Some(f) = self.act.then {
            for at in (0..side).map(|y| at + y * ol.row()) {
                self.isa.map(f, &mut out[at..at + side * line.tiles * cout]);
            }
        }
    }
}

/// A block's tiles by their rows; tiles are counted along rows, rows along images.
fn lines(tile: Tile, tiles: &Range<usize>, out: Layout) -> Vec<Line> {
    let (h, w) = (out.h / tile.side(), out.w / tile.side());
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

/// `G`: powers of the points 0, 1, -1 (and 2, or 3/2 and -3/2) and infinity, each over the product of its distances to
/// the others.
fn kernel_transform(tile: Tile) -> &'static [[f64; 3]] {
    match tile {
        Tile::Two => &[[1.0, 0.0, 0.0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0.0, 0.0, 1.0]],
        Tile::Three => &[
            [0.5, 0.0, 0.0],
            [-0.5, -0.5, -0.5],
            [-1.0 / 6.0, 1.0 / 6.0, -1.0 / 6.0],
            [1.0 / 6.0, 2.0 / 6.0, 4.0 / 6.0],
            [0.0, 0.0, 1.0],
        ],
        Tile::Four => &[
            [4.0 / 9.0, 0.0, 0.0],
            [-0.4, -0.4, -0.4],
            [-0.4, 0.4, -0.4],
            [8.0 / 45.0, 12.0 / 45.0, 18.0 / 45.0],
            [8.0 / 45.0, -12.0 / 45.0, 18.0 / 45.0],
            [0.0, 0.0, 1.0],
        ],
    }
}

/// Of an enlarged source, by what a transformed row is a multiple of what `isa` computes.
fn enlarged_factors(tile: Tile) -> &'static [f64] {
    match tile {
        Tile::Two => &[1.0, 2.0, 0.0, 1.0],
        Tile::Three => &[],
        Tile::Four => &[1.0, 2.0, 0.0, 2.5, -0.5, 1.0],
    }
}

/// `G g G'` of all kernels: for each position a matrix, channels by outputs, of the channels that it has. A register's
/// outputs are transformed together.
fn transformed(isa: Isa, tile: Tile, conv: &Conv, sources: &[Layout]) -> Vec<Packed> {
    const LANES: usize = 16;
    let (cin, cout) = (sources.iter().map(|s| s.c).sum::<usize>(), conv.bias.len());
    let (g, reach, lanes) = (kernel_transform(tile), tile.reach(), isa.lanes().min(LANES));
    let has = |up: bool, p: usize| !up || tile.kept(p);
    let depth = |p: usize| {
        let of = sources.iter().zip(&conv.up).filter(|(_, up)| has(**up, p));
        of.map(|(source, _)| source.c).sum::<usize>()
    };
    let nothing = vec![0.0; cout];
    let mut all: Vec<Packed> =
        (0..tile.positions()).map(|p| Packed::zeros(isa, [depth(p), cout], &nothing)).collect();
    for n in (0..cout).step_by(lanes) {
        let mut registers: Vec<_> = all.iter_mut().map(|packed| (packed.register(n), 0)).collect();
        let (some, mut channel) = (lanes.min(cout - n), 0);
        for (source, up) in sources.iter().zip(&conv.up) {
            let factor = |i: usize| if *up { enlarged_factors(tile)[i] } else { 1.0 };
            for _ in 0..source.c {
                let mut kernels = [[0.0; LANES]; 9];
                for lane in 0..some {
                    let kernel = &conv.weight[((n + lane) * cin + channel) * 9..][..9];
                    kernels.iter_mut().zip(kernel).for_each(|(k, v)| k[lane] = f64::from(*v));
                }
                let mut rows = [[[0.0; LANES]; 3]; 6];
                for (row, g) in rows.iter_mut().zip(g) {
                    for (b, row) in row.iter_mut().enumerate() {
                        let column = [0, 1, 2].map(|a| &kernels[3 * a + b]);
                        *row = sums(*g, column);
                    }
                }
                let kept = registers.iter_mut().enumerate().filter(|(p, _)| has(*up, *p));
                for (p, (register, k)) in kept {
                    let (i, j) = (p / reach, p % reach);
                    let values = sums(g[j], rows[i].each_ref());
                    let to = register.row(*k).iter_mut();
                    to.zip(values).for_each(|(to, v)| *to = (v * factor(i) * factor(j)) as f32);
                    *k += 1;
                }
                channel += 1;
            }
        }
    }
    all
}

/// The sum of three rows by their weights.
fn sums<const N: usize>([a, b, c]: [f64; 3], [x, y, z]: [&[f64; N]; 3]) -> [f64; N] {
    std::array::from_fn(|i| a * x[i] + b * y[i] + c * z[i])
}
