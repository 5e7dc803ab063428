//! Writes a drawn slide as a tiled, pyramidal TIFF (JPEG tiles) without ever holding it whole.
//!
//! Tiles are drawn depth first, sixteen children before their parent, so that memory does not grow
//! with the slide; tiles without tissue share one drawing, so that time does not either.

use super::layout::{Layout, Spec};
use super::paint;
use base::progress::Listener;
use mitosis::{Rect, RgbTile};
use rayon::prelude::*;
use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Side of a tile, px; also the period of the sensor noise, so that empty tiles are equal.
const TILE: usize = paint::NOISE_PERIOD as usize;
/// Each level is this many times smaller than the one before.
const STEP: usize = 4;
/// Levels are added until the longer side is at most this, px.
const SMALLEST: u64 = 1024;
const QUALITY: u8 = 90;

/// Which TIFF to write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Container {
    /// BigTIFF only when the file could pass 4 GB.
    #[default]
    Auto,
    /// BigTIFF always.
    BigTiff,
}

/// Why a slide could not be written.
#[derive(Debug, thiserror::Error)]
pub enum PyramidError {
    /// The file system failed.
    #[error("cannot write {path}: {source}")]
    Io {
        /// Path of the drawn slide.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The JPEG encoder failed.
    #[error("cannot encode a tile of {path}: {reason}")]
    Encode {
        /// Path of the drawn slide.
        path: PathBuf,
        /// Cause, as the message shows it.
        reason: String,
    },
}

/// Draws `layout` into the file `path` (under a temporary name, then renamed). `listener` gets
/// tiles with tissue done and in all.
///
/// # Errors
/// [`PyramidError`] when the file cannot be written, a full disk included.
pub fn write(
    layout: &Layout,
    path: &Path,
    container: Container,
    listener: &mut dyn Listener,
) -> Result<(), PyramidError> {
    let fail = |source| PyramidError::Io { path: path.to_owned(), source };
    let temporary = base::file::new_temporary(path).map_err(|e| fail(e.source))?;
    let file = temporary.as_file().try_clone().map_err(fail)?;
    let mut writer = Writer::new(layout, file, container, listener);
    writer.all().map_err(|e| match e.downcast::<jpeg_encoder::EncodingError>() {
        Ok(e) => PyramidError::Encode { path: path.to_owned(), reason: e.to_string() },
        Err(source) => PyramidError::Io { path: path.to_owned(), source },
    })?;
    base::file::persist(temporary, path).map_err(|e| fail(e.source))
}

struct Level {
    width: u64,
    height: u64,
    cols: u64,
    rows: u64,
    /// Place and length of each tile; `(0, 0)` until written or shared.
    tiles: Vec<(u64, u32)>,
    /// The tile without tissue.
    empty: RgbTile,
}

struct Writer<'a> {
    layout: &'a Layout,
    out: BufWriter<File>,
    at: u64,
    big: bool,
    levels: Vec<Level>,
    done: u64,
    total: u64,
    listener: &'a mut dyn Listener,
}

impl<'a> Writer<'a> {
    fn new(
        layout: &'a Layout,
        file: File,
        container: Container,
        listener: &'a mut dyn Listener,
    ) -> Self {
        let spec = layout.spec();
        let (mut width, mut height) = (u64::from(spec.width), u64::from(spec.height));
        let mut levels: Vec<Level> = Vec::new();
        loop {
            let (cols, rows) = (width.div_ceil(TILE as u64), height.div_ceil(TILE as u64));
            let empty = match levels.last() {
                None => {
                    let outside = -100 * TILE as i64;
                    paint::draw(layout, Rect::new(outside, outside, TILE, TILE))
                }
                Some(l) => {
                    let children: Vec<&RgbTile> = vec![&l.empty; STEP * STEP];
                    shrink(&children)
                }
            };
            let tiles = vec![(0, 0); (cols * rows) as usize];
            levels.push(Level { width, height, cols, rows, tiles, empty });
            if width.max(height) <= SMALLEST {
                break;
            }
            width = (width / STEP as u64).max(1);
            height = (height / STEP as u64).max(1);
        }
        let l0 = &levels[0];
        let tile = TILE as i64;
        let total = (0..l0.cols * l0.rows)
            .filter(|k| {
                let (tx, ty) = ((k % l0.cols) as i64, (k / l0.cols) as i64);
                !layout.is_empty(Rect::new(tx * tile, ty * tile, TILE, TILE))
            })
            .count() as u64;
        // The worst case: tiles that JPEG does not shrink at all, on every level.
        let worst = total * (TILE * TILE * 3) as u64 * 11 / 10
            + levels.iter().map(|l| l.tiles.len() as u64 * 16).sum::<u64>();
        let big = container == Container::BigTiff || worst > 4_000_000_000;
        Self { layout, out: BufWriter::new(file), at: 0, big, levels, done: 0, total, listener }
    }

    fn all(&mut self) -> io::Result<()> {
        self.put(&vec![0; if self.big { 16 } else { 8 }])?;
        let top = self.levels.len() - 1;
        let span = |f: fn(&Level) -> u64, levels: &[Level]| {
            levels
                .iter()
                .enumerate()
                .map(|(l, level)| f(level).div_ceil((STEP as u64).pow((top - l) as u32)))
                .max()
                .unwrap_or(0)
        };
        let (cols, rows) = (span(|l| l.cols, &self.levels), span(|l| l.rows, &self.levels));
        for ty in 0..rows {
            for tx in 0..cols {
                self.tile(top, tx, ty)?;
            }
        }
        self.share_empty()?;
        self.directories()?;
        self.out.flush()
    }

    /// Writes a tile after all tiles below it, and returns it; `None` without tissue.
    fn tile(&mut self, level: usize, tx: u64, ty: u64) -> io::Result<Option<RgbTile>> {
        let side = TILE * STEP.pow(level as u32);
        let corner = |i: u64| i as i64 * side as i64;
        if self.layout.is_empty(Rect::new(corner(tx), corner(ty), side, side)) {
            return Ok(None);
        }
        if level == 0 {
            let one = self.drawn(&[(tx, ty)])?;
            return Ok(one.into_iter().next().flatten());
        }
        let step = STEP as u64;
        let places: Vec<(u64, u64)> =
            (0..step * step).map(|k| (tx * step + k % step, ty * step + k / step)).collect();
        let children = if level == 1 {
            self.drawn(&places)?
        } else {
            places.iter().map(|&(x, y)| self.tile(level - 1, x, y)).collect::<io::Result<_>>()?
        };
        if children.iter().all(Option::is_none) {
            return Ok(None);
        }
        let empty = &self.levels[level - 1].empty;
        let refs: Vec<&RgbTile> = children.iter().map(|c| c.as_ref().unwrap_or(empty)).collect();
        let tile = shrink(&refs);
        let bytes = encode(&tile)?;
        self.place(level, tx, ty, &bytes)?;
        Ok(Some(tile))
    }

    /// Draws and writes level-0 tiles, several at once.
    fn drawn(&mut self, places: &[(u64, u64)]) -> io::Result<Vec<Option<RgbTile>>> {
        let layout = self.layout;
        let (cols, rows) = (self.levels[0].cols, self.levels[0].rows);
        let drawn: Vec<Option<(RgbTile, Vec<u8>)>> = places
            .par_iter()
            .map(|&(tx, ty)| {
                let corner = |i: u64| i as i64 * TILE as i64;
                let rect = Rect::new(corner(tx), corner(ty), TILE, TILE);
                if tx >= cols || ty >= rows || layout.is_empty(rect) {
                    return Ok(None);
                }
                let image = paint::draw(layout, rect);
                let bytes = encode(&image)?;
                Ok(Some((image, bytes)))
            })
            .collect::<io::Result<_>>()?;
        let mut out = Vec::with_capacity(drawn.len());
        for (&(tx, ty), one) in places.iter().zip(drawn) {
            out.push(match one {
                None => None,
                Some((image, bytes)) => {
                    self.place(0, tx, ty, &bytes)?;
                    self.done += 1;
                    Some(image)
                }
            });
        }
        self.listener.update(self.done, self.total);
        Ok(out)
    }

    /// One stored tile serves every place without tissue.
    fn share_empty(&mut self) -> io::Result<()> {
        for l in 0..self.levels.len() {
            let bytes = encode(&self.levels[l].empty)?;
            let shared = (self.at, bytes.len() as u32);
            self.put(&bytes)?;
            self.levels[l].tiles.iter_mut().filter(|t| t.1 == 0).for_each(|t| *t = shared);
        }
        Ok(())
    }

    fn place(&mut self, level: usize, tx: u64, ty: u64, bytes: &[u8]) -> io::Result<()> {
        let l = &mut self.levels[level];
        if tx < l.cols && ty < l.rows {
            l.tiles[(ty * l.cols + tx) as usize] = (self.at, bytes.len() as u32);
            self.put(bytes)?;
        }
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)?;
        self.at += bytes.len() as u64;
        if self.at % 2 == 1 {
            self.out.write_all(&[0])?;
            self.at += 1;
        }
        Ok(())
    }

    fn directories(&mut self) -> io::Result<()> {
        let mut first = 0;
        let mut patch: Option<u64> = None;
        for l in 0..self.levels.len() {
            let entries = self.entries(l)?;
            let start = self.at;
            match patch {
                None => first = start,
                Some(at) => self.patch(at, start)?,
            }
            let mut raw = Vec::new();
            if self.big {
                raw.extend((entries.len() as u64).to_le_bytes());
            } else {
                raw.extend((entries.len() as u16).to_le_bytes());
            }
            for e in &entries {
                raw.extend(e.tag.to_le_bytes());
                raw.extend(e.kind.to_le_bytes());
                if self.big {
                    raw.extend(e.count.to_le_bytes());
                    raw.extend(e.value);
                } else {
                    raw.extend((e.count as u32).to_le_bytes());
                    raw.extend(&e.value[..4]);
                }
            }
            patch = Some(start + raw.len() as u64);
            raw.extend(if self.big { vec![0; 8] } else { vec![0; 4] });
            self.put(&raw)?;
        }
        let mut header = Vec::new();
        if self.big {
            header.extend(b"II\x2b\0\x08\0\0\0");
            header.extend(first.to_le_bytes());
        } else {
            header.extend(b"II\x2a\0");
            header.extend((first as u32).to_le_bytes());
        }
        self.out.seek(SeekFrom::Start(0))?;
        self.out.write_all(&header)
    }

    fn patch(&mut self, at: u64, value: u64) -> io::Result<()> {
        let bytes = value.to_le_bytes();
        self.out.seek(SeekFrom::Start(at))?;
        self.out.write_all(&bytes[..if self.big { 8 } else { 4 }])?;
        self.out.seek(SeekFrom::Start(self.at))?;
        Ok(())
    }

    fn entries(&mut self, l: usize) -> io::Result<Vec<Entry>> {
        const SHORT: u16 = 3;
        const LONG: u16 = 4;
        const ASCII: u16 = 2;
        const RATIONAL: u16 = 5;
        const LONG8: u16 = 16;
        let level = &self.levels[l];
        let (width, height) = (level.width as u32, level.height as u32);
        let spec = self.layout.spec();
        // Pixels per centimetre, exact for 0.25 um/px and its fourfold steps.
        let per_cm = 10_000.0 / Spec::MPP / (STEP as f64).powi(l as i32);
        let rational: Vec<u8> = [(per_cm * 65_536.0).round() as u32, 65_536]
            .iter()
            .flat_map(|v| v.to_le_bytes())
            .collect();
        let description = format!(
            "drawn by mithras demo: not a real slide; seed {}, {} mitotic figures, {} mimickers\0",
            spec.seed, spec.figures, spec.mimickers
        );
        let software = format!("mithras {}\0", env!("CARGO_PKG_VERSION"));
        let offsets: Vec<u64> = level.tiles.iter().map(|t| t.0).collect();
        let lengths: Vec<u8> = level.tiles.iter().flat_map(|t| t.1.to_le_bytes()).collect();
        let count = offsets.len() as u64;
        let (offset_kind, offset_bytes): (u16, Vec<u8>) = if self.big {
            (LONG8, offsets.iter().flat_map(|o| o.to_le_bytes()).collect())
        } else {
            (LONG, offsets.iter().flat_map(|&o| (o as u32).to_le_bytes()).collect())
        };
        let short = |v: u16| v.to_le_bytes().to_vec();
        let long = |v: u32| v.to_le_bytes().to_vec();
        let bits: Vec<u8> = [8u16; 3].iter().flat_map(|b| b.to_le_bytes()).collect();
        let sampling: Vec<u8> = [1u16; 2].iter().flat_map(|b| b.to_le_bytes()).collect();
        let fields: Vec<(u16, u16, u64, Vec<u8>)> = vec![
            (254, LONG, 1, long(u32::from(l > 0))),
            (256, LONG, 1, long(width)),
            (257, LONG, 1, long(height)),
            (258, SHORT, 3, bits),
            (259, SHORT, 1, short(7)),
            (262, SHORT, 1, short(6)),
            (270, ASCII, description.len() as u64, description.into_bytes()),
            (277, SHORT, 1, short(3)),
            (282, RATIONAL, 1, rational.clone()),
            (283, RATIONAL, 1, rational),
            (284, SHORT, 1, short(1)),
            (296, SHORT, 1, short(3)),
            (305, ASCII, software.len() as u64, software.into_bytes()),
            (322, LONG, 1, long(TILE as u32)),
            (323, LONG, 1, long(TILE as u32)),
            (324, offset_kind, count, offset_bytes),
            (325, LONG, count, lengths),
            (530, SHORT, 2, sampling),
        ];
        fields
            .into_iter()
            .map(|(tag, kind, count, data)| self.entry(tag, kind, count, data))
            .collect()
    }

    /// Values that do not fit the entry are written before the directory.
    fn entry(&mut self, tag: u16, kind: u16, count: u64, data: Vec<u8>) -> io::Result<Entry> {
        let room = if self.big { 8 } else { 4 };
        let mut value = [0; 8];
        if data.len() <= room {
            value[..data.len()].copy_from_slice(&data);
        } else {
            value = self.at.to_le_bytes();
            self.put(&data)?;
        }
        Ok(Entry { tag, kind, count, value })
    }
}

struct Entry {
    tag: u16,
    kind: u16,
    count: u64,
    value: [u8; 8],
}

/// Sixteen tiles in reading order become one of the same size, by the mean of 4 x 4 px.
fn shrink(children: &[&RgbTile]) -> RgbTile {
    let part = TILE / STEP;
    let mut data = vec![0; 3 * TILE * TILE];
    for (k, child) in children.iter().enumerate() {
        let (left, top) = (k % STEP * part, k / STEP * part);
        for j in 0..part {
            for i in 0..part {
                let mut sum = [0u32; 3];
                for dj in 0..STEP {
                    let row = 3 * ((j * STEP + dj) * TILE + i * STEP);
                    for px in child.data[row..row + 3 * STEP].chunks_exact(3) {
                        for c in 0..3 {
                            sum[c] += u32::from(px[c]);
                        }
                    }
                }
                let at = 3 * ((top + j) * TILE + left + i);
                for c in 0..3 {
                    data[at + c] = ((sum[c] + 8) / 16) as u8;
                }
            }
        }
    }
    RgbTile::new(TILE, TILE, data)
}

fn encode(tile: &RgbTile) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(48 << 10);
    let mut encoder = jpeg_encoder::Encoder::new(&mut bytes, QUALITY);
    encoder.set_sampling_factor(jpeg_encoder::SamplingFactor::F_1_1);
    encoder
        .encode(&tile.data, tile.width as u16, tile.height as u16, jpeg_encoder::ColorType::Rgb)
        .map_err(io::Error::other)?;
    Ok(bytes)
}
