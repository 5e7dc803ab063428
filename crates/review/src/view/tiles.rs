//! Tiles and crops of slides as JPEG, made when they are asked for.

use base::remedy::{Remedied, Remedy};
use jpeg_encoder::{ColorType, Encoder, SamplingFactor};
use lru::LruCache;
use mitosis::RgbTile;
use slide::{OpenOptions, Rect, Slide, SlideError};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Side of a tile, px.
pub const TILE: usize = 512;
const QUALITY: u8 = 90;
/// Bytes of encoded tiles that are kept.
const KEPT_BYTES: usize = 64 << 20;
/// Slides that are kept open.
const KEPT_SLIDES: usize = 6;
/// Decoded pixels that each of them keeps.
const SLIDE_BYTES: usize = 48 << 20;
/// What a crop shows, um, and its side where um/px is known.
const CROP_UM: f64 = 32.0;
const CROP_PX: f64 = 128.0;

/// Why a tile cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum TileError {
    /// The slide has no tile at that place.
    #[error("no such tile")]
    Outside,
    /// The slide cannot be read.
    #[error(transparent)]
    Slide(#[from] SlideError),
    /// The encoder failed.
    #[error("cannot encode: {0}")]
    Encode(#[from] jpeg_encoder::EncodingError),
}

/// The level of a slide that is level 0 of the file; level 0 here is one tile.
#[must_use]
pub fn max_level((width, height): (u64, u64)) -> u32 {
    let mut level = 0;
    while width.max(height) > (TILE as u64) << level {
        level += 1;
    }
    level
}

/// Opens a slide with a small cache.
pub(super) fn open_slide(file: &Path) -> Result<Slide, SlideError> {
    Slide::open_with(file, &OpenOptions { cache_bytes: SLIDE_BYTES, ..OpenOptions::default() })
}

/// A tile of one of the slides, by the slide's place in the list.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    slide: usize,
    tile: TileAddress,
}

struct Kept {
    tiles: LruCache<Key, Arc<[u8]>>,
    bytes: usize,
}

/// Which tile of a slide's pyramid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TileAddress {
    /// 0 is one pixel, the highest is the slide as it is.
    pub level: u32,
    /// From the left.
    pub column: u64,
    /// From the top.
    pub row: u64,
}

/// Open slides and the tiles made last, shared by threads.
pub struct Tiles {
    slides: Mutex<LruCache<usize, Arc<Slide>>>,
    kept: Mutex<Kept>,
    gate: Gate,
}

impl Default for Tiles {
    fn default() -> Self {
        let workers = std::thread::available_parallelism().map_or(2, usize::from);
        Self {
            slides: Mutex::new(LruCache::unbounded()),
            kept: Mutex::new(Kept { tiles: LruCache::unbounded(), bytes: 0 }),
            gate: Gate { free: Mutex::new(workers), left: Condvar::new() },
        }
    }
}

impl Tiles {
    /// The opened slide of a place in the list.
    ///
    /// # Errors
    /// [`TileError::Slide`].
    pub fn slide(&self, id: usize, file: &Path) -> Result<Arc<Slide>, TileError> {
        if let Some(slide) = locked(&self.slides).get(&id) {
            return Ok(Arc::clone(slide));
        }
        let slide = Arc::new(open_slide(file)?);
        let mut slides = locked(&self.slides);
        slides.put(id, Arc::clone(&slide));
        while slides.len() > KEPT_SLIDES {
            slides.pop_lru();
        }
        Ok(slide)
    }

    /// A tile as JPEG: level [`max_level`] is level 0 of the file, each below is half of the one above.
    /// At the right and lower edge it is cut to the slide. Pixels that cannot be decoded are white.
    ///
    /// # Errors
    /// [`TileError`].
    pub fn tile(&self, id: usize, file: &Path, tile: TileAddress) -> Result<Arc<[u8]>, TileError> {
        let (key, TileAddress { level, column, row }) = (Key { slide: id, tile }, tile);
        if let Some(tile) = locked(&self.kept).tiles.get(&key) {
            return Ok(Arc::clone(tile));
        }
        let slide = self.slide(id, file)?;
        let (width, height) = slide.dimensions();
        let shrunk = max_level((width, height)).checked_sub(level).ok_or(TileError::Outside)?;
        let side = |extent: u64, at: u64| {
            let extent = extent.div_ceil(1 << shrunk);
            let start = at.checked_mul(TILE as u64).filter(|s| *s < extent)?;
            Some((start as i64, (extent - start).min(TILE as u64) as usize))
        };
        let (Some((x, w)), Some((y, h))) = (side(width, column), side(height, row)) else {
            return Err(TileError::Outside);
        };
        let bytes: Arc<[u8]> = {
            let _turn = self.gate.enter();
            let (tile, _) = slide.read_reduced((1_u64 << shrunk) as f64, Rect::new(x, y, w, h))?;
            jpeg(&tile)?.into()
        };
        self.store(key, &bytes);
        Ok(bytes)
    }

    fn store(&self, key: Key, bytes: &Arc<[u8]>) {
        let mut kept = locked(&self.kept);
        kept.bytes += bytes.len();
        if let Some(old) = kept.tiles.put(key, Arc::clone(bytes)) {
            kept.bytes -= old.len();
        }
        while kept.bytes > KEPT_BYTES {
            let Some((_, old)) = kept.tiles.pop_lru() else { break };
            kept.bytes -= old.len();
        }
    }

    /// A crop as JPEG: 32 um around a level-0 place, at most 128 px; 128 level-0 px where um/px is
    /// unknown.
    ///
    /// # Errors
    /// [`TileError`].
    pub fn crop(
        &self,
        id: usize,
        file: &Path,
        mpp: Option<f64>,
        (x, y): (f64, f64),
    ) -> Result<Vec<u8>, TileError> {
        let slide = self.slide(id, file)?;
        let (width, height) = slide.dimensions();
        if !((0.0..=width as f64).contains(&x) && (0.0..=height as f64).contains(&y)) {
            return Err(TileError::Outside);
        }
        let shown = mpp.map_or(CROP_PX, |m| CROP_UM / m);
        let factor = (shown / CROP_PX).max(1.0);
        let side = (shown / factor).round().max(1.0) as usize;
        let corner = |v: f64| (v / factor - side as f64 / 2.0).round() as i64;
        let _turn = self.gate.enter();
        let (tile, _) = slide.read_reduced(factor, Rect::new(corner(x), corner(y), side, side))?;
        Ok(jpeg(&tile)?)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn jpeg(tile: &RgbTile) -> Result<Vec<u8>, jpeg_encoder::EncodingError> {
    let mut bytes = Vec::with_capacity(64 << 10);
    let mut encoder = Encoder::new(&mut bytes, QUALITY);
    encoder.set_sampling_factor(SamplingFactor::F_1_1);
    encoder.encode(&tile.data, tile.width as u16, tile.height as u16, ColorType::Rgb)?;
    Ok(bytes)
}

/// So many tiles are made at once, that memory does not grow with the requests.
struct Gate {
    free: Mutex<usize>,
    left: Condvar,
}

struct Turn<'a>(&'a Gate);

impl Gate {
    fn enter(&self) -> Turn<'_> {
        let free = locked(&self.free);
        let free = self.left.wait_while(free, |free| *free == 0);
        *free.unwrap_or_else(PoisonError::into_inner) -= 1;
        Turn(self)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *locked(&self.0.free) += 1;
        self.0.left.notify_one();
    }
}

impl Remedied for TileError {
    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Slide(e) => e.remedy(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_end_with_one_tile() {
        for (size, level) in
            [((1, 1), 0), ((512, 512), 0), ((513, 2), 1), ((1024, 1025), 2), ((100_000, 5), 8)]
        {
            assert_eq!(max_level(size), level, "{size:?}");
        }
    }

    #[test]
    fn kept_tiles_stay_within_their_share() {
        let tiles = Tiles::default();
        let big: Arc<[u8]> = vec![0; KEPT_BYTES / 4].into();
        for k in 0..9 {
            tiles.store(Key { slide: 0, tile: TileAddress { level: 0, column: 0, row: k } }, &big);
        }
        let kept = locked(&tiles.kept);
        assert_eq!((kept.bytes, kept.tiles.len()), (KEPT_BYTES, 4));
    }
}
