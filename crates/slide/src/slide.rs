//! [`Slide`]: one opened slide, shared by threads.

use crate::SlideError;
use crate::cache::TileCache;
use crate::file::{SlideFile, shown};
use crate::format::{self, OpenedFormat};
use crate::limits::Fault;
use crate::memory::Memory;
use crate::options::{MppRule, OpenOptions};
use crate::resample::{self, Axis};
use crate::resolution::{Refusal, decimal, given, settle};
use crate::scratch::{Piece, Scratch};
use crate::source::{AssociatedImage, BACKGROUND, Disagreement, Level, Opened, TileAt};
use mitosis::{Mpp, Rect, Resolution, RgbTile};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Largest result of one read, in bytes of RGB.
pub const MAX_READ_BYTES: u64 = 2 << 30;
/// Source bytes that one resampling step holds at most; larger requests are cut.
const STEP_BYTES: u64 = 48 << 20;

/// An opened slide. `Send + Sync`; reads from several threads run at once.
pub struct Slide {
    pub(crate) path: PathBuf,
    format: &'static str,
    pub(crate) opened: Opened,
    pub(crate) file: Arc<SlideFile>,
    resolution: Result<Resolution, Refusal>,
    pub(crate) cache: TileCache,
    pub(crate) scratch: Scratch,
    pub(crate) memory: Memory,
    /// Tiles decoded so far whose data are doubtful, with the reason.
    pub(crate) suspect: Mutex<BTreeMap<TileAt, String>>,
    /// Levels that contradict finer ones, once they were compared.
    pub(crate) agreement: Mutex<Option<Vec<Disagreement>>>,
    /// By level, the tiles read so far that cannot be decoded, and for which a finer level was read.
    pub(crate) passed_over: Mutex<BTreeMap<usize, BTreeSet<(u64, u64)>>>,
    /// By level, the tiles read so far whose blank patches were filled.
    pub(crate) patched: Mutex<BTreeMap<usize, BTreeSet<(u64, u64)>>>,
    /// Pieces of coarse levels that are decoded once, with their blank patches filled; `None` without one.
    pub(crate) mended: Mutex<BTreeMap<TileAt, Option<Arc<Piece>>>>,
    /// Bytes of the even and of the full tiles of a level.
    pub(crate) usual_bytes: Mutex<BTreeMap<usize, [u64; 2]>>,
}

/// What is reported of a tile that cannot be decoded: `Ok` leaves its pixels white.
pub(crate) type Unread<'a> = &'a mut dyn FnMut(SlideError, TileAt) -> Result<(), SlideError>;

/// Leaves nothing out.
fn strict(e: SlideError, _: TileAt) -> Result<(), SlideError> {
    Err(e)
}

impl std::fmt::Debug for Slide {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Slide")
            .field("path", &self.path)
            .field("format", &self.format)
            .finish_non_exhaustive()
    }
}

impl Slide {
    /// Opens a slide by its content, with default options.
    ///
    /// # Errors
    /// [`SlideError`] when the file is missing, unreadable, damaged or of an unknown kind. A missing
    /// resolution is not an error here: see [`Slide::resolution`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, SlideError> {
        Self::open_with(path, &OpenOptions::default())
    }

    /// Opens a slide by its content.
    ///
    /// # Errors
    /// As [`Slide::open`].
    pub fn open_with(path: impl AsRef<Path>, options: &OpenOptions) -> Result<Self, SlideError> {
        let path = shown(path.as_ref())?;
        let OpenedFormat { name: format, opened, file } = format::open(&path, options)?;
        let power = objective_power(&opened.properties);
        let stated = settle(&opened.claims, power);
        let resolution = match options.mpp {
            None => stated,
            Some(mpp) => match options.mpp_rule {
                MppRule::Force => Ok(Resolution::user(mpp)),
                MppRule::Fill if stated.is_ok() => stated,
                MppRule::Fill | MppRule::Agree => given(mpp, &opened.claims, power),
            },
        };
        let memory = options.limits.memory.clone();
        Ok(Self {
            path,
            format,
            opened,
            file,
            resolution,
            cache: TileCache::new(memory.slide(), options.cache_bytes),
            scratch: Scratch::new(&options.limits),
            memory,
            suspect: Mutex::default(),
            agreement: Mutex::default(),
            passed_over: Mutex::default(),
            patched: Mutex::default(),
            mended: Mutex::default(),
            usual_bytes: Mutex::default(),
        })
    }

    /// The file; an address is here without its query.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Name of the reader in [`FORMATS`](crate::FORMATS) that opened it.
    #[must_use]
    pub fn format(&self) -> &'static str {
        self.format
    }

    /// Vendor: `aperio`, `generic-tiff`, `ome-tiff`, `flat`, or OpenSlide's word.
    #[must_use]
    pub fn vendor(&self) -> &str {
        &self.opened.vendor
    }

    /// Maker of the scanner as the file states it, in one spelling (`Aperio`, `Hamamatsu`, ...); none where no field
    /// names one, as in many converted files.
    #[must_use]
    pub fn scanner(&self) -> Option<&'static str> {
        crate::maker::maker(&self.opened.properties, &self.opened.vendor)
    }

    /// Level-0 width and height in pixels.
    #[must_use]
    pub fn dimensions(&self) -> (u64, u64) {
        (self.opened.levels[0].width, self.opened.levels[0].height)
    }

    /// The pyramid, finest level first; never empty.
    #[must_use]
    pub fn levels(&self) -> &[Level] {
        &self.opened.levels
    }

    /// Level-0 resolution with its source.
    ///
    /// # Errors
    /// [`SlideError::MissingResolution`], [`SlideError::ContradictingResolution`] or
    /// [`SlideError::ImplausibleResolution`]; the remedy is `--mpp`
    /// ([`OpenOptions::mpp`]).
    pub fn resolution(&self) -> Result<&Resolution, SlideError> {
        self.resolution.as_ref().map_err(|r| r.error(&self.path))
    }

    /// Vendor properties as found, sorted by name.
    #[must_use]
    pub fn properties(&self) -> &BTreeMap<String, String> {
        &self.opened.properties
    }

    /// The non-empty region in level-0 pixels (`openslide.bounds-*`), if the format states one.
    #[must_use]
    pub fn bounds(&self) -> Option<Rect> {
        self.opened.bounds
    }

    /// Label, macro photograph, thumbnail: names and sizes.
    #[must_use]
    pub fn associated_images(&self) -> &[AssociatedImage] {
        &self.opened.associated
    }

    /// Decodes an associated image.
    ///
    /// # Errors
    /// [`SlideError::Associated`] when there is not one of that name or it cannot be decoded.
    pub fn associated_image(&self, name: &str) -> Result<RgbTile, SlideError> {
        let fail =
            |reason| SlideError::Associated { path: self.path.clone(), name: name.into(), reason };
        let known = &self.opened.associated;
        let index = known.iter().position(|a| a.name == name).ok_or_else(|| {
            let names: Vec<_> = known.iter().map(|a| a.name.as_str()).collect();
            fail(format!("not in this slide, which has [{}]", names.join(", ")))
        })?;
        self.opened.source.associated(index).map_err(|fault| match fault {
            Fault::Limit(breach) => SlideError::limit(&self.path, breach),
            Fault::Damaged(reason) | Fault::Unsupported(reason) => {
                self.file.or_failure(&self.path, fail(reason))
            }
            Fault::Read(reason) => {
                self.file.or_failure(&self.path, SlideError::read(&self.path, reason))
            }
        })
    }

    /// Width and height of the working frame at `mpp`: every working pixel that touches the slide.
    ///
    /// # Errors
    /// When the slide has no resolution.
    pub fn working_dimensions(&self, mpp: Mpp) -> Result<(u64, u64), SlideError> {
        let r = self.resolution()?;
        let (w, h) = self.dimensions();
        Ok((
            Axis::new(r.x.get(), mpp.get(), w).outputs(),
            Axis::new(r.y.get(), mpp.get(), h).outputs(),
        ))
    }

    /// Level-0 pixels per working pixel at `mpp`, per axis (the frame of `docs/ARCHITECTURE.md`).
    ///
    /// # Errors
    /// When the slide has no resolution.
    pub fn working_scale(&self, mpp: Mpp) -> Result<(f64, f64), SlideError> {
        let r = self.resolution()?;
        let unit = |own: Mpp| Axis::new(own.get(), mpp.get(), 1).ratio;
        Ok((unit(r.x), unit(r.y)))
    }

    /// The coarsest level that is still at least as fine as `mpp` (level 0 when none is) and that finer
    /// levels do not contradict ([`Slide::disagreements`]).
    ///
    /// # Errors
    /// When the slide has no resolution, or cannot be read.
    pub fn level_for(&self, mpp: Mpp) -> Result<usize, SlideError> {
        let r = self.resolution()?;
        let fine = |l: &Level| {
            let limit = mpp.get() * (1.0 + resample::SAME);
            r.x.get() * l.downsample_x <= limit && r.y.get() * l.downsample_y <= limit
        };
        self.trusted(self.opened.levels.iter().rposition(fine).unwrap_or(0))
    }

    /// Reads the pixels of `level` whose top left corner is the level-0 pixel (`rect.x`, `rect.y`), as
    /// OpenSlide does; the corner is rounded down to a pixel of the level. What is outside the
    /// slide is white ([`BACKGROUND`]).
    ///
    /// # Errors
    /// [`SlideError::Tile`] when a tile in the rectangle cannot be decoded (of a coarse level: nor taken from the next
    /// finer one), [`SlideError::NoSuchLevel`], [`SlideError::TooLarge`].
    pub fn read_region(&self, level: usize, rect: Rect) -> Result<RgbTile, SlideError> {
        let l = self.level(level)?;
        let Rect { x, y, .. } = rect;
        let down = |v: i64, d: f64| ((v as f64 / d) + resample::SAME).floor() as i64;
        let (lx, ly) =
            if level == 0 { (x, y) } else { (down(x, l.downsample_x), down(y, l.downsample_y)) };
        self.read_level(level, Rect { x: lx, y: ly, ..rect })
    }

    /// Reads a rectangle of `level` in that level's own pixels; white outside.
    ///
    /// # Errors
    /// As [`Slide::read_region`].
    pub fn read_level(&self, level: usize, rect: Rect) -> Result<RgbTile, SlideError> {
        self.read_tiles(level, rect, &mut strict)
    }

    pub(crate) fn read_tiles(
        &self,
        level: usize,
        rect: Rect,
        unread: Unread<'_>,
    ) -> Result<RgbTile, SlideError> {
        self.read_pieces(level, rect, &|at| self.piece(at), unread)
    }

    /// The same of the tiles that `piece` gives.
    pub(crate) fn read_pieces(
        &self,
        level: usize,
        rect: Rect,
        piece: &dyn Fn(TileAt) -> Result<Arc<Piece>, SlideError>,
        unread: Unread<'_>,
    ) -> Result<RgbTile, SlideError> {
        let (x, y, w, h) = rect.parts();
        let l = self.level(level)?;
        let size = self.allowed(w, h)?;
        let mut out = RgbTile { width: w, height: h, data: vec![BACKGROUND; size] };
        let (x0, x1) = (x.max(0) as u64, clip(x, w, l.width));
        let (y0, y1) = (y.max(0) as u64, clip(y, h, l.height));
        if x0 >= x1 || y0 >= y1 {
            return Ok(out);
        }
        let (tw, th) = (u64::from(l.tile_width), u64::from(l.tile_height));
        for row in y0 / th..=(y1 - 1) / th {
            for column in x0 / tw..=(x1 - 1) / tw {
                let at = TileAt { level, column, row };
                if self.is_lost_strip(at) {
                    continue;
                }
                let piece = match piece(at) {
                    Ok(piece) => piece,
                    Err(e) => {
                        unread(e, at)?;
                        continue;
                    }
                };
                let (pw, ph) = piece.size();
                let (tx, ty) = (column * tw, row * th);
                let (ax, bx) = (x0.max(tx), x1.min(tx + pw as u64));
                let (ay, by) = (y0.max(ty), y1.min(ty + ph as u64));
                if ax >= bx {
                    continue;
                }
                let n = 3 * (bx - ax) as usize;
                for yy in ay..by {
                    let to = 3 * ((yy as i64 - y) as usize * w + (ax as i64 - x) as usize);
                    let line = &mut out.data[to..to + n];
                    let copied = piece.copy((ax - tx) as usize, (yy - ty) as usize, line);
                    copied.map_err(|e| self.tile_error(at, Fault::Damaged(e)))?;
                }
            }
        }
        Ok(out)
    }

    /// Reads a rectangle of the working frame at `mpp`: pixel (i, j) is the area
    /// `[i, i+1) x [j, j+1)` in pixels of `mpp`, from the level-0 origin. The source is
    /// [`Slide::level_for`]; pixels are resampled unless both resolutions are equal within 1e-6
    /// relative: area mean when shrinking, linear interpolation when enlarging. Deterministic and
    /// independent of the cut: two adjacent rectangles equal their union. White outside.
    ///
    /// # Errors
    /// When the slide has no resolution, or as [`Slide::read_region`].
    pub fn read_at(&self, mpp: Mpp, rect: Rect) -> Result<RgbTile, SlideError> {
        self.read_working(mpp, self.level_for(mpp)?, rect, &mut strict)
    }

    /// States that nothing left of and above the lower right corner of a rectangle of [`Slide::read_at`] will be read
    /// again soon, as where windows are read row by row: the tiles that end in the rectangle are the first to make
    /// room for others.
    pub fn passed(&self, mpp: Mpp, rect: Rect) {
        let (Ok(level), Ok(r)) = (self.level_for(mpp), self.resolution()) else { return };
        let l = &self.opened.levels[level];
        let ending = |from: i64, n: u64, own: Mpp, downsample: f64, side: u32| {
            let ratio = mpp.get() / (own.get() * downsample) / f64::from(side);
            let ends = |v: f64| (v * ratio).floor().max(0.0) as u64;
            ends(from as f64)..ends(from as f64 + n as f64)
        };
        let columns = ending(rect.x, rect.width, r.x, l.downsample_x, l.tile_width);
        for row in ending(rect.y, rect.height, r.y, l.downsample_y, l.tile_height) {
            for column in columns.clone() {
                self.cache.demote((level as u32, column as u32, row as u32));
            }
        }
    }

    /// [`Slide::read_at`] in which tiles that cannot be decoded, nor taken from a finer level, are left white; with the
    /// pixels come their places.
    ///
    /// # Errors
    /// As [`Slide::read_at`], unless only tiles are at fault.
    pub fn read_partial(&self, mpp: Mpp, rect: Rect) -> Result<(RgbTile, Vec<TileAt>), SlideError> {
        self.read_seen(mpp, self.level_for(mpp)?, rect)
    }

    /// [`Slide::read_at`], or nothing where a tile of it cannot be decoded.
    ///
    /// # Errors
    /// When the file itself cannot be read: [`SlideError::is_file`].
    pub fn read_whole_at(&self, mpp: Mpp, rect: Rect) -> Result<Option<RgbTile>, SlideError> {
        match self.read_at(mpp, rect) {
            Ok(tile) => Ok(Some(tile)),
            Err(e) if e.is_file() => Err(e),
            Err(_) => Ok(None),
        }
    }

    /// Why the file could not be read at some time since it was opened; none where every read was served. Results
    /// of a slide with such a failure are not those of the whole slide.
    #[must_use]
    pub fn read_failure(&self) -> Option<SlideError> {
        self.file.failure(&self.path)
    }

    /// All of the slide at a coarse `mpp`: from the level that serves it, or where tiles of that
    /// cannot be decoded from the next finer one that can; see [`Slide::read_partial`].
    pub(crate) fn overview(&self, mpp: Mpp) -> Result<(RgbTile, Vec<TileAt>), SlideError> {
        let (w, h) = self.working_dimensions(mpp)?;
        let mut level = self.level_for(mpp)?;
        loop {
            let seen = self.read_seen(mpp, level, Rect { x: 0, y: 0, width: w, height: h })?;
            if seen.1.is_empty() || level == 0 {
                return Ok(seen);
            }
            let mut passed = self.passed_over.lock().unwrap_or_else(PoisonError::into_inner);
            passed.entry(level).or_default().extend(seen.1.iter().map(|at| (at.column, at.row)));
            drop(passed);
            level = self.trusted(level - 1)?;
        }
    }

    fn read_seen(
        &self,
        mpp: Mpp,
        level: usize,
        area: Rect,
    ) -> Result<(RgbTile, Vec<TileAt>), SlideError> {
        let mut unread = BTreeSet::new();
        let image = self.read_working(mpp, level, area, &mut |e, at| {
            unread.insert(at);
            if e.is_tile() { Ok(()) } else { Err(e) }
        })?;
        Ok((image, unread.into_iter().collect()))
    }

    fn read_working(
        &self,
        mpp: Mpp,
        index: usize,
        area: Rect,
        unread: Unread<'_>,
    ) -> Result<RgbTile, SlideError> {
        let r = self.resolution()?;
        let l = &self.opened.levels[index];
        let ax = Axis::new(r.x.get() * l.downsample_x, mpp.get(), l.width);
        let ay = Axis::new(r.y.get() * l.downsample_y, mpp.get(), l.height);
        self.read_axes(index, &ax, &ay, area, unread)
    }

    /// The whole slide, shrunk so that its longer side has at most `max_side` pixels. Uses pixels,
    /// not um, and so works without a resolution.
    ///
    /// # Errors
    /// As [`Slide::read_region`].
    pub fn thumbnail(&self, max_side: usize) -> Result<RgbTile, SlideError> {
        self.small(max_side, &mut strict)
    }

    /// [`Slide::thumbnail`] in which tiles that cannot be decoded are left white.
    ///
    /// # Errors
    /// As [`Slide::thumbnail`], unless only a tile is at fault.
    pub fn thumbnail_partial(&self, max_side: usize) -> Result<RgbTile, SlideError> {
        self.small(max_side, &mut |e, _| if e.is_tile() { Ok(()) } else { Err(e) })
    }

    fn small(&self, max_side: usize, unread: Unread<'_>) -> Result<RgbTile, SlideError> {
        let (w, h) = self.dimensions();
        let ratio = (w.max(h) as f64 / max_side.max(1) as f64).max(1.0);
        let fine = |l: &Level| l.downsample_x.max(l.downsample_y) <= ratio * (1.0 + resample::SAME);
        let index = self.trusted(self.opened.levels.iter().rposition(fine).unwrap_or(0))?;
        let l = &self.opened.levels[index];
        let ax = Axis::new(l.downsample_x, ratio, l.width);
        let ay = Axis::new(l.downsample_y, ratio, l.height);
        let (ow, oh) = ((w as f64 / ratio).round().max(1.0), (h as f64 / ratio).round().max(1.0));
        self.read_axes(index, &ax, &ay, Rect::new(0, 0, ow as usize, oh as usize), unread)
    }

    pub(crate) fn read_axes(
        &self,
        level: usize,
        ax: &Axis,
        ay: &Axis,
        rect: Rect,
        unread: Unread<'_>,
    ) -> Result<RgbTile, SlideError> {
        let (x, y, w, h) = rect.parts();
        if ax.is_identity() && ay.is_identity() {
            return self.read_tiles(level, rect, unread);
        }
        self.allowed(w, h)?;
        if w == 0 || h == 0 {
            return Ok(RgbTile { width: w, height: h, data: Vec::new() });
        }
        let need = 3.0 * (w as f64 * ax.ratio + 2.0) * (h as f64 * ay.ratio + 2.0);
        if need > STEP_BYTES as f64 && (w > 1 || h > 1) {
            return self.read_in_halves(level, ax, ay, rect, unread);
        }
        let (tx, ty) = (ax.taps(x, w), ay.taps(y, h));
        let source =
            self.read_tiles(level, Rect::new(tx.start, ty.start, tx.len, ty.len), unread)?;
        Ok(RgbTile {
            width: w,
            height: h,
            data: resample::apply(&source.data, &tx, &ty, BACKGROUND),
        })
    }

    fn read_in_halves(
        &self,
        level: usize,
        ax: &Axis,
        ay: &Axis,
        rect: Rect,
        unread: Unread<'_>,
    ) -> Result<RgbTile, SlideError> {
        let (x, y, w, h) = rect.parts();
        // Rows are cut only when one band is narrow enough: tiles of a band are then met once.
        let band = 3.0 * (w as f64 * ax.ratio + 2.0) * (ay.ratio + 2.0);
        if h > 1 && band <= STEP_BYTES as f64 {
            let top = h / 2;
            let below = Rect::new(x, y + top as i64, w, h - top);
            let mut a = self.read_axes(level, ax, ay, Rect::new(x, y, w, top), unread)?;
            let b = self.read_axes(level, ax, ay, below, unread)?;
            a.data.extend_from_slice(&b.data);
            return Ok(RgbTile::new(w, h, a.data));
        }
        if w == 1 {
            let what = "one pixel of so coarse a resolution".into();
            let bytes = band as u128;
            return Err(SlideError::TooLarge {
                path: self.path.clone(),
                what,
                bytes,
                limit: STEP_BYTES,
            });
        }
        let left = w / 2;
        let right = Rect::new(x + left as i64, y, w - left, h);
        let a = self.read_axes(level, ax, ay, Rect::new(x, y, left, h), unread)?;
        let b = self.read_axes(level, ax, ay, right, unread)?;
        let mut data = Vec::with_capacity(3 * w * h);
        for (l, r) in a.data.chunks_exact(3 * left).zip(b.data.chunks_exact(3 * (w - left))) {
            data.extend_from_slice(l);
            data.extend_from_slice(r);
        }
        Ok(RgbTile::new(w, h, data))
    }

    fn level(&self, level: usize) -> Result<&Level, SlideError> {
        let levels = self.opened.levels.len();
        self.opened.levels.get(level).ok_or_else(|| SlideError::NoSuchLevel {
            path: self.path.clone(),
            level,
            levels,
        })
    }

    fn allowed(&self, w: usize, h: usize) -> Result<usize, SlideError> {
        let bytes = 3 * w as u128 * h as u128;
        if bytes > u128::from(MAX_READ_BYTES) {
            let what = format!("a rectangle of {w} x {h} pixels");
            return Err(SlideError::TooLarge {
                path: self.path.clone(),
                what,
                bytes,
                limit: MAX_READ_BYTES,
            });
        }
        Ok(bytes as usize)
    }
}

/// End of `[start, start + n)` within `[0, extent)`.
fn clip(start: i64, n: usize, extent: u64) -> u64 {
    (i128::from(start) + n as i128).clamp(0, i128::from(extent)) as u64
}

fn objective_power(properties: &BTreeMap<String, String>) -> Option<f64> {
    ["aperio.AppMag", "openslide.objective-power"]
        .iter()
        .find_map(|k| properties.get(*k).map(|v| decimal(v)).filter(|v| v.is_finite()))
}
