//! Flat PNG and JPEG images: one level, one tile, decoded once, at the first read.

use super::{Format, Probe};
use crate::exif;
use crate::file::SlideFile;
use crate::jpeg;
use crate::limits::{Fault, SMALL, check};
use crate::png;
use crate::resolution::{Claim, MAX_DENSITY_MPP};
use crate::several;
use crate::source::{Decoded, Level, Opened, Source, TileState};
use crate::tiff::over_white;
use crate::{Limits, OpenOptions, SlideError};
use mitosis::RgbTile;
use std::collections::BTreeMap;
use std::io::BufReader;
use std::sync::Arc;

pub(super) const PNG: Format = Format {
    name: "png",
    about: "flat PNG (8 or 16 bits; transparency onto white)",
    knows: |p| p.head.starts_with(png::SIGNATURE) && !p.is_named("mrxs"),
    open: |p, o| open(p, Kind::Png, &o.limits),
};

pub(super) const JPEG: Format = Format {
    name: "jpeg",
    about: "flat JPEG (YCbCr, RGB or grey)",
    // Hamamatsu VMU and MIRAX start with text, never with a JPEG.
    // The main file of a MIRAX slide may be a small picture of it.
    knows: |p| p.head.starts_with(b"\xFF\xD8\xFF") && !p.is_named("mrxs"),
    open: |p: &Probe, o: &OpenOptions| open(p, Kind::Jpeg, &o.limits),
};

/// Headers end before this many bytes, colour profiles and photographs' notes included.
const MOST_HEADER: u64 = 32 << 20;

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Png,
    Jpeg,
}

struct Header {
    width: u64,
    height: u64,
    /// Why the pixels cannot be read, although the file may be sound.
    unread: Option<String>,
    /// Whether it has no colour.
    grey: bool,
    /// EXIF's orientation: 1 is upright.
    orientation: u64,
    /// Fields of resolutions with um/px, horizontally and vertically; not finite where they are 0.
    resolutions: Vec<(&'static str, [f64; 2])>,
}

struct Flat {
    file: Arc<SlideFile>,
    kind: Kind,
    size: (usize, usize),
    grey: bool,
    /// On further pictures of the file.
    notes: Vec<String>,
    limits: Limits,
}

fn open(probe: &Probe, kind: Kind, limits: &Limits) -> Result<Opened, SlideError> {
    let around = if kind == Kind::Png { around_pixels(probe)? } else { None };
    let bytes = around.map_or_else(|| probe.start(MOST_HEADER), Ok)?;
    let header = match kind {
        Kind::Png => png_header(&bytes),
        Kind::Jpeg => jpeg_header(&bytes),
    };
    let header = header.map_err(|e| probe.malformed(e))?;
    if let Some(what) = header.unread {
        return Err(probe.unsupported(what, "save it as 8-bit RGB JPEG or as PNG"));
    }
    if let Some(what) = exif::refused(header.orientation) {
        return Err(probe.unsupported(what, exif::UPRIGHT));
    }
    let notes = match kind {
        Kind::Png => several::in_png(&bytes).map_or(Ok(Vec::new()), Err),
        Kind::Jpeg => several::in_jpeg(&bytes, (header.width, header.height), &mut |at| {
            let mut head = vec![0; several::HEAD.min(probe.len.saturating_sub(at)) as usize];
            probe.file.read_at(&mut head, at).ok().map(|()| head)
        }),
    };
    let notes = notes.map_err(|what| probe.unsupported(what, several::REMEDY))?;
    let size = 3 * u128::from(header.width) * u128::from(header.height);
    if header.width == 0 || header.height == 0 {
        return Err(probe.malformed("an image without pixels".into()));
    }
    let ratio = size / u128::from(probe.len);
    if size > u128::from(SMALL) {
        check("expansion", limits.expansion, ratio, || {
            format!("{size} bytes of RGB in a file of {}", probe.len)
        })
        .map_err(|b| probe.fault(b.into()))?;
    }
    if kind == Kind::Jpeg {
        // The file, planes of samples, coefficients of progressive files, the result.
        let needed = u128::from(probe.len) + size / 3 * 12;
        let what = || format!("decoding a JPEG of {} x {} pixels", header.width, header.height);
        limits.working(what, needed).map_err(|b| probe.fault(b.into()))?;
    }
    let mut properties = BTreeMap::new();
    let mut claims = Vec::new();
    for &(field, [x, y]) in &header.resolutions {
        let per_metre = |um: f64| (1e9 / um).round() / 1e3;
        properties.insert(field.to_string(), format!("{} x {} px/m", per_metre(x), per_metre(y)));
        if x.is_finite() && y.is_finite() {
            claims.push(Claim::density(field, x, y));
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
        file: Arc::clone(&probe.file),
        kind,
        size: (header.width as usize, header.height as usize),
        grey: header.grey,
        notes,
        limits: limits.clone(),
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

impl Source for Flat {
    fn is_grey(&self) -> bool {
        self.grey
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    fn tile(&self, _: usize, _: u64, _: u64) -> Result<Decoded, Fault> {
        let (width, height) = self.size;
        let mut data = Vec::with_capacity(3 * width * height);
        let state = self.rows(0, 0, 0, &mut |row| {
            data.extend_from_slice(row);
            Ok(())
        })?;
        Ok(Decoded { tile: Arc::new(RgbTile { width, height, data }), state })
    }

    fn rows(
        &self,
        _: usize,
        _: u64,
        _: u64,
        sink: &mut dyn FnMut(&[u8]) -> Result<(), String>,
    ) -> Result<TileState, Fault> {
        let (w, h) = self.size;
        match self.kind {
            Kind::Png => png(&self.file, self.size, &self.limits, sink)?,
            Kind::Jpeg => {
                let mut bytes = vec![0; self.file.len as usize];
                self.file.read_at(&mut bytes, 0).map_err(|e| Fault::read(0, &e))?;
                let (tile, doubt) = jpeg::decode(None, &bytes, jpeg::Space::ByMarkers, (w, h))?;
                if (tile.width, tile.height) != self.size {
                    let found = format!("{} x {} pixels", tile.width, tile.height);
                    return Err(format!("{found}, the header states {w} x {h}").into());
                }
                tile.data.chunks_exact(3 * w).try_for_each(sink)?;
                if let Some(why) = doubt {
                    return Ok(TileState::Suspect(why));
                }
            }
        }
        Ok(TileState::Sound)
    }

    fn stripped(&self, _: usize) -> bool {
        true
    }

    fn working_bytes(&self, _: usize) -> u64 {
        match self.kind {
            Kind::Png => 1 << 20,
            Kind::Jpeg => 12 * self.size.0 as u64 * self.size.1 as u64,
        }
    }

    fn associated(&self, _: usize) -> Result<RgbTile, Fault> {
        Err("a flat image has none".into())
    }
}

/// Decodes a PNG row by row; only an interlaced one is held whole.
fn png(
    file: &SlideFile,
    (w, h): (usize, usize),
    limits: &Limits,
    sink: &mut dyn FnMut(&[u8]) -> Result<(), String>,
) -> Result<(), Fault> {
    let damaged = |e: ::png::DecodingError| match e {
        ::png::DecodingError::IoError(e) if e.raw_os_error().is_some() => {
            Fault::Read(format!("read error: {e}"))
        }
        e => Fault::Damaged(format!("PNG: {e}")),
    };
    let stream = BufReader::with_capacity(1 << 18, file.stream());
    let mut decoder = ::png::Decoder::new(stream);
    decoder.set_transformations(::png::Transformations::EXPAND);
    let mut reader = decoder.read_info().map_err(damaged)?;
    let info = reader.info();
    let found = (info.width as usize, info.height as usize);
    if found != (w, h) {
        return Err(format!("{} x {} pixels, the header states {w} x {h}", found.0, found.1).into());
    }
    let interlaced = info.interlaced;
    let (colour, depth) = reader.output_color_type();
    let channels = colour.samples();
    let wide = depth == ::png::BitDepth::Sixteen;
    let mut rgb = Vec::new();
    let mut take = |row: &[u8]| {
        rgb.clear();
        to_rgb(row, channels, wide, &mut rgb);
        sink(&rgb)
    };
    if interlaced {
        let size = reader.output_buffer_size().ok_or("PNG: more pixels than can be counted")?;
        limits.working(|| format!("decoding an interlaced PNG of {w} x {h}"), size as u128)?;
        let mut whole = vec![0; size];
        reader.next_frame(&mut whole).map_err(damaged)?;
        whole.chunks_exact(size / h).try_for_each(&mut take)?;
    } else {
        while let Some(row) = reader.next_row().map_err(damaged)? {
            take(row.data())?;
        }
    }
    Ok(())
}

/// One row of grey or RGB samples, of 8 or 16 bits, with or without opacity; transparency onto white.
fn to_rgb(row: &[u8], channels: usize, wide: bool, out: &mut Vec<u8>) {
    // 16 bits become 8 by rounding.
    let narrow = |b: &[u8]| ((u32::from(b[0]) << 8 | u32::from(b[1])) + 128).div_euclid(257) as u8;
    let sample = |p: &[u8], i: usize| if wide { narrow(&p[2 * i..]) } else { p[i] };
    let size = channels * (1 + usize::from(wide));
    for p in row.chunks_exact(size) {
        let channel = |i: usize| sample(p, i);
        let rgb = if channels < 3 { [channel(0); 3] } else { [channel(0), channel(1), channel(2)] };
        out.extend(match channels {
            2 | 4 => rgb.map(|c| over_white(c, channel(channels - 1))),
            _ => rgb,
        });
    }
}

/// The orientation that a PNG or a JPEG states; none of other files.
pub(crate) fn orientation(b: &[u8]) -> Option<u64> {
    let header = if b.starts_with(png::SIGNATURE) { png_header(b) } else { jpeg_header(b) };
    Some(header.ok()?.orientation)
}

fn be32(b: &[u8]) -> u64 {
    b.iter().fold(0, |v, x| v << 8 | u64::from(*x))
}

fn png_header(b: &[u8]) -> Result<Header, String> {
    let ihdr = b.get(8..33).filter(|h| &h[4..8] == b"IHDR").ok_or("PNG without a header")?;
    let mut header = Header {
        width: be32(&ihdr[8..12]),
        height: be32(&ihdr[12..16]),
        unread: None,
        grey: matches!(ihdr[17], 0 | 4),
        orientation: 1,
        resolutions: png::png_resolutions(b).iter().map(|r| (r.field, r.mpp)).collect(),
    };
    let (mut block, mut raw, mut packet) = (None, None, None);
    for chunk in png::chunks(b).take_while(|c| c.kind != b"IEND") {
        if chunk.whole.is_none() {
            continue;
        }
        if chunk.kind == b"eXIf" {
            block = exif::orientation(exif_block(chunk.body));
            add_exif(&mut header.resolutions, exif::resolution(exif_block(chunk.body)));
        } else if let Some((key, text)) = png::text(chunk.kind, chunk.body) {
            match key.to_ascii_lowercase().as_str() {
                "xml:com.adobe.xmp" => packet = exif::orientation_of_xmp(&text),
                key if key.starts_with("raw profile type ") => {
                    let profile = png::raw_profile(&text).unwrap_or_default();
                    raw = exif::orientation(exif_block(&profile))
                        .or_else(|| exif::orientation_of_xmp(&profile))
                        .or(raw);
                }
                _ => {}
            }
        }
    }
    header.orientation = block.or(raw).or(packet).unwrap_or(1);
    Ok(header)
}

/// Adds the resolution of a block of EXIF to that of a picture, to compare them. Alone it is not used, nor next to the
/// density of a screen or printer, which libraries write.
fn add_exif(resolutions: &mut Vec<(&'static str, [f64; 2])>, block: Option<[f64; 2]>) {
    let is_plausible = |(_, mpp): &(_, [f64; 2])| mpp.iter().all(|um| *um <= MAX_DENSITY_MPP);
    if resolutions.iter().any(is_plausible) {
        resolutions.extend(block.map(|mpp| ("exif.XResolution", mpp)));
    }
}

/// A block of EXIF without the mark of a JPEG's segment.
fn exif_block(b: &[u8]) -> &[u8] {
    b.strip_prefix(exif::SEGMENT).unwrap_or(b)
}

/// All that a PNG states before and behind its pixels, each run of which is an empty chunk; `None` where the start of
/// the file is enough, or the file is on a server.
fn around_pixels(probe: &Probe) -> Result<Option<Vec<u8>>, SlideError> {
    if probe.len <= MOST_HEADER || probe.file.is_remote() {
        return Ok(None);
    }
    let read = |at: u64, n: u64| {
        let mut bytes = vec![0; n as usize];
        let io = |source| SlideError::Io { path: probe.path.clone(), source };
        probe.file.read_at(&mut bytes, at).map(|()| bytes).map_err(io)
    };
    let mut all = png::SIGNATURE.to_vec();
    let (mut at, mut in_pixels) = (all.len() as u64, false);
    while at + 12 <= probe.len {
        let head = read(at, 8)?;
        let [a, b, c, d, kind @ ..] = head.first_chunk::<8>().copied().unwrap_or_default();
        let length = 12 + u64::from(u32::from_be_bytes([a, b, c, d]));
        let is_pixels = matches!(&kind, b"IDAT" | b"fdAT");
        if is_pixels && !in_pixels {
            all.extend([[0; 4], kind, [0; 4]].concat());
        } else if !is_pixels && all.len() as u64 + length > MOST_HEADER {
            break;
        } else if !is_pixels {
            all.extend(read(at, length.min(probe.len - at))?);
        }
        (at, in_pixels) = (at + length, is_pixels);
    }
    Ok(Some(all))
}

fn jpeg_header(b: &[u8]) -> Result<Header, String> {
    let (mut frame, mut resolutions) = (None, Vec::new());
    let (mut block, mut packet, mut density) = (None, None, None);
    for segment in jpeg::Segments::before_scans(b) {
        let (marker, body) = (segment.marker, &b[segment.body]);
        match marker {
            _ if jpeg::is_frame(marker) => {
                let f = body.get(..5).ok_or("JPEG: short frame header")?;
                let unread = match (marker, f[0], body.get(5).copied().unwrap_or(0)) {
                    (0xC0..=0xC2, 8, 1 | 3) => None,
                    (0xC0..=0xC2, 8, 4) => {
                        Some("a JPEG of four components (CMYK), where RGB or grey is read".into())
                    }
                    (0xC0..=0xC2, 8, n) => Some(format!("a JPEG of {n} components")),
                    (0xC0..=0xC2, bits, _) => Some(format!("a JPEG of {bits} bits per sample")),
                    (process, ..) => Some(format!("a JPEG of coding process {process:#x}")),
                };
                let (height, width) = (be32(&f[1..3]), be32(&f[3..5]));
                let grey = body.get(5) == Some(&1);
                frame.get_or_insert((height, width, unread, grey));
            }
            0xE0 if body.starts_with(b"JFIF\0") && body.len() >= 12 => {
                let per_metre = match body[7] {
                    1 => 1000.0 / 25.4,
                    2 => 100.0,
                    _ => 0.0,
                };
                let um = |i: usize| 1e6 / (be32(&body[i..i + 2]) as f64 * per_metre);
                resolutions.extend((per_metre > 0.0).then(|| ("jfif.density", [um(8), um(10)])));
            }
            0xE1 if body.starts_with(exif::SEGMENT) => {
                block = exif::orientation(exif_block(body)).or(block);
                density = exif::resolution(exif_block(body)).or(density);
            }
            0xE1 if body.starts_with(b"http://ns.adobe.com/xap/1.0/\0") => {
                packet = exif::orientation_of_xmp(body).or(packet);
            }
            _ => {}
        }
    }
    let none = "JPEG without a whole frame header before its image data";
    let (height, width, unread, grey) = frame.ok_or(none)?;
    let orientation = block.or(packet).unwrap_or(1);
    add_exif(&mut resolutions, density);
    Ok(Header { height, width, unread, grey, orientation, resolutions })
}
