//! Areas that cannot be trusted: out of focus, under pen, under dirt. Each window is judged while it
//! is read, square by square of about 50 um, on its own pixels; `docs/detect.md` reports how the limits
//! were measured.

use crate::area::Tissue;
use crate::grid::{Frame, Grid, WindowAt};
use crate::source::WorkingFrame;
use mitosis::{Level0, Mm2, Mpp, Point, RgbTile};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What is wrong with an area.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Flaw {
    /// Blurred so far that figures are missed.
    OutOfFocus,
    /// Saturated colours that haematoxylin and eosin do not have.
    Pen,
    /// Dark and without colour: ink, dust, pigment.
    Dirt,
}

impl Flaw {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::OutOfFocus, Self::Pen, Self::Dirt];

    /// As it is in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::OutOfFocus => "out_of_focus",
            Self::Pen => "pen",
            Self::Dirt => "dirt",
        }
    }

    /// As reports and pages show it.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::OutOfFocus => "Out of focus",
            Self::Pen => "Pen",
            Self::Dirt => "Dirt",
        }
    }

    /// The one of a [`Self::name`].
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|f| f.name() == name)
    }
}

/// The limits by which squares are judged; written out with the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FlawLimits {
    /// Side of a square, um, at least (a whole part of the stride).
    pub square_um: f64,
    /// Mean squared step of luma over 0.5 um, divided by that over 4 um: below this a square is out
    /// of focus.
    pub sharpness: f64,
    /// Mean squared step over 4 um, grey levels squared, from which on sharpness is reported at all.
    pub contrast: f64,
    /// Share of a square's pixels in colours of a pen from which on it is pen.
    pub pen_share: f64,
    /// Share of dark pixels without colour from which on a square is dirt.
    pub dirt_share: f64,
}

/// The limits in use.
pub const FLAW_LIMITS: FlawLimits = FlawLimits {
    square_um: 50.0,
    sharpness: 0.031,
    contrast: 100.0,
    pen_share: 0.3,
    dirt_share: 0.2,
};

/// Fewest pairs of pixels per axis by which sharpness is reported.
const FEWEST: u64 = 200;
/// Luma is kept in sixteenths of a grey level.
const SIXTEENTHS: f64 = 256.0;

/// How windows are divided into squares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Squares {
    /// Side, working px.
    side: u32,
    /// Squares per stride.
    per_stride: u32,
    /// Squares that a window touches along an axis.
    across: u32,
    /// Working pixels per pixel of luma, along an axis: about 0.5 um.
    pool: usize,
    /// Pixels of luma in 4 um.
    far: usize,
    /// [`FlawLimits::sharpness`] for this size of a pixel of luma.
    sharpness: f64,
}

impl Squares {
    pub(crate) fn new(grid: Grid, mpp: Mpp) -> Self {
        let um = mpp.get();
        let wanted = (f64::from(grid.stride()) * um / FLAW_LIMITS.square_um) as u32;
        let per_stride = (1..=wanted.max(1)).rev().find(|n| grid.stride().is_multiple_of(*n));
        let per_stride = per_stride.unwrap_or(1);
        let side = grid.stride() / per_stride;
        let pool = (0.5 / um).round().max(1.0) as usize;
        let pixel = um * pool as f64;
        Self {
            side,
            per_stride,
            across: grid.window().div_ceil(side),
            pool,
            far: (4.0 / pixel).round().max(2.0) as usize,
            // What is smooth has steps in proportion to their length.
            sharpness: FLAW_LIMITS.sharpness * (pixel / 0.5).powi(2),
        }
    }

    /// The flaws of a window's squares, row by row, of which the first `inside` pixels are on the
    /// slide; `None` for a sound one.
    pub(crate) fn classify(&self, tile: &RgbTile, inside: (usize, usize)) -> Option<Verdicts> {
        let (w, h) = (inside.0.min(tile.width), inside.1.min(tile.height));
        let mut all = self.colours(tile, (w, h));
        for (flaw, sharpness) in all.iter_mut().zip(self.sharpness(tile, (w, h))) {
            if flaw.is_none() && sharpness.is_some_and(|s| s < self.sharpness) {
                *flaw = Some(Flaw::OutOfFocus);
            }
        }
        all.iter().any(Option::is_some).then_some(Verdicts(all))
    }

    /// Pen and dirt, on every other pixel of every other line.
    fn colours(&self, tile: &RgbTile, (w, h): (usize, usize)) -> Vec<Option<Flaw>> {
        let (n, side) = (self.across as usize, self.side as usize);
        let mut counts = vec![[0u32; 3]; n * n];
        for y in (0..h).step_by(2) {
            let line = &tile.data[3 * y * tile.width..][..3 * w];
            for (bx, part) in line.chunks(3 * side).enumerate() {
                let [all, pen, dirt] = &mut counts[y / side * n + bx];
                for p in part.as_chunks::<3>().0.iter().step_by(2) {
                    let [is_pen, is_dirt] = colour(*p);
                    *all += 1;
                    *pen += u32::from(is_pen);
                    *dirt += u32::from(is_dirt);
                }
            }
        }
        let reaches =
            |part: u32, all: u32, share: f64| part > 0 && f64::from(part) >= share * f64::from(all);
        let verdict = |&[all, pen, dirt]: &[u32; 3]| {
            if reaches(dirt, all, FLAW_LIMITS.dirt_share) {
                Some(Flaw::Dirt)
            } else {
                reaches(pen, all, FLAW_LIMITS.pen_share).then_some(Flaw::Pen)
            }
        };
        counts.iter().map(verdict).collect()
    }

    /// See [`FlawLimits::sharpness`]; `None` where a square has too little contrast or is too small to
    /// show. Sums are integers, so that nothing depends on an order.
    fn sharpness(&self, tile: &RgbTile, inside: (usize, usize)) -> Vec<Option<f64>> {
        let (n, side) = (self.across as usize, self.side as usize / self.pool);
        if side == 0 {
            return vec![None; n * n];
        }
        let luma = Luma::from_tile(tile, inside, self.pool);
        let mut steps = vec![[Steps::default(); 4]; n * n];
        for y in 0..luma.height {
            let own = luma.row(y);
            for x0 in (0..luma.width).step_by(side) {
                // The last square takes what pooling leaves over.
                let at = (y / side).min(n - 1) * n + (x0 / side).min(n - 1);
                let end = (x0 + side).min(luma.width);
                let [near_x, near_y, far_x, far_y] = &mut steps[at];
                for (sums, lag) in [(near_x, 1), (far_x, self.far)] {
                    let to = end.min(luma.width.saturating_sub(lag)).max(x0);
                    sums.add(&own[x0..to], &own[(x0 + lag).min(luma.width)..]);
                }
                for (sums, lag) in [(near_y, 1), (far_y, self.far)] {
                    if y + lag < luma.height {
                        sums.add(&own[x0..end], &luma.row(y + lag)[x0..end]);
                    }
                }
            }
        }
        let sharpness = |[near_x, near_y, far_x, far_y]: &[Steps; 4]| {
            if far_x.pairs < FEWEST || far_y.pairs < FEWEST {
                return None;
            }
            let far = far_x.mean() + far_y.mean();
            let enough = far >= FLAW_LIMITS.contrast * SIXTEENTHS;
            enough.then(|| (near_x.mean() + near_y.mean()) / far)
        };
        steps.iter().map(sharpness).collect()
    }
}

/// The sharpness of every square of an image at `mpp` that has enough contrast to show: what
/// [`FlawLimits::sharpness`] is held against.
///
/// # Errors
/// [`crate::DetectError::Recipe`] for an image without pixels.
pub fn sharpness(tile: &RgbTile, mpp: Mpp) -> Result<Vec<f64>, crate::DetectError> {
    let side = tile.width.max(tile.height) as u32;
    // One window whose stride holds as many whole squares as the image does.
    let square = (FLAW_LIMITS.square_um / mpp.get()).ceil().max(1.0) as u32;
    let stride = (side / square).max(1) * square.min(side);
    let squares = Squares::new(Grid::new(side, stride.min(side))?, mpp);
    let all = squares.sharpness(tile, (tile.width, tile.height));
    Ok(all.into_iter().flatten().collect())
}

/// Shares of pixels in colours of a pen, and of dark pixels without colour; zero of no pixels.
#[must_use]
pub fn pen_and_dirt(pixels: &[[u8; 3]]) -> [f64; 2] {
    let mut counts = [0_usize; 2];
    for p in pixels {
        let flawed = colour(*p);
        counts.iter_mut().zip(flawed).for_each(|(n, is)| *n += usize::from(is));
    }
    counts.map(|n| n as f64 / pixels.len().max(1) as f64)
}

/// Pen, dirt.
fn colour([r, g, b]: [u8; 3]) -> [bool; 2] {
    let [r, g, b] = [r, g, b].map(i32::from);
    let (most, least) = (r.max(g).max(b), r.min(g).min(b));
    let chroma = most - least;
    let dirt = most < 75 && chroma < 25;
    // Hues in degrees: yellow-green to cyan from 45 to 200, blue to 238 (haematoxylin begins behind
    // it), red from 345 to 20; each from a saturation on that no stain reaches.
    let pen = most > 60
        && if g == most {
            5 * chroma > 2 * most
        } else if r == most {
            let yellow = 4 * (g - b) >= 3 * chroma && 5 * chroma > 2 * most;
            let red = 4 * (g - b) >= -chroma && 3 * (g - b) <= chroma && 5 * chroma > 4 * most;
            yellow || red
        } else {
            let cyan = 3 * (r - g) <= -2 * chroma && 5 * chroma > 2 * most;
            let blue = 30 * (r - g) <= -chroma && 5 * chroma > 3 * most;
            cyan || blue
        };
    [pen, dirt]
}

/// Luma in sixteenths, averaged over squares of `pool` pixels.
struct Luma {
    width: usize,
    height: usize,
    data: Vec<i16>,
}

impl Luma {
    fn from_tile(tile: &RgbTile, inside: (usize, usize), pool: usize) -> Self {
        let (width, height) = (inside.0 / pool, inside.1 / pool);
        let mut data = vec![0; width * height];
        let mut sums = vec![0_i32; width];
        let luma = |[r, g, b]: [i32; 3]| 77 * r + 150 * g + 29 * b;
        for (y, row) in data.chunks_exact_mut(width.max(1)).enumerate() {
            sums.fill(0);
            for line in 0..pool {
                let start = 3 * (y * pool + line) * tile.width;
                let pixels = tile.data[start..start + 3 * width * pool].as_chunks::<3>().0;
                // At 0.25 um/px, where the number of pixels is known beforehand.
                if pool == 2 {
                    for (sum, [p, q]) in sums.iter_mut().zip(pixels.as_chunks().0) {
                        *sum += luma([0, 1, 2].map(|c| i32::from(p[c]) + i32::from(q[c])));
                    }
                    continue;
                }
                for (sum, part) in sums.iter_mut().zip(pixels.chunks_exact(pool)) {
                    *sum += part.iter().map(|p| luma(p.map(i32::from))).sum::<i32>();
                }
            }
            let whole = 16 * (pool * pool) as i32;
            row.iter_mut().zip(&sums).for_each(|(v, sum)| *v = (sum / whole) as i16);
        }
        Self { width, height, data }
    }

    fn row(&self, y: usize) -> &[i16] {
        &self.data[y * self.width..][..self.width]
    }
}

/// Squared steps between pairs of pixels.
#[derive(Clone, Copy, Debug, Default)]
struct Steps {
    sum: u64,
    pairs: u64,
}

impl Steps {
    /// Pairs up to the end of the shorter side.
    fn add(&mut self, a: &[i16], b: &[i16]) {
        // The square of the largest step, 4,080, so often, is below 2^31.
        const MOST: usize = 128;
        let square = |(a, b): (&i16, &i16)| i32::from(a - b).pow(2);
        for (a, b) in a.chunks(MOST).zip(b.chunks(MOST)) {
            self.sum += u64::from(a.iter().zip(b).map(square).sum::<i32>().unsigned_abs());
        }
        self.pairs += a.len().min(b.len()) as u64;
    }

    fn mean(self) -> f64 {
        self.sum as f64 / self.pairs.max(1) as f64
    }
}

/// The flaws of one window's squares, row by row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Verdicts(Vec<Option<Flaw>>);

/// A window with flaws; as JSON a list of the two.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "(WindowAt, Verdicts)", into = "(WindowAt, Verdicts)")]
pub(crate) struct FlawedWindow {
    pub(crate) at: WindowAt,
    pub(crate) verdicts: Verdicts,
}

impl From<(WindowAt, Verdicts)> for FlawedWindow {
    fn from((at, verdicts): (WindowAt, Verdicts)) -> Self {
        Self { at, verdicts }
    }
}

impl From<FlawedWindow> for (WindowAt, Verdicts) {
    fn from(window: FlawedWindow) -> Self {
        (window.at, window.verdicts)
    }
}

impl Verdicts {
    /// Whether it is of this division.
    pub(crate) fn fits(&self, squares: &Squares) -> bool {
        self.0.len() == (squares.across * squares.across) as usize
    }
}

/// A square of the slide with a flaw.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FlawedSquare {
    /// Blur, pen or dirt.
    pub flaw: Flaw,
    /// Column and row on the slide's lattice of squares.
    pub place: (u32, u32),
    /// Upper left corner in level-0 pixels.
    pub min: Point<Level0>,
    /// Lower right corner in level-0 pixels, clipped to what was read.
    pub max: Point<Level0>,
    /// Area of the square, mm2.
    pub mm2: f64,
}

/// What cannot be trusted of a slide.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Flawed {
    /// Every square with a flaw, row by row.
    pub squares: Vec<FlawedSquare>,
    /// Side of a square in level-0 pixels, across and down.
    pub side_px: (f64, f64),
    /// Tissue out of focus.
    pub out_of_focus: Mm2,
}

impl Default for Flawed {
    /// A slide on which nothing was judged.
    fn default() -> Self {
        Self { squares: Vec::new(), side_px: (0.0, 0.0), out_of_focus: Mm2(0.0) }
    }
}

impl Flawed {
    /// Area of the squares with a flaw, on tissue and off it.
    #[must_use]
    pub fn area(&self, flaw: Flaw) -> Mm2 {
        // From zero: the sum of no floats is minus zero.
        let of = self.squares.iter().filter(|s| s.flaw == flaw);
        Mm2(of.fold(0.0, |sum, s| sum + s.mm2))
    }
}

/// The square of a window that judges a place.
#[derive(Clone, Copy)]
struct Judge {
    window: WindowAt,
    x: u32,
    y: u32,
}

/// Where the flaws of a slide are. A place is judged by its own window, else by the window left of
/// it, above it, or both, whichever was read: the same whatever the order of the windows.
pub(crate) struct FlawMap<'a> {
    squares: Squares,
    window: u32,
    read: &'a BTreeSet<WindowAt>,
    flawed: BTreeMap<WindowAt, Verdicts>,
}

impl<'a> FlawMap<'a> {
    pub(crate) fn new(
        squares: Squares,
        grid: Grid,
        read: &'a BTreeSet<WindowAt>,
        flawed: Vec<FlawedWindow>,
    ) -> Self {
        let flawed = flawed.into_iter().filter(|f| read.contains(&f.at));
        let flawed = flawed.map(|f| (f.at, f.verdicts)).collect();
        Self { squares, window: grid.window(), read, flawed }
    }

    /// The first window that reads the working pixel `within` px into the lattice's square, and that
    /// square in it.
    fn first_judge(&self, (bx, by): (u32, u32), within: (f64, f64)) -> Option<Judge> {
        let Squares { side, per_stride: n, .. } = self.squares;
        let reach = |own: u32, back: u32, within: f64| {
            let window = (own / n).checked_sub(back)?;
            let square = own - window * n;
            let inside = f64::from(square * side) + within < f64::from(self.window);
            inside.then_some((window, square))
        };
        [(0, 0), (0, 1), (1, 0), (1, 1)].into_iter().find_map(|(up, left)| {
            let (row, sy) = reach(by, up, within.1)?;
            let (col, sx) = reach(bx, left, within.0)?;
            let at = WindowAt { row, col };
            self.read.contains(&at).then_some(Judge { window: at, x: sx, y: sy })
        })
    }

    fn verdict(&self, Judge { window: at, x: sx, y: sy }: Judge) -> Option<Flaw> {
        *self.flawed.get(&at)?.0.get((sy * self.squares.across + sx) as usize)?
    }

    /// What is wrong at a working pixel.
    pub(crate) fn at(&self, x: f64, y: f64) -> Option<Flaw> {
        if self.flawed.is_empty() || x < 0.0 || y < 0.0 {
            return None;
        }
        let side = f64::from(self.squares.side);
        let place = ((x / side) as u32, (y / side) as u32);
        let within = (x - f64::from(place.0) * side, y - f64::from(place.1) * side);
        self.verdict(self.first_judge(place, within)?)
    }

    /// All of it, with the tissue where there is a mask.
    pub(crate) fn list(&self, at: &WorkingFrame, tissue: Option<&dyn Tissue>) -> Flawed {
        let side = f64::from(self.squares.side);
        let side_px = (side * at.scale.0, side * at.scale.1);
        let mut all = Flawed { squares: self.squares(at), side_px, out_of_focus: Mm2(0.0) };
        all.out_of_focus = match tissue {
            Some(tissue) if !all.squares.is_empty() => Mm2(tissue.area_mm2_where(&mut |p| {
                self.at(p.x / at.scale.0, p.y / at.scale.1) == Some(Flaw::OutOfFocus)
            })),
            _ => all.area(Flaw::OutOfFocus),
        };
        all
    }

    fn squares(&self, at: &WorkingFrame) -> Vec<FlawedSquare> {
        let Squares { side, per_stride: n, across, .. } = self.squares;
        let places = self.flawed.keys().flat_map(|w| {
            (0..across * across).map(|k| (w.row * n + k / across, w.col * n + k % across))
        });
        let places: BTreeSet<(u32, u32)> = places.collect();
        let Frame { width, height } = at.frame;
        places
            .into_iter()
            .filter_map(|(by, bx)| {
                let judge = self.first_judge((bx, by), (0.0, 0.0))?;
                let Judge { x, y, .. } = judge;
                let flaw = self.verdict(judge)?;
                let end = |own: u32, square: u32, frame: u32, extent: f64| {
                    let reach = side.min(self.window - square * side);
                    f64::from((own * side + reach).min(frame)).min(extent)
                };
                let (x0, y0) = (f64::from(bx * side), f64::from(by * side));
                let x1 = end(bx, x, width, at.extent.0);
                let y1 = end(by, y, height, at.extent.1);
                let mm2 = (x1 - x0).max(0.0) * (y1 - y0).max(0.0) * at.pixel_mm2;
                let level0 = |x, y| at.to_level0(Point::new(x, y));
                let (min, max) = (level0(x0, y0), level0(x1, y1));
                Some(FlawedSquare { flaw, place: (bx, by), min, max, mm2 })
            })
            .collect()
    }
}

#[cfg(test)]
mod tests;
