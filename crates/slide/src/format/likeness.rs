//! Whether a picture next to a slide shows the slide. A label may have the slide's shape: only its pixels distinguish
//! it from a thumbnail.

use crate::limits::Fault;
use crate::several::shrunk;
use crate::tiff::TiffImage;

/// Side of the squares that are compared, px of the picture.
const SIDE: u64 = 8;
/// Squares per side that are compared of a slide without a level that is read quickly.
const PLACES: u64 = 6;
/// Pixels of a level that is read quickly.
const QUICK: u128 = 1 << 26;
/// Largest picture that is compared, bytes of RGB.
const LARGEST: u128 = 64 << 20;
/// Pixels that are decoded for it at most. What needs more is not known to be a thumbnail.
const MOST: u64 = 1 << 27;
/// Mean grey levels by which a channel of one square may differ, and the share of squares, one in so many, that may
/// differ by more: thumbnails are sharpened, and those of some scanners are off by a pixel.
const ALLOWED: f64 = 30.0;
const SHARE: usize = 50;

/// The squares that are compared: both pictures are cut into as many.
struct Grid {
    columns: u64,
    rows: u64,
    /// Of so many columns and rows, one is compared.
    step: (u64, u64),
}

impl Grid {
    fn square(&self, column: u64, row: u64) -> Option<usize> {
        let wanted =
            column % self.step.0 == self.step.0 / 2 && row % self.step.1 == self.step.1 / 2;
        wanted.then_some((row * self.columns + column) as usize)
    }

    /// The squares that are compared and have pixels of a tile.
    fn touched(&self, image: &TiffImage, column: u64, row: u64) -> Vec<usize> {
        let squares = |at: u64, side: u64, extent: u64, n: u64| {
            let last = ((at + 1) * side).min(extent) - 1;
            at * side * n / extent..=last * n / extent
        };
        let across = squares(column, image.tile_width, image.width, self.columns);
        let down = squares(row, image.tile_height, image.height, self.rows);
        down.flat_map(|r| across.clone().filter_map(move |c| self.square(c, r))).collect()
    }
}

/// Whether a picture in strips, next to a slide in tiles, is the slide in small: by its shape, and by what it shows.
/// `levels` are the slide's, finest first.
///
/// # Errors
/// What the system could not read. A picture that cannot be decoded shows something else.
pub(super) fn is_thumbnail(picture: &TiffImage, levels: &[TiffImage]) -> Result<bool, Fault> {
    let Some(base) = levels.first() else { return Ok(false) };
    let is_alike = shrunk((base.width, base.height), (picture.width, picture.height));
    if picture.tiled || !base.tiled || !is_alike {
        return Ok(false);
    }
    shows(picture, levels)
}

/// Whether a picture of a slide's shape shows what the slide shows.
fn shows(picture: &TiffImage, levels: &[TiffImage]) -> Result<bool, Fault> {
    let larger = |l: &&TiffImage| l.width >= picture.width && l.height >= picture.height;
    let pixels = |i: &TiffImage| u128::from(i.width) * u128::from(i.height);
    let Some(level) = levels.iter().rev().find(larger) else { return Ok(false) };
    if 3 * pixels(picture) > LARGEST {
        return Ok(false);
    }
    let (columns, rows) = ((picture.width / SIDE).max(1), (picture.height / SIDE).max(1));
    let step = |n: u64| if pixels(level) > QUICK { n.div_ceil(PLACES) } else { 1 };
    let grid = Grid { columns, rows, step: (step(columns), step(rows)) };
    let Some((own, slide)) = means(picture, &grid)?.zip(means(level, &grid)?) else {
        return Ok(false);
    };
    let wanted = own.iter().filter(|mean| mean.is_some()).count();
    let compared: Vec<bool> = own.iter().zip(&slide).filter_map(|(a, b)| differ(*a, *b)).collect();
    let differing = compared.iter().filter(|differs| **differs).count();
    Ok(compared.len() * 2 > wanted && differing * SHARE <= compared.len())
}

/// Whether two squares differ, where both are known.
fn differ(a: Option<[f64; 3]>, b: Option<[f64; 3]>) -> Option<bool> {
    let (a, b) = a.zip(b)?;
    Some(a.iter().zip(b).any(|(a, b)| (a - b).abs() > ALLOWED))
}

/// The mean colours of squares; none of those with a tile that is left out or damaged.
type Means = Vec<Option<[f64; 3]>>;

/// Those of the wanted squares of an image, unless too many pixels are needed for them.
fn means(image: &TiffImage, grid: &Grid) -> Result<Option<Means>, Fault> {
    let mut sums = vec![[0_u64; 4]; (grid.columns * grid.rows) as usize];
    let mut lost = vec![false; sums.len()];
    let (tw, th) = (image.tile_width, image.tile_height);
    let tiles = (0..image.height.div_ceil(th))
        .flat_map(|row| (0..image.width.div_ceil(tw)).map(move |column| (column, row)));
    let mut wanted = Vec::new();
    for (column, row) in tiles {
        let touched = grid.touched(image, column, row);
        if image.absent(column, row) {
            touched.into_iter().for_each(|square| lost[square] = true);
        } else if !touched.is_empty() {
            wanted.push((column, row, touched));
        }
        if (wanted.len() as u64).saturating_mul(tw * th) > MOST {
            return Ok(None);
        }
    }
    for (column, row, touched) in wanted {
        let tile = match image.tile(column, row) {
            Ok(decoded) => decoded.tile,
            Err(fault @ (Fault::Read(_) | Fault::Limit(_))) => return Err(fault),
            Err(_) => {
                touched.into_iter().for_each(|square| lost[square] = true);
                continue;
            }
        };
        for (y, line) in (row * th..).zip(tile.data.chunks_exact(3 * tile.width.max(1))) {
            let r = y * grid.rows / image.height;
            for (x, pixel) in (column * tw..).zip(line.as_chunks::<3>().0) {
                let c = x * grid.columns / image.width;
                let Some(sum) = grid.square(c, r).and_then(|square| sums.get_mut(square)) else {
                    continue;
                };
                let [red, green, blue] = pixel.map(u64::from);
                *sum = [sum[0] + red, sum[1] + green, sum[2] + blue, sum[3] + 1];
            }
        }
    }
    let mean = |sum: &[u64; 4]| {
        let [red, green, blue, n] = sum.map(|s| s as f64);
        (n > 0.0).then(|| [red, green, blue].map(|s| s / n))
    };
    Ok(Some(sums.iter().zip(lost).map(|(sum, lost)| mean(sum).filter(|_| !lost)).collect()))
}
