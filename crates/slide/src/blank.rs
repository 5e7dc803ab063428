//! Blank patches within the tiles of coarse levels, where the next finer level shows something.
//!
//! A tile that a file leaves out is filled from the finer level ([`crate::pieces`]), and a level that shows another
//! picture is not used ([`crate::agree`]). A part of a tile that its writer never painted is neither. Such a part has
//! one colour to the last bit over [`SIDE`] pixels each way, which tissue never has. In strips of fewer rows such a
//! part is the wider. It is compared with the finer level where the data of the finer tile are longer than those of an
//! even one, and either it ends at a straight edge, or next to nothing is visible above that tile. Glass does neither.

use crate::resample::Axis;
use crate::scratch::Piece;
use crate::source::{Level, TileAt};
use crate::{Slide, SlideError};
use mitosis::{Rect, RgbTile};
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

/// Smallest part that is filled, px of the coarse level each way.
const SIDE: usize = 16;
/// Side of the squares that are looked at: every part of [`SIDE`] holds one of them.
const STEP: usize = 8;
/// Mean grey levels by which a channel of a square may differ from the colour of an even square.
const ALLOWED: f64 = 20.0;
/// A tile of one colour has fewer bytes than a pixel's share of this.
const EVEN: u64 = 40;
/// The same for colours that glass may have: those of tissue are longer.
const GLASS: u64 = 8;
/// Of a level whose even tiles are shorter: tiles of this many times their bytes may hold something else.
const LONGER: u64 = 2;
/// Parts of a level's tiles, by their bytes, of which the first are even and the last are full; how many are asked.
const PARTS: usize = 20;
const ASKED: u64 = 2000;
/// Next to nothing is visible of a full tile that has more than its bytes by this.
const FULL: u64 = 4;
/// Share of the squares above a finer tile that show no more than the blank part where its data are longer than that.
const NOTHING: f64 = 0.9;
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
        let mut compared: Vec<Rect> = Vec::new();
        for (x, y) in squares(&tile).filter(|(x, y)| is_even(&tile, *x, *y)) {
            let middle = (x + STEP / 2, y + STEP.min(tile.height) / 2);
            let colour = row(&tile, y)[x];
            // Most even squares are of glass, and end here.
            if !(0..at.level).any(|finer| self.is_long(at, finer, middle, colour)) {
                continue;
            }
            let Some(Blank { part, is_cut }) = blank(&tile, x, y) else { continue };
            if compared.iter().any(|part| holds(part, x, y)) {
                continue;
            }
            let hides =
                |finer| self.may_hide(at, finer, middle, Seen { colour, is_cut, tile: &tile });
            if !(0..at.level).any(hides) {
                continue;
            }
            compared.push(part);
            let differ = |level| {
                let finer = self.finer(at, level, part)?;
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
        Ok(tile)
    }

    /// A piece that is decoded once, its blank patches filled once. One beyond the budget of memory stays as it is.
    ///
    /// # Errors
    /// As of [`Self::mended`].
    pub(crate) fn mended_piece(
        &self,
        at: TileAt,
        stored: Arc<Piece>,
    ) -> Result<Arc<Piece>, SlideError> {
        let Piece::Memory(tile, _) = &*stored else { return Ok(stored) };
        let known = |mended: &BTreeMap<TileAt, Option<Arc<Piece>>>| mended.get(&at).cloned();
        if let Some(known) = known(&self.mended.lock().unwrap_or_else(PoisonError::into_inner)) {
            return Ok(known.unwrap_or(stored));
        }
        let new = self.mended(at, Arc::clone(tile))?;
        let new = (!Arc::ptr_eq(&new, tile)).then(|| Arc::new(Piece::Memory(new, None)));
        let mut mended = self.mended.lock().unwrap_or_else(PoisonError::into_inner);
        mended.insert(at, new.clone());
        Ok(new.unwrap_or(stored))
    }

    /// Whether blank patches of a tile were filled.
    pub(crate) fn is_patched(&self, at: TileAt) -> bool {
        let patched = self.patched.lock().unwrap_or_else(PoisonError::into_inner);
        patched.get(&at.level).is_some_and(|tiles| tiles.contains(&(at.column, at.row)))
    }

    /// Bytes that the even tiles of a level have at most, and those that its full ones have at least.
    fn usual_bytes(&self, level: usize) -> [u64; 2] {
        let mut known = self.usual_bytes.lock().unwrap_or_else(PoisonError::into_inner);
        *known.entry(level).or_insert_with(|| {
            let (columns, rows) = self.levels()[level].grid();
            let all = columns * rows;
            let asked = (0..all).step_by((all / ASKED).max(1) as usize);
            let bytes = |i| self.opened.source.stored_bytes(level, i % columns, i / columns);
            let mut bytes: Vec<u64> = asked.filter_map(bytes).filter(|n| *n > 0).collect();
            bytes.sort_unstable();
            let at = |i: usize| bytes.get(i).copied().unwrap_or(u64::MAX);
            [at(bytes.len() / PARTS), at(bytes.len() * (PARTS - 2) / PARTS)]
        })
    }

    /// The tile of a finer level that is under a pixel of a tile.
    fn under(&self, at: TileAt, finer: usize, (x, y): (usize, usize)) -> Option<(u64, u64)> {
        let (own, fine) = (&self.levels()[at.level], &self.levels()[finer]);
        let place = |edge: u64, inner: usize, ratio: f64, side: u32| {
            ((edge as f64 + inner as f64) * ratio) as u64 / u64::from(side)
        };
        let (left, top) =
            (at.column * u64::from(own.tile_width), at.row * u64::from(own.tile_height));
        let column = place(left, x, own.downsample_x / fine.downsample_x, fine.tile_width);
        let row = place(top, y, own.downsample_y / fine.downsample_y, fine.tile_height);
        let (columns, rows) = fine.grid();
        (column < columns && row < rows).then_some((column, row))
    }

    /// Whether the data of the finer tile under the middle of a square of a colour are longer than those of an even
    /// tile; where their length is not known, whether the colour is that of nothing painted.
    fn is_long(&self, at: TileAt, finer: usize, middle: (usize, usize), colour: [u8; 3]) -> bool {
        let Some((column, row)) = self.under(at, finer, middle) else { return false };
        let is_pure = colour.iter().all(|c| *c <= PURE) || colour.iter().all(|c| *c >= 255 - PURE);
        let fine = &self.levels()[finer];
        let area = u64::from(fine.tile_width) * u64::from(fine.tile_height);
        match self.opened.source.stored_bytes(finer, column, row) {
            None => is_pure,
            Some(bytes) if is_pure => bytes > area / EVEN,
            Some(bytes) => {
                let even = || LONGER.saturating_mul(self.usual_bytes(finer)[0]).max(area / EVEN);
                bytes > area / GLASS || bytes > even()
            }
        }
    }

    /// Whether the data of a finer level's tile under the middle of a square are longer than those of an even tile, and
    /// than what is seen above it.
    fn may_hide(&self, at: TileAt, finer: usize, middle: (usize, usize), seen: Seen<'_>) -> bool {
        let Some((column, row)) = self.under(at, finer, middle) else { return false };
        if !self.is_long(at, finer, middle, seen.colour) {
            return false;
        }
        let bytes = self.opened.source.stored_bytes(finer, column, row);
        let (Some(bytes), false) = (bytes, seen.is_cut) else { return seen.is_cut };
        let (own, fine) = (&self.levels()[at.level], &self.levels()[finer]);
        let (rx, ry) = (own.downsample_x / fine.downsample_x, own.downsample_y / fine.downsample_y);
        let (left, top) =
            (at.column * u64::from(own.tile_width), at.row * u64::from(own.tile_height));
        if bytes <= self.usual_bytes(finer)[1] / FULL {
            return false;
        }
        // Of the squares above the finer tile, those that show no more than the blank part.
        let span = |edge: u64, i: u64, side: u32, ratio: f64, most: usize| {
            let low = (i * u64::from(side)) as f64 / ratio - edge as f64;
            low.max(0.0)..(low + f64::from(side) / ratio).min(most as f64)
        };
        let ends = (own.width - left, own.height - top);
        let side = |tile: u32, end: u64| u64::from(tile).min(end) as usize;
        let across = span(left, column, fine.tile_width, rx, side(own.tile_width, ends.0));
        let down = span(top, row, fine.tile_height, ry, side(own.tile_height, ends.1));
        let above =
            |(x, y): &(usize, usize)| across.contains(&(*x as f64)) && down.contains(&(*y as f64));
        let (mut all, mut plain) = (0_u32, 0_u32);
        for (x, y) in squares(seen.tile).filter(above) {
            all += 1;
            plain += u32::from(is_plain(seen.tile, x, y, seen.colour));
        }
        f64::from(plain) >= NOTHING * f64::from(all)
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

    /// Reads all tiles of some coarse levels, to know their blank patches and those that cannot be decoded.
    ///
    /// # Errors
    /// Those of reading the file.
    pub(crate) fn look_through(
        &self,
        is_wanted: impl Fn(usize, &Level) -> bool,
    ) -> Result<(), SlideError> {
        let levels = self.levels().iter().enumerate().skip(1);
        for (level, l) in levels.filter(|(level, l)| is_wanted(*level, l)) {
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
        let note = |(level, tiles): (&usize, &std::collections::BTreeSet<_>)| {
            let n = base::text::Many(tiles.len(), "tile");
            let finer = level - 1;
            format!("{n} of level {level} with a blank part, where level {finer} was read instead")
        };
        patched.iter().map(note).collect()
    }
}

/// A blank part of a tile.
struct Blank {
    part: Rect,
    /// Whether it ends at a straight edge, next to something else.
    is_cut: bool,
}

/// What is seen of a tile around a blank part.
#[derive(Clone, Copy)]
struct Seen<'a> {
    colour: [u8; 3],
    is_cut: bool,
    tile: &'a RgbTile,
}

/// Whether a part holds a square.
fn holds(part: &Rect, x: usize, y: usize) -> bool {
    let inside = |low: i64, side: u64, at: usize| (low..low + side as i64).contains(&(at as i64));
    inside(part.x, part.width, x) && inside(part.y, part.height, y)
}

/// Places of the squares that are looked at.
fn squares(tile: &RgbTile) -> impl Iterator<Item = (usize, usize)> + use<> {
    let (width, height) = (tile.width, tile.height);
    let rows = (0..height.div_ceil(STEP)).map(|k| k * STEP);
    let rows = rows.filter(move |y| y + STEP <= height || *y == 0);
    rows.flat_map(move |y| (0..width / STEP).map(move |k| (k * STEP, y)))
}

fn row(tile: &RgbTile, y: usize) -> &[[u8; 3]] {
    tile.data[3 * y * tile.width..][..3 * tile.width].as_chunks::<3>().0
}

/// Whether a square has one colour alone.
fn is_even(tile: &RgbTile, x: usize, y: usize) -> bool {
    let height = STEP.min(tile.height);
    let colour = row(tile, y)[x];
    // Most squares differ from corner to corner.
    row(tile, y + height - 1)[x + STEP - 1] == colour
        && (y..y + height).all(|y| row(tile, y)[x..x + STEP].iter().all(|p| *p == colour))
}

fn is_other(p: [u8; 3], colour: [u8; 3]) -> bool {
    p.iter().zip(colour).any(|(a, b)| f64::from(a.abs_diff(b)) > ALLOWED)
}

/// Whether a square shows no more than a colour, by its corners and its middle.
fn is_plain(tile: &RgbTile, x: usize, y: usize, colour: [u8; 3]) -> bool {
    let (right, bottom) = (x + STEP - 1, y + STEP.min(tile.height) - 1);
    let places =
        [(x, y), (right, y), (x, bottom), (right, bottom), (x + STEP / 2, (y + bottom) / 2)];
    places.iter().all(|&(x, y)| !is_other(row(tile, y)[x], colour))
}

/// The blank part around an even square.
fn blank(tile: &RgbTile, x: usize, y: usize) -> Option<Blank> {
    let height = STEP.min(tile.height);
    let colour = row(tile, y)[x];
    let tall = SIDE.min(tile.height);
    let (wide, most) = (SIDE * SIDE / tall, SIDE * SIDE);
    let count = |line: &mut dyn Iterator<Item = [u8; 3]>| {
        line.take(most).take_while(|p| *p == colour).count()
    };
    let left = x - count(&mut row(tile, y)[..x].iter().rev().copied());
    let right = x + count(&mut row(tile, y)[x..].iter().copied());
    let top = y - count(&mut (0..y).rev().map(|y| row(tile, y)[x]));
    let bottom = y + count(&mut (y..tile.height).map(|y| row(tile, y)[x]));
    if right - left < wide || bottom - top < tall {
        return None;
    }
    // Along the whole of a square's side there is the colour on this side of the edge, and another one beyond it.
    let column = |inner: usize, outer: usize| {
        (y..y + height)
            .all(|y| row(tile, y)[inner] == colour && is_other(row(tile, y)[outer], colour))
    };
    let line = |inner: usize, outer: usize| {
        let places = x..x + STEP;
        row(tile, inner)[places.clone()].iter().all(|p| *p == colour)
            && row(tile, outer)[places].iter().all(|p| is_other(*p, colour))
    };
    let is_cut = (left > 0 && column(left, left - 1))
        || (right < tile.width && column(right - 1, right))
        || (top > 0 && line(top, top - 1))
        || (bottom < tile.height && line(bottom - 1, bottom));
    // In the middle of what is even, as far as the part goes: levels may be a pixel apart.
    let start = |low: usize, high: usize, at: usize, side: usize, own: usize| {
        at.saturating_sub((side - own) / 2).clamp(low, high - side)
    };
    let (x, y) = (start(left, right, x, wide, STEP), start(top, bottom, y, tall, height));
    let part = Rect::new(x as i64, y as i64, wide, tall);
    Some(Blank { part, is_cut })
}

/// Whether a square is not of that colour.
fn differs(square: &RgbTile, colour: [u8; 3]) -> bool {
    let mut sums = [0u64; 3];
    for p in square.data.as_chunks::<3>().0 {
        sums.iter_mut().zip(p).for_each(|(s, v)| *s += u64::from(*v));
    }
    let mean = sums.map(|s| s as f64 / (square.width * square.height) as f64);
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Nanoseconds that this thread has run.
    fn ran() -> u64 {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
        text.split(' ').next().unwrap().parse().unwrap()
    }

    /// `cargo nextest run -p mithras-slide the_look_for_blank_patches --run-ignored only --no-capture`
    #[test]
    #[ignore = "a measurement"]
    #[cfg(target_os = "linux")]
    fn the_look_for_blank_patches_in_milliseconds() {
        let Some(path) = testkit::data("slides/tcga-cr-7395-01a-01-ts1.svs") else { return };
        let mut best = [u64::MAX; 2];
        for _ in 0..9 {
            let slide = Slide::open(&path).unwrap();
            let (columns, rows) = slide.levels()[1].grid();
            let all = (0..rows).flat_map(|row| (0..columns).map(move |column| (column, row)));
            let all: Vec<TileAt> =
                all.map(|(column, row)| TileAt { level: 1, column, row }).collect();
            let start = ran();
            let tiles: Vec<_> = all
                .iter()
                .map(|at| slide.opened.source.tile(1, at.column, at.row).unwrap().tile)
                .collect();
            let decoded = ran();
            for (at, tile) in all.iter().zip(tiles) {
                slide.mended(*at, tile).unwrap();
            }
            best = [best[0].min(decoded - start), best[1].min(ran() - decoded)];
        }
        let [decode, look] = best.map(|ns| ns as f64 / 1e6);
        println!("{decode:.2} ms to decode, {look:.3} ms to look: {:.2} %", 100.0 * look / decode);
    }
}
