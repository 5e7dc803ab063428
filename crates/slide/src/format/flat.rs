//! Flat PNG and JPEG images: one level, one tile, decoded at the first read.

use super::{Format, Probe};
use crate::jpeg;
use crate::resolution::Claim;
use crate::source::{Level, Opened, Source};
use crate::{OpenOptions, SlideError};
use mitosis::RgbTile;
use std::collections::BTreeMap;
use std::io::Cursor;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

pub(super) const PNG: Format = Format {
    name: "png",
    about: "flat PNG (8 or 16 bits; transparency onto white)",
    knows: |p| p.head.starts_with(b"\x89PNG\r\n\x1a\n"),
    open: |p, _| open(p, Kind::Png),
};

pub(super) const JPEG: Format = Format {
    name: "jpeg",
    about: "flat JPEG (YCbCr, RGB or grey)",
    // Hamamatsu VMU and MIRAX start with text, never with a JPEG.
    knows: |p| p.head.starts_with(b"\xFF\xD8\xFF"),
    open: |p: &Probe, _: &OpenOptions| open(p, Kind::Jpeg),
};

/// Largest flat image, bytes of RGB; larger ones belong into a tiled TIFF.
const MAX_BYTES: u64 = 2 << 30;

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Png,
    Jpeg,
}

struct Header {
    width: u64,
    height: u64,
    /// Field and pixels per metre, horizontally and vertically.
    density: Option<(&'static str, f64, f64)>,
}

struct Flat {
    path: PathBuf,
    kind: Kind,
    size: (usize, usize),
    pixels: OnceLock<Result<Arc<RgbTile>, String>>,
}

fn open(probe: &Probe, kind: Kind) -> Result<Opened, SlideError> {
    let bytes = probe.bytes()?;
    let header = match kind {
        Kind::Png => png_header(&bytes),
        Kind::Jpeg => jpeg_header(&bytes),
    };
    let header = header.map_err(|e| probe.malformed(e))?;
    let size = 3 * u128::from(header.width) * u128::from(header.height);
    if header.width == 0 || header.height == 0 {
        return Err(probe.malformed("an image without pixels".into()));
    }
    if size > u128::from(MAX_BYTES) {
        let what = format!("a flat image of {} x {} pixels", header.width, header.height);
        return Err(SlideError::TooLarge {
            path: probe.path.clone(),
            what,
            bytes: size,
            limit: MAX_BYTES,
        });
    }
    let mut properties = BTreeMap::new();
    let mut claims = Vec::new();
    if let Some((field, x, y)) = header.density {
        properties.insert(field.to_string(), format!("{x} x {y} px/m"));
        if x > 0.0 && y > 0.0 {
            claims.push(Claim::density(field, 1e6 / x, 1e6 / y));
        }
    }
    let level = Level {
        width: header.width,
        height: header.height,
        downsample_x: 1.0,
        downsample_y: 1.0,
        tile_width: header.width as u32,
        tile_height: header.height as u32,
    };
    let source = Flat {
        path: probe.path.clone(),
        kind,
        size: (header.width as usize, header.height as usize),
        pixels: OnceLock::new(),
    };
    Ok(Opened {
        vendor: "flat".into(),
        levels: vec![level],
        properties,
        claims,
        bounds: None,
        associated: Vec::new(),
        source: Box::new(source),
    })
}

impl Flat {
    fn decode(&self) -> Result<Arc<RgbTile>, String> {
        let bytes = std::fs::read(&self.path).map_err(|e| e.to_string())?;
        let (w, h) = self.size;
        let tile = match self.kind {
            Kind::Png => png(&bytes, w, h)?,
            Kind::Jpeg => jpeg::decode(None, &bytes, jpeg::Space::ByMarkers, (w, h))?,
        };
        if (tile.width, tile.height) != self.size {
            return Err(format!(
                "{} x {} pixels, the header says {w} x {h}",
                tile.width, tile.height
            ));
        }
        Ok(Arc::new(tile))
    }
}

impl Source for Flat {
    fn tile(&self, _: usize, _: u64, _: u64) -> Result<Arc<RgbTile>, String> {
        self.pixels.get_or_init(|| self.decode()).clone()
    }

    fn associated(&self, _: usize) -> Result<RgbTile, String> {
        Err("a flat image has none".into())
    }

    fn resident(&self) -> bool {
        true
    }
}

fn png(bytes: &[u8], w: usize, h: usize) -> Result<RgbTile, String> {
    // Deflate shrinks at most about a thousandfold, PNG's one-bit grey eight times more.
    if 3 * w * h > bytes.len().saturating_mul(1100 * 24) {
        return Err(format!("{} bytes cannot hold {w} x {h} pixels", bytes.len()));
    }
    let mut reader = image::ImageReader::with_format(Cursor::new(bytes), image::ImageFormat::Png);
    let mut limits = image::Limits::default();
    limits.max_alloc = Some(4 * MAX_BYTES);
    limits.max_image_width = Some(w as u32);
    limits.max_image_height = Some(h as u32);
    reader.limits(limits);
    let image = reader.decode().map_err(|e| e.to_string())?;
    let (width, height) = (image.width() as usize, image.height() as usize);
    let data = if image.color().has_alpha() {
        let over = |c: u8, a: u8| {
            ((u32::from(c) * u32::from(a) + 255 * (255 - u32::from(a)) + 127) / 255) as u8
        };
        let rgba = image.into_rgba8().into_raw();
        let pixels = rgba.as_chunks::<4>().0;
        pixels.iter().flat_map(|p| [over(p[0], p[3]), over(p[1], p[3]), over(p[2], p[3])]).collect()
    } else {
        image.into_rgb8().into_raw()
    };
    Ok(RgbTile { width, height, data })
}

fn be32(b: &[u8]) -> u64 {
    b.iter().fold(0, |v, x| v << 8 | u64::from(*x))
}

fn png_header(b: &[u8]) -> Result<Header, String> {
    let ihdr = b.get(8..33).filter(|h| &h[4..8] == b"IHDR").ok_or("PNG without a header")?;
    let mut header =
        Header { width: be32(&ihdr[8..12]), height: be32(&ihdr[12..16]), density: None };
    let mut at = 33usize;
    while let Some(chunk) = b.get(at..at.saturating_add(8)) {
        let (len, kind) = (be32(&chunk[..4]) as usize, &chunk[4..8]);
        if kind == b"IDAT" {
            break;
        }
        if kind == b"pHYs"
            && let Some(p) = b.get(at + 8..at + 17)
            && len == 9
            && p[8] == 1
        {
            header.density = Some(("png.pHYs", be32(&p[..4]) as f64, be32(&p[4..8]) as f64));
        }
        at = at.saturating_add(len).saturating_add(12);
    }
    Ok(header)
}

fn jpeg_header(b: &[u8]) -> Result<Header, String> {
    let mut density = None;
    let mut at = 2usize;
    loop {
        let m = b.get(at..at.saturating_add(4)).ok_or("JPEG without a frame header")?;
        if m[0] != 0xFF {
            return Err(format!("JPEG: no marker at byte {at}"));
        }
        if m[1] == 0xFF {
            at += 1;
            continue;
        }
        let len = be32(&m[2..4]) as usize;
        let body = b.get(at + 4..at + 2 + len.max(2)).ok_or("JPEG: cut short")?;
        match m[1] {
            // Start of frame, except DHT, JPG and DAC.
            0xC0..=0xCF if !matches!(m[1], 0xC4 | 0xC8 | 0xCC) => {
                let f = body.get(..5).ok_or("JPEG: short frame header")?;
                return Ok(Header { height: be32(&f[1..3]), width: be32(&f[3..5]), density });
            }
            0xE0 if body.starts_with(b"JFIF\0") && body.len() >= 12 => {
                let per_metre = match body[7] {
                    1 => 1000.0 / 25.4,
                    2 => 100.0,
                    _ => 0.0,
                };
                let of = |i: usize| be32(&body[i..i + 2]) as f64 * per_metre;
                density = (per_metre > 0.0).then(|| ("jfif.density", of(8), of(10)));
            }
            0xDA | 0xD9 => return Err("JPEG: image data before the frame header".into()),
            _ => {}
        }
        at += 2 + len.max(2);
    }
}
