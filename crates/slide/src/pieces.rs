//! Tiles, strips and whole images of a slide: decoded, kept, and judged.

use crate::limits::Fault;
use crate::scratch::Piece;
use crate::source::{Decoded, Rect, TileAt, TileState};
use crate::{Slide, SlideError};
use mitosis::Mm2;
use std::sync::{Arc, PoisonError};

impl Slide {
    /// Tiles of a level that the file states were left out. They are read as white.
    #[must_use]
    pub fn absent_tiles(&self, level: usize) -> Vec<TileAt> {
        if level >= self.opened.levels.len() {
            return Vec::new();
        }
        let places = self.opened.source.left_out(level).into_iter();
        places.map(|(column, row)| TileAt { level, column, row }).collect()
    }

    /// Tiles decoded so far whose data are doubtful, with the reason: data after the end, no end
    /// marker, restart markers out of turn. Their pixels were taken as they are.
    #[must_use]
    pub fn suspect_tiles(&self) -> Vec<(TileAt, String)> {
        let suspect = self.suspect.lock().unwrap_or_else(PoisonError::into_inner);
        suspect.iter().map(|(at, why)| (*at, why.clone())).collect()
    }

    /// Adds tiles that an earlier process found suspect ([`Slide::suspect_tiles`]).
    pub fn mark_suspect(&self, tiles: &[(TileAt, String)]) {
        let mut suspect = self.suspect.lock().unwrap_or_else(PoisonError::into_inner);
        suspect.extend(tiles.iter().cloned());
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
        }
    }

    /// Whether the pieces of a level are decoded once and kept: those of a picture in one piece,
    /// and strips that would drive each other out of the cache.
    fn kept(&self, level: usize) -> bool {
        let l = &self.opened.levels[level];
        let bytes = 3 * l.width.saturating_mul(l.height);
        self.opened.source.stripped(level)
            && (l.grid() == (1, 1) || bytes > self.cache.capacity() as u64 / 4)
    }

    pub(crate) fn piece(&self, at: TileAt) -> Result<Arc<Piece>, Fault> {
        let TileAt { level, column, row } = at;
        let key = (level as u32, column as u32, row as u32);
        let source = &self.opened.source;
        if self.kept(level) {
            let l = &self.opened.levels[level];
            let side =
                |n: u64, tile: u32, i: u64| u64::from(tile).min(n - i * u64::from(tile)) as usize;
            let size = (side(l.width, l.tile_width, column), side(l.height, l.tile_height, row));
            return self.scratch.piece(key, size, |rows| {
                let mut sink = |line: &[u8]| rows.push(line);
                let state = self.memory.work(source.working_bytes(level), || {
                    source.rows(level, column, row, &mut sink)
                })?;
                self.note(at, state);
                Ok(())
            });
        }
        if let Some(tile) = self.cache.get(key) {
            return Ok(Arc::new(Piece::Memory(tile, None)));
        }
        let work = source.working_bytes(level);
        let Decoded { tile, state } = self.memory.work(work, || source.tile(level, column, row))?;
        self.note(at, state);
        self.cache.put(key, &tile);
        Ok(Arc::new(Piece::Memory(tile, None)))
    }

    fn note(&self, at: TileAt, state: TileState) {
        if let TileState::Suspect(why) = state {
            self.suspect.lock().unwrap_or_else(PoisonError::into_inner).insert(at, why.into());
        }
    }
}
