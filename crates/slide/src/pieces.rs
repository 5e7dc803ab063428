//! Tiles, strips and whole images of a slide: decoded, kept, and judged.

use crate::limits::Fault;
use crate::resample::{Axis, SAME};
use crate::scratch::Piece;
use crate::source::BACKGROUND;
use crate::source::{Decoded, SuspectTile, TileAt, TileState};
use crate::{Slide, SlideError};
use mitosis::{Mm2, Rect, RgbTile};
use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError};

/// Largest tile or strip that is made of a finer level, bytes of RGB.
const MAX_FILLED: u64 = 64 << 20;

impl Slide {
    /// Tiles of a level that the file states were left out. They are read as white.
    #[must_use]
    pub fn absent_tiles(&self, level: usize) -> Vec<TileAt> {
        if level >= self.opened.levels.len() {
            return Vec::new();
        }
        let places = self.opened.source.left_out(level).into_iter();
        let mut lost = Vec::new();
        places.for_each(|(column, row)| self.lost(TileAt { level, column, row }, &mut lost));
        lost.sort_unstable();
        lost.dedup();
        lost
    }

    /// How many tiles of a level the file leaves out but the next finer level holds.
    #[must_use]
    pub fn filled_tiles(&self, level: usize) -> usize {
        if level == 0 || level >= self.opened.levels.len() {
            return 0;
        }
        let places = self.opened.source.left_out(level).into_iter();
        places.filter(|&(column, row)| self.is_below(TileAt { level, column, row })).count()
    }

    /// The tiles of the next finer level that a tile covers.
    fn below(&self, at: TileAt) -> impl Iterator<Item = TileAt> + use<> {
        let (own, fine) = (&self.opened.levels[at.level], &self.opened.levels[at.level - 1]);
        let span = |i: u64, tile: u32, ratio: f64, fine_tile: u32, most: u64| {
            let edge = |i: u64| (i * u64::from(tile)) as f64 * ratio / f64::from(fine_tile);
            let low = (edge(i) + SAME).floor() as u64;
            low.min(most)..((edge(i + 1) - SAME).ceil() as u64).min(most)
        };
        let (columns, rows) = fine.grid();
        let (x, y) = (own.downsample_x / fine.downsample_x, own.downsample_y / fine.downsample_y);
        let across = span(at.column, own.tile_width, x, fine.tile_width, columns);
        let down = span(at.row, own.tile_height, y, fine.tile_height, rows);
        let level = at.level - 1;
        down.flat_map(move |row| across.clone().map(move |column| TileAt { level, column, row }))
    }

    fn is_absent(&self, TileAt { level, column, row }: TileAt) -> bool {
        self.opened.source.absent(level, column, row)
    }

    /// Whether a finer level holds any of a tile that is left out.
    fn is_below(&self, at: TileAt) -> bool {
        at.level > 0 && self.below(at).any(|t| !self.is_absent(t) || self.is_below(t))
    }

    /// Whether a strip is white because no level holds anything of it. It may be too large to be held itself.
    pub(crate) fn is_lost_strip(&self, at: TileAt) -> bool {
        self.opened.source.stripped(at.level) && self.is_absent(at) && !self.is_below(at)
    }

    /// Adds what no level holds of a tile that is left out.
    fn lost(&self, at: TileAt, out: &mut Vec<TileAt>) {
        if self.is_below(at) {
            self.below(at).filter(|t| self.is_absent(*t)).for_each(|t| self.lost(t, out));
        } else {
            out.push(at);
        }
    }

    /// A tile that is left out or cannot be decoded, from the next finer level.
    fn filled(&self, at: TileAt) -> Result<RgbTile, SlideError> {
        let l = &self.opened.levels[at.level];
        let side =
            |n: u64, tile: u32, i: u64| u64::from(tile).min(n - i * u64::from(tile)) as usize;
        let w = side(l.width, l.tile_width, at.column);
        let h = side(l.height, l.tile_height, at.row);
        if 3 * w as u64 * h as u64 > MAX_FILLED {
            let what = format!("{w} x {h} pixels without data, more than a finer level fills");
            return Err(self.tile_error(at, Fault::Damaged(what)));
        }
        if self.is_absent(at) && !self.is_below(at) {
            return Ok(RgbTile::filled(w, h, [BACKGROUND; 3]));
        }
        let fine = &self.opened.levels[at.level - 1];
        let ax = Axis::new(fine.downsample_x, l.downsample_x, fine.width);
        let ay = Axis::new(fine.downsample_y, l.downsample_y, fine.height);
        let x = (at.column * u64::from(l.tile_width)) as i64;
        let y = (at.row * u64::from(l.tile_height)) as i64;
        self.read_axes(at.level - 1, &ax, &ay, Rect::new(x, y, w, h), &mut |e, _| Err(e))
    }

    /// Tiles decoded so far whose data are doubtful. Their pixels were taken as they are.
    #[must_use]
    pub fn suspect_tiles(&self) -> Vec<SuspectTile> {
        let suspect = self.suspect.lock().unwrap_or_else(PoisonError::into_inner);
        suspect.iter().map(|(at, why)| SuspectTile { at: *at, reason: why.clone() }).collect()
    }

    /// Adds tiles that an earlier process found suspect ([`Slide::suspect_tiles`]).
    pub fn mark_suspect(&self, tiles: &[SuspectTile]) {
        let mut suspect = self.suspect.lock().unwrap_or_else(PoisonError::into_inner);
        suspect.extend(tiles.iter().map(|t| (t.at, t.reason.clone())));
    }

    /// Level-0 pixels that a tile covers, rounded outwards and cut to the slide.
    ///
    /// # Panics
    /// When the slide has no such level.
    #[must_use]
    pub fn tile_rect(&self, at: TileAt) -> Rect {
        let l = &self.opened.levels[at.level];
        let (w, h) = self.dimensions();
        let span = |i: u64, tile: u32, scale: f64, extent: u64| {
            let edge = |i: u64| (i * u64::from(tile)) as f64 * scale;
            let low = (edge(i).floor() as u64).min(extent);
            (low, (edge(i + 1).ceil() as u64).min(extent))
        };
        let (x0, x1) = span(at.column, l.tile_width, l.downsample_x, w);
        let (y0, y1) = span(at.row, l.tile_height, l.downsample_y, h);
        Rect { x: x0 as i64, y: y0 as i64, width: x1 - x0, height: y1 - y0 }
    }

    /// Area of some tiles of one level.
    ///
    /// # Errors
    /// When the slide has no resolution.
    pub fn tiles_area(&self, tiles: impl IntoIterator<Item = TileAt>) -> Result<Mm2, SlideError> {
        let r = self.resolution()?;
        let pixel = r.x.get() * r.y.get() * 1e-6;
        let area = |at| {
            let rect = self.tile_rect(at);
            rect.width as f64 * rect.height as f64 * pixel
        };
        // An empty sum of floats is -0.
        Ok(Mm2(tiles.into_iter().map(area).fold(0.0, |a, b| a + b)))
    }

    pub(crate) fn tile_error(&self, at: TileAt, fault: Fault) -> SlideError {
        match fault {
            Fault::Limit(breach) => SlideError::limit(&self.path, breach),
            Fault::Damaged(reason) | Fault::Unsupported(reason) => {
                let (level, column, row) = (at.level, at.column, at.row);
                let path = self.path.clone();
                let tile = SlideError::Tile { path, level, column, row, reason };
                self.file.or_failure(&self.path, tile)
            }
            Fault::Read(reason) => {
                self.file.or_failure(&self.path, SlideError::read(&self.path, reason))
            }
        }
    }

    /// Whether the pieces of a level are decoded once and kept: those of an image in one piece, strips
    /// that would drive each other out of the cache, and tiles larger than the whole cache.
    fn kept(&self, level: usize) -> bool {
        let l = &self.opened.levels[level];
        let bytes = 3 * l.width.saturating_mul(l.height);
        if 3 * u64::from(l.tile_width) * u64::from(l.tile_height) > self.cache.capacity() as u64 {
            return true;
        }
        self.opened.source.stripped(level)
            && (l.grid() == (1, 1) || bytes > self.cache.capacity() as u64 / 4)
    }

    pub(crate) fn piece(&self, at: TileAt) -> Result<Arc<Piece>, SlideError> {
        let TileAt { level, column, row } = at;
        let key = (level as u32, column as u32, row as u32);
        let absent = self.is_absent(at);
        let memory = |tile| Ok(Arc::new(Piece::Memory(tile, None)));
        if !absent && !self.is_passed_over(at) && self.kept(level) {
            match self.kept_piece(at) {
                Ok(stored) if level == 0 => return Ok(stored),
                Ok(stored) => return self.mended_piece(at, stored),
                Err(e) => {
                    let tile = Arc::new(self.instead(at, e)?);
                    self.cache.put(key, &tile);
                    return memory(tile);
                }
            }
        }
        if let Some(tile) = self.cache.get(key) {
            return memory(tile);
        }
        // Of several threads that want a large tile, one decodes it.
        let l = &self.opened.levels[level];
        let turn = self.cache.turn(key, 3 * u64::from(l.tile_width) * u64::from(l.tile_height));
        let _turn = turn.as_ref().map(|t| t.lock().unwrap_or_else(PoisonError::into_inner));
        if let Some(tile) = turn.as_ref().and_then(|_| self.cache.get(key)) {
            return memory(tile);
        }
        let tile = match absent || self.is_passed_over(at) {
            true => Arc::new(self.filled(at)?),
            false => match self.decoded(at) {
                Ok(tile) => self.mended(at, tile)?,
                Err(e) => Arc::new(self.instead(at, e)?),
            },
        };
        self.cache.put(key, &tile);
        memory(tile)
    }

    /// A tile of a coarse level that cannot be decoded, from the next finer level, with a note of the slide.
    ///
    /// # Errors
    /// Its own error on level 0, where it is not of the tile alone, and where the finer level cannot be decoded either.
    fn instead(&self, at: TileAt, e: SlideError) -> Result<RgbTile, SlideError> {
        if at.level == 0 || !e.is_tile() {
            return Err(e);
        }
        match self.filled(at) {
            Err(finer) if finer.is_tile() => Err(e),
            filled => {
                let tile = filled?;
                let mut passed = self.passed_over.lock().unwrap_or_else(PoisonError::into_inner);
                passed.entry(at.level).or_default().insert((at.column, at.row));
                Ok(tile)
            }
        }
    }

    /// Whether a tile cannot be decoded, and a finer level was read instead.
    fn is_passed_over(&self, at: TileAt) -> bool {
        let passed = || self.passed_over.lock().unwrap_or_else(PoisonError::into_inner);
        let is_in = |tiles: &BTreeSet<(u64, u64)>| tiles.contains(&(at.column, at.row));
        at.level > 0 && passed().get(&at.level).is_some_and(is_in)
    }

    /// A piece that is decoded once, as the file has it.
    fn kept_piece(&self, at: TileAt) -> Result<Arc<Piece>, SlideError> {
        let TileAt { level, column, row } = at;
        let (key, source) = ((level as u32, column as u32, row as u32), &self.opened.source);
        let l = &self.opened.levels[level];
        let side =
            |n: u64, tile: u32, i: u64| u64::from(tile).min(n - i * u64::from(tile)) as usize;
        let size = (side(l.width, l.tile_width, column), side(l.height, l.tile_height, row));
        let decoded = self.scratch.piece(key, size, |rows| {
            let mut sink = |line: &[u8]| rows.push(line);
            let state = self
                .memory
                .work(source.working_bytes(level), || source.rows(level, column, row, &mut sink))?;
            self.note(at, state);
            Ok(())
        });
        decoded.map_err(|fault| self.tile_error(at, fault))
    }

    /// A tile as the file has it.
    pub(crate) fn stored_piece(&self, at: TileAt) -> Result<Arc<Piece>, SlideError> {
        if at.level == 0 || self.is_absent(at) {
            return self.piece(at);
        }
        if self.kept(at.level) {
            return self.kept_piece(at);
        }
        let key = (at.level as u32, at.column as u32, at.row as u32);
        let is_changed = self.is_patched(at) || self.is_passed_over(at);
        let cached = self.cache.get(key).filter(|_| !is_changed);
        let tile = match cached {
            Some(tile) => tile,
            None => {
                let tile = self.decoded(at)?;
                // Who reads the level next need not decode it again.
                self.cache.put(key, &self.mended(at, Arc::clone(&tile))?);
                tile
            }
        };
        Ok(Arc::new(Piece::Memory(tile, None)))
    }

    fn decoded(&self, at: TileAt) -> Result<Arc<RgbTile>, SlideError> {
        let (source, TileAt { level, column, row }) = (&self.opened.source, at);
        let work = source.working_bytes(level);
        let decoded = self.memory.work(work, || source.tile(level, column, row));
        let Decoded { tile, state } = decoded.map_err(|fault| self.tile_error(at, fault))?;
        self.note(at, state);
        Ok(tile)
    }

    fn note(&self, at: TileAt, state: TileState) {
        if let TileState::Suspect(why) = state {
            self.suspect.lock().unwrap_or_else(PoisonError::into_inner).insert(at, why.into());
        }
    }
}
