//! Register kernels behind checked calls: the only place of this crate with `unsafe`.
//!
//! A call is a struct of slices and distances. [`Isa`] checks every address that it leads to against its slice, then
//! runs the kernel of its instruction set. The kernels are in [`generic`], written once over [`vector::Vector`].

mod func;
mod generic;
pub(crate) mod half;
mod sets;
mod vector;

pub(crate) use func::{Func, exp, limit};

use std::fmt;
use std::str::FromStr;

/// An instruction set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Isa {
    /// Nothing but what the compiler takes for granted.
    Plain,
    /// ARM's 128-bit registers.
    Neon,
    /// AVX2 with FMA.
    Avx2,
    /// AVX-512 F.
    Avx512,
}

/// The kernel of an instruction set.
macro_rules! on_set {
    ($isa:expr, $kernel:ident($($argument:expr),+)) => {
        match $isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => sets::avx512::$kernel($($argument),+),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => sets::avx2::$kernel($($argument),+),
            #[cfg(target_arch = "aarch64")]
            Isa::Neon => sets::neon::$kernel($($argument),+),
            _ => sets::plain::$kernel($($argument),+),
        }
    };
}

impl Isa {
    /// The sets that this processor has, the widest first; [`Isa::Plain`] is always among them.
    #[must_use]
    pub fn available() -> Vec<Self> {
        let mut all = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = std::arch::is_x86_feature_detected!("avx2")
                && std::arch::is_x86_feature_detected!("fma");
            if avx2 && std::arch::is_x86_feature_detected!("avx512f") {
                all.push(Self::Avx512);
            }
            if avx2 {
                all.push(Self::Avx2);
            }
        }
        #[cfg(target_arch = "aarch64")]
        all.push(Self::Neon);
        all.push(Self::Plain);
        all
    }

    /// The widest that this processor has.
    #[must_use]
    pub fn best() -> Self {
        Self::available()[0]
    }

    /// f32 per register.
    pub(crate) fn lanes(self) -> usize {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => sets::avx512::LANES,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => sets::avx2::LANES,
            #[cfg(target_arch = "aarch64")]
            Self::Neon => sets::neon::LANES,
            _ => sets::plain::LANES,
        }
    }

    /// Most registers of columns in a tile.
    pub(crate) fn widest(self) -> usize {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => sets::avx512::WIDEST,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => sets::avx2::WIDEST,
            #[cfg(target_arch = "aarch64")]
            Self::Neon => sets::neon::WIDEST,
            _ => sets::plain::WIDEST,
        }
    }

    fn assert_available(self) {
        debug_assert!(Self::available().contains(&self));
    }

    /// Products of a row of pixels.
    pub(crate) fn rows(self, mut r: Rows<'_>) {
        self.assert_available();
        r.check(self);
        // SAFETY: an `Isa` other than `Plain` comes from `available` alone (`Network::plan` refuses others), and
        // `check` has bounded every address.
        unsafe { on_set!(self, rows(&mut r)) }
    }

    /// One filter per channel along a row.
    pub(crate) fn depthwise(self, mut d: Depthwise<'_>) {
        self.assert_available();
        d.check();
        // SAFETY: as for `rows`.
        unsafe { on_set!(self, depthwise(&mut d)) }
    }

    /// Scalar products of a row of pixels, for few columns.
    pub(crate) fn dots(self, mut d: Dots<'_>) {
        self.assert_available();
        d.check();
        // SAFETY: as for `rows`.
        unsafe { on_set!(self, dots(&mut d)) }
    }

    /// Tiles of pixels, transformed.
    pub(crate) fn input_tiles(self, mut t: InputTiles<'_>) {
        self.assert_available();
        t.check();
        // SAFETY: as for `rows`.
        unsafe { on_set!(self, input_tiles(&mut t)) }
    }

    /// Tiles of outputs, transformed back.
    pub(crate) fn output_tiles(self, mut t: OutputTiles<'_>) {
        self.assert_available();
        t.check();
        // SAFETY: as for `rows`.
        unsafe { on_set!(self, output_tiles(&mut t)) }
    }

    /// Sums to outputs: bias, residual, limits.
    pub(crate) fn finish(self, mut f: Finish<'_>) {
        self.assert_available();
        // SAFETY: the extensions are there, as for `rows`; the function itself is safe.
        unsafe { on_set!(self, finish(&mut f)) }
    }

    /// A function of every value.
    pub(crate) fn map(self, f: Func, values: &mut [f32]) {
        self.assert_available();
        // SAFETY: the extensions are there, as for `rows`; the functions themselves are safe.
        unsafe { on_set!(self, map(f, values)) }
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Plain => "plain",
            Self::Neon => "neon",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        })
    }
}

impl FromStr for Isa {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        [Self::Plain, Self::Neon, Self::Avx2, Self::Avx512]
            .into_iter()
            .find(|isa| isa.to_string() == s)
            .ok_or_else(|| format!("`{s}` is not an instruction set: plain, neon, avx2, avx512"))
    }
}

/// Lower and upper limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Clamp {
    pub low: f32,
    pub high: f32,
}

impl Clamp {
    pub(crate) const NONE: Self = Self { low: f32::NEG_INFINITY, high: f32::INFINITY };
    pub(crate) const RELU: Self = Self { low: 0.0, high: f32::INFINITY };
}

/// Values that a row of outputs is multiplied from: for output `x` and tap `t` the `len` values from
/// `at + x * pixel + t * tap` on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source<'a> {
    pub data: &'a [f32],
    pub at: usize,
    pub pixel: usize,
    pub tap: usize,
    pub taps: usize,
    pub len: usize,
}

impl Source<'_> {
    fn depth(&self) -> usize {
        self.taps * self.len
    }

    fn check(&self, pixels: usize) {
        if pixels == 0 || self.depth() == 0 {
            return;
        }
        let last = self.at + (pixels - 1) * self.pixel + (self.taps - 1) * self.tap + self.len;
        assert!(last <= self.data.len(), "a source ends at {last} of {}", self.data.len());
    }
}

/// What the sums start from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Start<'a> {
    /// These, one per column, filled up to whole registers.
    Bias(&'a [f32]),
    /// What is in the output: the depth before this part.
    Sums,
}

/// `out[x][n] = clamp(start + sum over depth of source[x][k] * weights[k][n] + residual[x][n])` for the columns of
/// one panel.
#[derive(Debug)]
pub(crate) struct Rows<'a> {
    pub sources: &'a [Source<'a>],
    pub pixels: usize,
    /// `[depth][registers * lanes]`.
    pub weights: &'a [f32],
    /// Registers of columns.
    pub registers: usize,
    /// Columns that are written, the last register perhaps in part.
    pub columns: usize,
    pub start: Start<'a>,
    pub clamp: Clamp,
    /// Values, where the first pixel's begin, and the distance between pixels.
    pub residual: Option<(&'a [f32], usize, usize)>,
    /// Distances from there where they are not regular, one per pixel.
    pub residual_places: Option<&'a [u32]>,
    pub out: &'a mut [f32],
    pub out_at: usize,
    pub out_step: usize,
    /// As for the residual.
    pub places: Option<&'a [u32]>,
}

impl Rows<'_> {
    fn check(&self, isa: Isa) {
        let lanes = isa.lanes();
        let wide = self.registers * lanes;
        assert!((1..=isa.widest()).contains(&self.registers));
        assert!(self.columns <= wide && self.columns > wide - lanes, "{} columns", self.columns);
        let depth: usize = self.sources.iter().map(Source::depth).sum();
        assert!(self.weights.len() >= depth * wide, "weights of a panel");
        if let Start::Bias(bias) = self.start {
            assert!(bias.len() >= wide, "bias of a panel");
        }
        if self.pixels == 0 {
            return;
        }
        self.sources.iter().for_each(|s| s.check(self.pixels));
        let far = |places: Option<&[u32]>, step: usize| match places {
            None => (self.pixels - 1) * step,
            Some(p) => {
                assert!(p.len() >= self.pixels, "places of pixels");
                p[..self.pixels].iter().max().map_or(0, |m| *m as usize)
            }
        };
        let end = self.out_at + far(self.places, self.out_step) + self.columns;
        assert!(end <= self.out.len(), "an output ends at {end} of {}", self.out.len());
        if let Some((data, at, step)) = self.residual {
            let end = at + far(self.residual_places, step) + self.columns;
            assert!(end <= data.len(), "a residual ends at {end} of {}", data.len());
        }
    }
}

/// `out[x][c] = clamp(bias[c] + sum over the window of rows[ky][x * stride + kx][c] * weights[ky][kx][c])`.
#[derive(Debug)]
pub(crate) struct Depthwise<'a> {
    /// `kernel` rows, each from the first tap of the first output on.
    pub rows: &'a [&'a [f32]],
    pub channels: usize,
    pub kernel: usize,
    pub stride: usize,
    /// `[kernel][kernel][channels]`.
    pub weights: &'a [f32],
    pub bias: &'a [f32],
    pub clamp: Clamp,
    pub pixels: usize,
    pub out: &'a mut [f32],
}

impl Depthwise<'_> {
    /// Whether there is a kernel for it.
    pub(crate) fn has(kernel: usize, stride: usize) -> bool {
        matches!(kernel, 3 | 5 | 7) && matches!(stride, 1 | 2)
    }

    fn check(&self) {
        let (c, k) = (self.channels, self.kernel);
        assert!(Self::has(k, self.stride));
        assert!(self.rows.len() >= k && self.weights.len() >= k * k * c && self.bias.len() >= c);
        if self.pixels == 0 {
            return;
        }
        let reach = ((self.pixels - 1) * self.stride + k) * c;
        assert!(self.rows[..k].iter().all(|r| r.len() >= reach), "rows of a filter");
        assert!(self.out.len() >= self.pixels * c, "output of a filter");
    }
}

/// As [`Rows`] for few columns; weights are `[columns][depth]`.
#[derive(Debug)]
pub(crate) struct Dots<'a> {
    pub sources: &'a [Source<'a>],
    pub pixels: usize,
    pub weights: &'a [f32],
    pub depth: usize,
    pub columns: usize,
    pub bias: &'a [f32],
    pub clamp: Clamp,
    pub residual: Option<(&'a [f32], usize, usize)>,
    pub out: &'a mut [f32],
    pub out_at: usize,
    pub out_step: usize,
}

impl Dots<'_> {
    fn check(&self) {
        let depth: usize = self.sources.iter().map(Source::depth).sum();
        assert!(depth == self.depth && self.weights.len() >= depth * self.columns);
        assert!(self.bias.len() >= self.columns);
        if self.pixels == 0 {
            return;
        }
        self.sources.iter().for_each(|s| s.check(self.pixels));
        let end = self.out_at + (self.pixels - 1) * self.out_step + self.columns;
        assert!(end <= self.out.len(), "an output ends at {end} of {}", self.out.len());
    }
}

/// `out[x][n] = clamp(sums[x][n] + bias[n] + residual[x][n])`.
#[derive(Debug)]
pub(crate) struct Finish<'a> {
    /// `[pixel][wide]`.
    pub sums: &'a [f32],
    pub wide: usize,
    pub bias: &'a [f32],
    pub clamp: Clamp,
    /// Values, where the first pixel's begin, and the distance between pixels.
    pub residual: Option<(&'a [f32], usize, usize)>,
    /// Distances from there where they are not regular, one per pixel.
    pub residual_places: Option<&'a [u32]>,
    pub pixels: usize,
    pub out: &'a mut [f32],
    pub out_at: usize,
    pub out_step: usize,
    /// As for the residual.
    pub places: Option<&'a [u32]>,
}

/// Outputs of a tile of Winograd's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tile {
    /// 2 x 2, from 4 x 4 pixels.
    Two,
    /// 3 x 3, from 5 x 5 pixels; of no source that is enlarged.
    Three,
    /// 4 x 4, from 6 x 6 pixels.
    Four,
}

impl Tile {
    /// Outputs on a side.
    pub(crate) const fn side(self) -> usize {
        match self {
            Self::Two => 2,
            Self::Three => 3,
            Self::Four => 4,
        }
    }

    /// Pixels on a side, and positions of a transformed tile.
    pub(crate) const fn reach(self) -> usize {
        self.side() + 2
    }

    /// Positions of a transformed tile.
    pub(crate) const fn positions(self) -> usize {
        self.reach() * self.reach()
    }

    /// Whether a position exists for a source that is enlarged: the third row and column are zero.
    pub(crate) const fn kept(self, position: usize) -> bool {
        position / self.reach() != 2 && position % self.reach() != 2
    }
}

/// `B' d B` of tiles side by side: of the pixels from `at + tile * side * channels` on, or of those from
/// `at + tile * side / 2 * channels` on that are enlarged to such. Position `p` of a tile goes to
/// `places[p] + tile * steps[p]`.
#[derive(Debug)]
pub(crate) struct InputTiles<'a> {
    pub tile: Tile,
    pub data: &'a [f32],
    pub at: usize,
    /// Distance between two rows of pixels.
    pub row: usize,
    pub channels: usize,
    /// Whether each pixel is enlarged to 2 x 2; then positions that are not [`Tile::kept`] are left out, and some
    /// others lack a factor, which the weights have.
    pub enlarged: bool,
    pub tiles: usize,
    pub out: &'a mut [f32],
    pub places: &'a [usize],
    pub steps: &'a [usize],
}

impl InputTiles<'_> {
    fn check(&self) {
        let (side, positions) = (self.tile.side(), self.tile.positions());
        assert!(self.places.len() == positions && self.steps.len() == positions, "positions");
        assert!(!self.enlarged || side.is_multiple_of(2), "pixels of one tile alone");
        if self.tiles == 0 {
            return;
        }
        let step = if self.enlarged { side / 2 } else { side };
        let reach = step + 2;
        let pixels = (self.tiles - 1) * step + reach;
        let end = self.at + (reach - 1) * self.row + pixels * self.channels;
        assert!(end <= self.data.len(), "tiles end at {end} of {}", self.data.len());
        for (p, (place, step)) in self.places.iter().zip(self.steps).enumerate() {
            if !self.enlarged || self.tile.kept(p) {
                let end = place + (self.tiles - 1) * step + self.channels;
                assert!(end <= self.out.len(), "a position ends at {end} of {}", self.out.len());
            }
        }
    }
}

/// `clamp(A' m A + bias + residual)` of tiles side by side: position `p` of a tile's sums is at
/// `at + p * position + tile * bias.len()`, its outputs begin at `out_at + tile * side * bias.len()`.
#[derive(Debug)]
pub(crate) struct OutputTiles<'a> {
    pub tile: Tile,
    pub sums: &'a [f32],
    pub at: usize,
    /// Distance between two positions.
    pub position: usize,
    pub bias: &'a [f32],
    pub clamp: Clamp,
    /// Values, where the first tile's begin, and the distance between rows.
    pub residual: Option<(&'a [f32], usize, usize)>,
    pub tiles: usize,
    pub out: &'a mut [f32],
    pub out_at: usize,
    /// Distance between two rows of outputs.
    pub out_row: usize,
}

impl OutputTiles<'_> {
    fn check(&self) {
        let (n, side) = (self.bias.len(), self.tile.side());
        if self.tiles == 0 {
            return;
        }
        let end = self.at + (self.tile.positions() - 1) * self.position + self.tiles * n;
        assert!(end <= self.sums.len(), "sums of tiles end at {end} of {}", self.sums.len());
        let far = |row: usize| (side - 1) * row + self.tiles * side * n;
        let end = self.out_at + far(self.out_row);
        assert!(end <= self.out.len(), "outputs of tiles end at {end} of {}", self.out.len());
        if let Some((data, at, row)) = self.residual {
            let end = at + far(row);
            assert!(end <= data.len(), "residuals of tiles end at {end} of {}", data.len());
        }
    }
}
