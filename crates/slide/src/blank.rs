//! Blank patches within the tiles of coarse levels, where the next finer level shows something.
//!
//! A tile that a file leaves out is filled from the finer level ([`crate::pieces`]), and a level that shows another
//! picture is not used ([`crate::agree`]). A part of a tile that its writer never painted is neither. Such a part has
//! one colour to the last bit over a square of [`SIDE`] pixels, which tissue never has; where the data of the finer
//! tile are longer than those of an even one, both are compared.

use crate::resample::Axis;
use crate::source::TileAt;
use crate::{Slide, SlideError};
use mitosis::{Rect, RgbTile};
use std::sync::{Arc, PoisonError};

/// Side of the squares that are looked at, px of the coarse level.
const SIDE: usize = 16;
/// Mean grey levels by which a channel of a square may differ from the colour of an even square.
const ALLOWED: f64 = 20.0;
/// A tile of one colour has fewer bytes than a pixel's share of this.
const EVEN: u64 = 40;
/// The same for colours that glass may have: those of tissue are longer.
const GLASS: u64 = 8;
/// Grey levels from black or white up to which a colour is that of nothing painted.
const PURE: u8 = 1;

impl Slide {
    /// A tile of a coarse level, its blank patches filled from the next finer level.
    ///
    /// # Errors
    /// Those of reading the file; tiles of the finer level that cannot be decoded fill nothing.
    pub(crate) fn mended(
        &self,
        at: TileAt,
        tile: Arc<RgbTile>,
    ) -> Result<Arc<RgbTile>, SlideError> {
        if at.level == 0 {
            return Ok(tile);
        }
        for y in (0..tile.height / SIDE).map(|k| k * SIDE) {
            for x in (0..tile.width / SIDE).map(|k| k * SIDE) {
                let Some(colour) = even(&tile, x, y) else { continue };
                let hides = (0..at.level).any(|finer| self.may_hide(at, finer, (x, y), colour));
                let square = Rect::new(x as i64, y as i64, SIDE, SIDE);
                let differ = |level| {
                    let finer = if hides { self.finer(at, level, square)? } else { None };
                    Ok::<_, SlideError>(finer.is_some_and(|finer| differs(&finer, colour)))
                };
                // Level 0 is the slide: a finer level that shows something else fills nothing.
                if !differ(at.level - 1)? || !differ(0)? {
                    continue;
                }
                let all = Rect::new(0, 0, tile.width, tile.height);
                let Some(finer) = self.finer(at, at.level - 1, all)? else { continue };
                let mut patched = self.patched.lock().unwrap_or_else(PoisonError::into_inner);
                patched.entry(at.level).or_default().insert((at.column, at.row));
                return Ok(Arc::new(painted(&tile, &finer, colour)));
            }
        }
        Ok(tile)
    }

    /// Whether blank patches of a tile were filled.
    pub(crate) fn is_patched(&self, at: TileAt) -> bool {
        let patched = self.patched.lock().unwrap_or_else(PoisonError::into_inner);
        patched.get(&at.level).is_some_and(|tiles| tiles.contains(&(at.column, at.row)))
    }

    /// Whether the data of a finer level's tile under the middle of a square are longer than those of an even tile.
    fn may_hide(&self, at: TileAt, finer: usize, (x, y): (usize, usize), colour: [u8; 3]) -> bool {
        let (own, fine) = (&self.levels()[at.level], &self.levels()[finer]);
        let place = |i: u64, tile: u32, inner: usize, ratio: f64, fine_tile: u32| {
            let middle = (i * u64::from(tile)) as f64 + (inner + SIDE / 2) as f64;
            (middle * ratio) as u64 / u64::from(fine_tile)
        };
        let (rx, ry) = (own.downsample_x / fine.downsample_x, own.downsample_y / fine.downsample_y);
        let column = place(at.column, own.tile_width, x, rx, fine.tile_width);
        let row = place(at.row, own.tile_height, y, ry, fine.tile_height);
        let (columns, rows) = fine.grid();
        let is_pure = colour.iter().all(|c| *c <= PURE) || colour.iter().all(|c| *c >= 255 - PURE);
        let area = u64::from(fine.tile_width) * u64::from(fine.tile_height);
        let bytes = match column < columns && row < rows {
            true => self.opened.source.stored_bytes(finer, column, row),
            false => Some(0),
        };
        match bytes {
            Some(bytes) => bytes > area / if is_pure { EVEN } else { GLASS },
            None => is_pure,
        }
    }

    /// A part of a tile as a finer level has it; none where that cannot be decoded.
    fn finer(&self, at: TileAt, level: usize, part: Rect) -> Result<Option<RgbTile>, SlideError> {
        let (own, fine) = (&self.levels()[at.level], &self.levels()[level]);
        let ax = Axis::new(fine.downsample_x, own.downsample_x, fine.width);
        let ay = Axis::new(fine.downsample_y, own.downsample_y, fine.height);
        let x = (at.column * u64::from(own.tile_width)) as i64 + part.x;
        let y = (at.row * u64::from(own.tile_height)) as i64 + part.y;
        let rect = Rect { x, y, ..part };
        let mut damaged = false;
        let finer = self.read_axes(level, &ax, &ay, rect, &mut |e, _| {
            damaged = true;
            if e.is_tile() { Ok(()) } else { Err(e) }
        })?;
        Ok((!damaged).then_some(finer))
    }

    /// Reads the levels that masks of tissue are made of, to know their blank patches.
    pub(crate) fn look_for_patches(&self) -> Result<(), SlideError> {
        const COARSE: f64 = 8.0;
        for (level, l) in self.levels().iter().enumerate().skip(1) {
            if l.downsample_x < COARSE {
                continue;
            }
            let (columns, rows) = l.grid();
            for (column, row) in (0..rows).flat_map(|row| (0..columns).map(move |c| (c, row))) {
                match self.piece(TileAt { level, column, row }) {
                    Err(e) if !e.is_tile() => return Err(e),
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// Tiles read so far whose blank patches were filled, by level.
    pub(crate) fn patch_notes(&self) -> Vec<String> {
        let patched = self.patched.lock().unwrap_or_else(PoisonError::into_inner);
        let one = |(level, tiles): (&usize, &std::collections::BTreeSet<_>)| {
            let n = base::text::Many(tiles.len(), "tile");
            let finer = level - 1;
            format!("{n} of level {level} with a blank part, where level {finer} was read instead")
        };
        patched.iter().map(one).collect()
    }
}

/// The colour of a square that has one alone.
fn even(tile: &RgbTile, x: usize, y: usize) -> Option<[u8; 3]> {
    let row = |dy: usize| &tile.data[3 * ((y + dy) * tile.width + x)..][..3 * SIDE];
    let colour = [row(0)[0], row(0)[1], row(0)[2]];
    // Most squares differ from corner to corner.
    let all = |line: &[u8]| line.as_chunks::<3>().0.iter().all(|p| *p == colour);
    (all(&row(SIDE - 1)[3 * (SIDE - 1)..]) && (0..SIDE).all(|dy| all(row(dy)))).then_some(colour)
}

/// Whether a square is not of that colour.
fn differs(square: &RgbTile, colour: [u8; 3]) -> bool {
    let mut sums = [0u64; 3];
    for p in square.data.as_chunks::<3>().0 {
        sums.iter_mut().zip(p).for_each(|(s, v)| *s += u64::from(*v));
    }
    let mean = sums.map(|s| s as f64 / (SIDE * SIDE) as f64);
    mean.iter().zip(colour).any(|(m, c)| (m - f64::from(c)).abs() > ALLOWED)
}

/// The tile with the finer level's pixels wherever it has the colour of the patch, or nearly: a lossy coding
/// changes what is at the edge of a patch.
fn painted(tile: &RgbTile, finer: &RgbTile, colour: [u8; 3]) -> RgbTile {
    const NEAR: u8 = 8;
    let mut data = tile.data.clone();
    for (own, fine) in data.as_chunks_mut::<3>().0.iter_mut().zip(finer.data.as_chunks::<3>().0) {
        if own.iter().zip(colour).all(|(a, b)| a.abs_diff(b) <= NEAR) {
            *own = *fine;
        }
    }
    RgbTile { width: tile.width, height: tile.height, data }
}
