//! One image of a TIFF: its grid of tiles or strips, and their decoding to RGB.

use super::codec::{self, Coding};
use super::ifd::{Ifd, tag};
use crate::limits::{Fault, Limits, SMALL, check};
use crate::source::{Decoded, Level, TileState};
use mitosis::RgbTile;
use std::sync::Arc;

/// Widest row of an image in strips, pixels.
const MAX_ROW: u64 = 1 << 24;
/// Largest decoded tile, bytes of RGB.
const MAX_TILE_BYTES: u64 = 64 << 20;
const MAX_SIDE: u64 = 1 << 31;
const NO_DATA: &str = "a strip or plane without data";

/// A tiled or stripped image.
#[derive(Clone)]
pub(crate) struct TiffImage {
    ifd: Ifd,
    pub(crate) width: u64,
    pub(crate) height: u64,
    pub(crate) tile_width: u64,
    pub(crate) tile_height: u64,
    pub(crate) tiled: bool,
    columns: u64,
    rows: u64,
    offsets: Arc<[u64]>,
    counts: Arc<[u64]>,
    coding: Coding,
}

/// Where each tile or strip is, and its bytes: those of `lines` lines of `columns` at least; their product fits.
fn tables(ifd: &Ifd, tiled: bool, columns: u64, lines: u64) -> Result<(Vec<u64>, Vec<u64>), Fault> {
    let tiles = columns * lines;
    let (to, tc) = if tiled {
        (tag::TILE_OFFSETS, tag::TILE_COUNTS)
    } else {
        (tag::STRIP_OFFSETS, tag::STRIP_COUNTS)
    };
    // Some writers put tiles into the strip tags.
    let offsets = match ifd.uints(to)? {
        Some(v) => v,
        None => ifd.uints(tag::STRIP_OFFSETS)?.ok_or("no tile offsets")?,
    };
    let counts = match ifd.uints(tc)? {
        Some(v) => v,
        None => ifd.uints(tag::STRIP_COUNTS)?.ok_or("no tile byte counts")?,
    };
    // Data of more columns of tiles than the sizes have: every row would be moved.
    let more = || {
        let is_columns = (counts.len() as u64).is_multiple_of(lines);
        is_columns && counts.iter().skip(tiles as usize).any(|n| *n > 0)
    };
    if (offsets.len() as u64) < tiles || (counts.len() as u64) < tiles || tiled && more() {
        return Err(format!(
            "{tiles} tiles are needed, {} offsets and {} sizes are there",
            offsets.len(),
            counts.len()
        )
        .into());
    }
    Ok((offsets, counts))
}

impl TiffImage {
    /// Reads and checks the fields that describe the image.
    pub(crate) fn new(ifd: &Ifd, limits: &Limits) -> Result<Self, Fault> {
        let need = |t: u16, what: &str| -> Result<u64, Fault> {
            match ifd.uint(t)? {
                Some(v) if v > 0 && v < MAX_SIDE => Ok(v),
                Some(v) => Err(format!("{what} is {v}").into()),
                None => Err(format!("{what} is missing").into()),
            }
        };
        let (width, height) =
            (need(tag::WIDTH, "image width")?, need(tag::HEIGHT, "image height")?);
        let tiled = ifd.has(tag::TILE_WIDTH);
        let (tile_width, tile_height) = if tiled {
            (need(tag::TILE_WIDTH, "tile width")?, need(tag::TILE_HEIGHT, "tile height")?)
        } else {
            let rows = ifd.uint_or(tag::ROWS_PER_STRIP, height)?;
            if rows == 0 {
                return Err("rows per strip is 0".into());
            }
            (width, rows.min(height))
        };
        let bytes = 3 * u128::from(tile_width) * u128::from(tile_height);
        if tiled && bytes > u128::from(MAX_TILE_BYTES) {
            return Err(Fault::Unsupported(format!(
                "tiles of {tile_width} x {tile_height} pixels, more than is read at once"
            )));
        }
        if !tiled && width > MAX_ROW {
            return Err(Fault::Unsupported(format!("strips of {width} pixels in a row")));
        }
        let (columns, rows) = (width.div_ceil(tile_width), height.div_ceil(tile_height));
        let coding = Coding::new(ifd)?;
        if !coding.by_rows() {
            let needed = u128::from(tile_width) * u128::from(tile_height);
            let what = || format!("decoding {tile_width} x {tile_height} pixels in one piece");
            limits.working(what, needed * u128::from(coding.bytes_per_pixel()))?;
        }
        let planes = if coding.planar { coding.samples as u64 } else { 1 };
        let tiles = columns.checked_mul(rows).and_then(|n| n.checked_mul(planes));
        tiles.ok_or("more tiles than can be counted")?;
        let (offsets, counts) = tables(ifd, tiled, columns, rows * planes)?;
        let stored = counts[..(columns * rows) as usize].iter().filter(|n| **n > 0).count();
        let decoded = bytes.saturating_mul(stored as u128);
        if decoded > u128::from(SMALL) {
            let ratio = decoded / u128::from(ifd.file_len().max(1));
            check("expansion", limits.expansion, ratio, || {
                format!("{decoded} bytes of RGB in a file of {}", ifd.file_len())
            })?;
        }
        Ok(Self {
            ifd: ifd.clone(),
            width,
            height,
            tile_width,
            tile_height,
            tiled,
            columns,
            rows,
            offsets: offsets.into(),
            counts: counts.into(),
            coding,
        })
    }

    /// Its directory.
    pub(crate) fn ifd(&self) -> &Ifd {
        &self.ifd
    }

    /// Whether a sample beyond the colours may be an opacity that no field declares.
    pub(crate) fn has_undeclared_opacity(&self) -> bool {
        self.coding.has_undeclared_opacity()
    }

    /// Whether it has no colour.
    pub(crate) fn is_grey(&self) -> bool {
        self.coding.is_grey()
    }

    /// Whether both images are the same bytes of the file.
    pub(crate) fn is_same_data(&self, other: &Self) -> bool {
        self.offsets == other.offsets && self.counts == other.counts
    }

    /// The level this image makes below a base of `w x h` pixels.
    pub(crate) fn level(&self, w: u64, h: u64) -> Level {
        let (downsample_x, downsample_y) = downsample((w, h), (self.width, self.height));
        Level {
            width: self.width,
            height: self.height,
            downsample_x,
            downsample_y,
            tile_width: self.tile_width as u32,
            tile_height: self.tile_height as u32,
        }
    }

    /// Size in pixels of one tile, cut to the image.
    fn size(&self, column: u64, row: u64) -> Result<(usize, usize), String> {
        if column >= self.columns || row >= self.rows {
            return Err(format!("outside the grid of {} x {}", self.columns, self.rows));
        }
        let width = self.tile_width.min(self.width - column * self.tile_width) as usize;
        let height = self.tile_height.min(self.height - row * self.tile_height) as usize;
        Ok((width, height))
    }

    /// Whether the file states that a tile or strip is left out. One strip without a size may be an old writer's that
    /// never filled the field in: a place is stated, and there are data.
    pub(crate) fn absent(&self, column: u64, row: u64) -> bool {
        let mut planes = (0..self.planes()).map(|plane| self.index(column, row, plane));
        let is_empty = |i: usize| self.counts.get(i) == Some(&0);
        planes.all(|i| is_empty(i) && (self.tiled || self.offsets.get(i) == Some(&0)))
    }

    /// Bytes of a tile, or of the strip that it is.
    pub(crate) fn stored_bytes(&self, column: u64, row: u64) -> Option<u64> {
        self.counts.get((row * self.columns + column) as usize).copied()
    }

    /// Places of the tiles that are left out.
    pub(crate) fn left_out(&self) -> Vec<(u64, u64)> {
        let tiles = (0..self.rows).flat_map(|r| (0..self.columns).map(move |c| (c, r)));
        tiles.filter(|&(c, r)| self.absent(c, r)).collect()
    }

    /// Decodes one tile, cut to the image. One of zero bytes was left out by the scanner: it is
    /// white, and stated to be absent.
    pub(crate) fn tile(&self, column: u64, row: u64) -> Result<Decoded, Fault> {
        let (width, height) = self.size(column, row)?;
        if self.absent(column, row) {
            let tile = RgbTile::filled(width, height, [crate::source::BACKGROUND; 3]);
            return Ok(Decoded { tile: Arc::new(tile), state: TileState::Absent });
        }
        let (data, state) = if self.coding.by_rows() {
            let mut data = Vec::with_capacity(3 * width * height);
            let state = self.rows(column, row, &mut |line| {
                data.extend_from_slice(line);
                Ok(())
            })?;
            (data, state)
        } else {
            self.whole_piece(column, row)?
        };
        Ok(Decoded { tile: Arc::new(RgbTile { width, height, data }), state })
    }

    /// Decodes one tile or strip that is there, handing on its rows.
    pub(crate) fn rows(
        &self,
        column: u64,
        row: u64,
        sink: &mut dyn FnMut(&[u8]) -> Result<(), String>,
    ) -> Result<TileState, Fault> {
        let size = self.size(column, row)?;
        if !self.coding.by_rows() {
            let (data, state) = self.whole_piece(column, row)?;
            data.chunks_exact(3 * size.0).try_for_each(sink)?;
            return Ok(state);
        }
        let planes = self.planes();
        let planes: Result<Vec<_>, Fault> = (0..planes)
            .map(|p| {
                let (at, n) = self.place(column, row, p)?;
                Ok(codec::PlaneBytes { bytes: self.ifd.stream(at, n)?, len: n })
            })
            .collect();
        codec::rows(&self.coding, planes?, self.stored(size), size, sink)?;
        Ok(TileState::Sound)
    }

    /// Decodes one tile or strip of JPEG or JPEG 2000, cut to the image.
    fn whole_piece(&self, column: u64, row: u64) -> Result<(Vec<u8>, TileState), Fault> {
        let size = self.size(column, row)?;
        let (at, n) = self.place(column, row, 0)?;
        let raw = self.ifd.data(at, n)?;
        let (data, doubt) = codec::decode(&self.coding, &raw, self.stored(size), size)?;
        Ok((data, doubt.map_or(TileState::Sound, TileState::Suspect)))
    }

    /// Size of a piece of so many pixels as it is stored: the last strip is short, the last tile padded.
    fn stored(&self, size: (usize, usize)) -> (usize, usize) {
        (self.tile_width as usize, if self.tiled { self.tile_height as usize } else { size.1 })
    }

    /// Offset and bytes of a plane of a piece.
    fn place(&self, column: u64, row: u64, plane: u64) -> Result<(u64, u64), String> {
        let i = self.index(column, row, plane);
        let (at, n) = (self.offsets[i], self.counts[i]);
        if n == 0 { Err(NO_DATA.into()) } else { Ok((at, n)) }
    }

    /// Planes that are stored one after the other.
    fn planes(&self) -> u64 {
        if self.coding.planar { self.coding.samples as u64 } else { 1 }
    }

    /// Number of a plane of a piece among all.
    fn index(&self, column: u64, row: u64, plane: u64) -> usize {
        ((plane * self.rows + row) * self.columns + column) as usize
    }

    /// Bytes of memory that decoding one tile takes, roughly.
    pub(crate) fn working_bytes(&self) -> u64 {
        let pixels = self.tile_width.saturating_mul(self.tile_height);
        if self.coding.by_rows() && !self.tiled {
            return 1 << 20;
        }
        pixels.saturating_mul(self.coding.bytes_per_pixel())
    }

    /// Decodes the whole image (for small associated ones). Strips that are left out have no colour here.
    pub(crate) fn whole(&self, limit_bytes: u64) -> Result<RgbTile, Fault> {
        let bytes = 3 * u128::from(self.width) * u128::from(self.height);
        if bytes > u128::from(limit_bytes) {
            return Err(format!("{bytes} bytes, more than the {limit_bytes} of such images").into());
        }
        let (w, h) = (self.width as usize, self.height as usize);
        let mut out = RgbTile::filled(w, h, [crate::source::BACKGROUND; 3]);
        for row in 0..self.rows {
            for column in 0..self.columns {
                if !self.tiled && self.absent(column, row) {
                    return Err(NO_DATA.into());
                }
                let t = self.tile(column, row)?.tile;
                let (x, y) =
                    ((column * self.tile_width) as usize, (row * self.tile_height) as usize);
                for (k, line) in t.data.chunks_exact(3 * t.width).enumerate() {
                    let to = 3 * ((y + k) * w + x);
                    out.data[to..to + line.len()].copy_from_slice(line);
                }
            }
        }
        Ok(out)
    }
}

/// Level-0 pixels per level pixel. Scanners shrink by a whole number and drop or add the rest at the
/// edge: where one whole number explains both sides, that is the factor, else the plain ratios.
pub(crate) fn downsample(base: (u64, u64), level: (u64, u64)) -> (f64, f64) {
    let ratio = |b: u64, l: u64| b as f64 / l.max(1) as f64;
    let (rx, ry) = (ratio(base.0, level.0), ratio(base.1, level.1));
    let explains = |d: u64, b: u64, l: u64| d > 0 && (b / d == l || b.div_ceil(d) == l);
    let around = [rx, ry, f64::midpoint(rx, ry)];
    let candidates =
        around.iter().flat_map(|r| [r.round() as u64, r.floor() as u64, r.ceil() as u64]);
    for d in candidates {
        if explains(d, base.0, level.0) && explains(d, base.1, level.1) {
            return (d as f64, d as f64);
        }
    }
    (rx.max(1.0), ry.max(1.0))
}

#[cfg(test)]
mod tests {
    use super::downsample;

    #[test]
    fn whole_factors_are_found() {
        assert_eq!(downsample((4443, 3567), (2221, 1783)), (2.0, 2.0));
        assert_eq!(downsample((300, 250), (75, 62)), (4.0, 4.0));
        assert_eq!(downsample((300, 250), (37, 31)), (8.0, 8.0));
        assert_eq!(downsample((1000, 1000), (1000, 1000)), (1.0, 1.0));
        assert_eq!(downsample((1000, 1000), (400, 400)), (2.5, 2.5));
    }
}
