//! Calls of kernels: slices and distances, with the checks of every address that they lead to.

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
    pub(super) fn depth(&self) -> usize {
        self.taps * self.len
    }

    pub(super) fn check(&self, pixels: usize) {
        if pixels == 0 || self.depth() == 0 {
            return;
        }
        let last = self.at + (pixels - 1) * self.pixel + (self.taps - 1) * self.tap + self.len;
        assert!(last <= self.data.len(), "a source ends at {last} of {}", self.data.len());
    }
}

/// Values at equal steps: those of pixel, row or block `i` begin at `at + i * step`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Strided<'a> {
    pub data: &'a [f32],
    pub at: usize,
    pub step: usize,
}

impl Strided<'_> {
    /// The same from so many values later on.
    pub(crate) fn after(self, values: usize) -> Self {
        Self { at: self.at + values, ..self }
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
    /// A step from pixel to pixel.
    pub residual: Option<Strided<'a>>,
    /// Distances from there where they are not regular, one per pixel.
    pub residual_places: Option<&'a [u32]>,
    pub out: &'a mut [f32],
    pub out_at: usize,
    pub out_step: usize,
    /// As for the residual.
    pub places: Option<&'a [u32]>,
}

impl Rows<'_> {
    pub(super) fn check(&self, lanes: usize, widest: usize) {
        let wide = self.registers * lanes;
        assert!((1..=widest).contains(&self.registers));
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
        if let Some(Strided { data, at, step }) = self.residual {
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

    pub(super) fn check(&self) {
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
    /// A step from pixel to pixel.
    pub residual: Option<Strided<'a>>,
    pub out: &'a mut [f32],
    pub out_at: usize,
    pub out_step: usize,
}

impl Dots<'_> {
    pub(super) fn check(&self) {
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
    /// A step from pixel to pixel.
    pub residual: Option<Strided<'a>>,
    /// Distances from there where they are not regular, one per pixel.
    pub residual_places: Option<&'a [u32]>,
    pub pixels: usize,
    pub out: &'a mut [f32],
    pub out_at: usize,
    pub out_step: usize,
    /// As for the residual.
    pub places: Option<&'a [u32]>,
}

/// `out[x][c] = clamp(from[x][c] * scale[c] + shift[c])`.
#[derive(Debug)]
pub(crate) struct Scale<'a> {
    pub from: &'a [f32],
    pub scale: &'a [f32],
    pub shift: &'a [f32],
    pub clamp: Clamp,
    pub out: &'a mut [f32],
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
    pub(super) fn check(&self) {
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
    /// A step from row to row, from the first tile's on.
    pub residual: Option<Strided<'a>>,
    pub tiles: usize,
    pub out: &'a mut [f32],
    pub out_at: usize,
    /// Distance between two rows of outputs.
    pub out_row: usize,
}

impl OutputTiles<'_> {
    pub(super) fn check(&self) {
        let (n, side) = (self.bias.len(), self.tile.side());
        if self.tiles == 0 {
            return;
        }
        let end = self.at + (self.tile.positions() - 1) * self.position + self.tiles * n;
        assert!(end <= self.sums.len(), "sums of tiles end at {end} of {}", self.sums.len());
        let far = |row: usize| (side - 1) * row + self.tiles * side * n;
        let end = self.out_at + far(self.out_row);
        assert!(end <= self.out.len(), "outputs of tiles end at {end} of {}", self.out.len());
        if let Some(Strided { data, at, step: row }) = self.residual {
            let end = at + far(row);
            assert!(end <= data.len(), "residuals of tiles end at {end} of {}", data.len());
        }
    }
}
