//! One image of a TIFF: its grid of tiles or strips, and their decoding to RGB.

use super::codec::{self, Coding};
use super::ifd::{Ifd, tag};
use crate::source::Level;
use mitosis::RgbTile;

/// Largest decoded tile, bytes of RGB.
const MAX_TILE_BYTES: u64 = 64 << 20;
/// Largest decoded strip, bytes of RGB: flat images are often one strip.
const MAX_STRIP_BYTES: u64 = 1 << 30;
const MAX_SIDE: u64 = 1 << 31;

/// A tiled or stripped image.
pub(crate) struct TiffImage {
    ifd: Ifd,
    pub(crate) width: u64,
    pub(crate) height: u64,
    pub(crate) tile_width: u64,
    pub(crate) tile_height: u64,
    pub(crate) tiled: bool,
    /// `NewSubfileType` bit 0.
    pub(crate) reduced: bool,
    columns: u64,
    rows: u64,
    offsets: Vec<u64>,
    counts: Vec<u64>,
    coding: Coding,
}

impl TiffImage {
    /// Reads and checks the fields that describe the image.
    pub(crate) fn new(ifd: &Ifd) -> Result<Self, String> {
        let need = |t: u16, what: &str| -> Result<u64, String> {
            match ifd.uint(t)? {
                Some(v) if v > 0 && v < MAX_SIDE => Ok(v),
                Some(v) => Err(format!("{what} is {v}")),
                None => Err(format!("{what} is missing")),
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
        let limit = if tiled { MAX_TILE_BYTES } else { MAX_STRIP_BYTES };
        let bytes = 3 * u128::from(tile_width) * u128::from(tile_height);
        if bytes > u128::from(limit) {
            return Err(format!(
                "tiles of {tile_width} x {tile_height} pixels are larger than what is read at once"
            ));
        }
        let (columns, rows) = (width.div_ceil(tile_width), height.div_ceil(tile_height));
        let coding = Coding::new(ifd)?;
        let planes = if coding.planar { coding.samples as u64 } else { 1 };
        let tiles = columns.checked_mul(rows).and_then(|n| n.checked_mul(planes));
        let tiles = tiles.ok_or("more tiles than can be counted")?;
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
        if (offsets.len() as u64) < tiles || (counts.len() as u64) < tiles {
            return Err(format!(
                "{tiles} tiles are needed, {} offsets and {} sizes are there",
                offsets.len(),
                counts.len()
            ));
        }
        let reduced = ifd.uint_or(tag::SUBFILE_TYPE, 0)? & 1 == 1;
        Ok(Self {
            ifd: ifd.clone(),
            width,
            height,
            tile_width,
            tile_height,
            tiled,
            reduced,
            columns,
            rows,
            offsets,
            counts,
            coding,
        })
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

    /// Decodes one tile, cut to the image. A tile of zero bytes was left out by the scanner: `None`.
    pub(crate) fn tile(&self, column: u64, row: u64) -> Result<Option<RgbTile>, String> {
        if column >= self.columns || row >= self.rows {
            return Err(format!("outside the grid of {} x {}", self.columns, self.rows));
        }
        let width = self.tile_width.min(self.width - column * self.tile_width) as usize;
        let height = self.tile_height.min(self.height - row * self.tile_height) as usize;
        // The last strip is stored short, the last tile padded.
        let stored_height = if self.tiled { self.tile_height as usize } else { height };
        let stored = (self.tile_width as usize, stored_height);
        let index = row * self.columns + column;
        let chunk = |plane: u64| -> Result<Vec<u8>, String> {
            let i = (plane * self.columns * self.rows + index) as usize;
            self.ifd.data(self.offsets[i], self.counts[i])
        };
        if self.counts[index as usize] == 0 {
            return if self.tiled { Ok(None) } else { Err("a strip without data".into()) };
        }
        let data = if self.coding.planar {
            let planes: Result<Vec<_>, _> = (0..self.coding.samples as u64).map(chunk).collect();
            codec::decode_planes(&self.coding, &planes?, stored, (width, height))?
        } else {
            codec::decode(&self.coding, &chunk(0)?, stored, (width, height))?
        };
        Ok(Some(RgbTile { width, height, data }))
    }

    /// Decodes the whole image (for small associated ones).
    pub(crate) fn whole(&self, limit_bytes: u64) -> Result<RgbTile, String> {
        let bytes = 3 * u128::from(self.width) * u128::from(self.height);
        if bytes > u128::from(limit_bytes) {
            return Err(format!("{bytes} bytes, more than the limit of {limit_bytes}"));
        }
        let (w, h) = (self.width as usize, self.height as usize);
        let mut out = RgbTile::filled(w, h, [crate::slide::BACKGROUND; 3]);
        for row in 0..self.rows {
            for column in 0..self.columns {
                let Some(t) = self.tile(column, row)? else { continue };
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
