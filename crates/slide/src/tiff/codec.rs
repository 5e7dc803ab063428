//! From stored bytes to RGB: decompression, prediction, colour.

use super::ifd::{Ifd, tag};
use super::jp2k;
use crate::jpeg;
use std::io::Read;

/// Compression schemes read here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compression {
    None,
    Lzw,
    Deflate,
    PackBits,
    Jpeg,
    /// Aperio 33003 (YCbCr inside) and 33005 (RGB inside), and plain 34712 (RGB).
    Jpeg2000 {
        ycbcr: bool,
    },
}

/// Colour of the decompressed samples.
#[derive(Clone, Debug, PartialEq)]
enum Colour {
    /// Zero is black.
    Grey,
    /// Zero is white.
    GreyInverted,
    Rgb,
    YCbCr,
    Palette(Vec<[u8; 3]>),
}

/// How the tiles of an image are stored.
#[derive(Clone, Debug)]
pub(crate) struct Coding {
    pub(crate) compression: Compression,
    colour: Colour,
    pub(crate) samples: usize,
    pub(crate) planar: bool,
    predict: bool,
    tables: Option<Vec<u8>>,
}

impl Coding {
    pub(crate) fn new(ifd: &Ifd) -> Result<Self, String> {
        let samples = ifd.uint_or(tag::SAMPLES, 1)?;
        if !(1..=5).contains(&samples) {
            return Err(format!("{samples} samples per pixel are no RGB or grey image"));
        }
        let bits = ifd.uints(tag::BITS)?.unwrap_or_else(|| vec![1]);
        if bits.iter().any(|b| *b != 8) {
            return Err(format!("{bits:?} bits per sample; 8 are read"));
        }
        if ifd.uints(tag::SAMPLE_FORMAT)?.is_some_and(|f| f.iter().any(|v| *v != 1)) {
            return Err("samples are not unsigned integers".into());
        }
        let compression = match ifd.uint_or(tag::COMPRESSION, 1)? {
            1 => Compression::None,
            5 => Compression::Lzw,
            7 => Compression::Jpeg,
            8 | 32946 => Compression::Deflate,
            32773 => Compression::PackBits,
            33003 => Compression::Jpeg2000 { ycbcr: true },
            33005 | 34712 => Compression::Jpeg2000 { ycbcr: false },
            other => return Err(format!("compression {other} is not read")),
        };
        let colour = match (ifd.uint_or(tag::PHOTOMETRIC, 1)?, samples) {
            (0, 1 | 2) => Colour::GreyInverted,
            (1, 1 | 2) => Colour::Grey,
            (2, 3..) => Colour::Rgb,
            (3, 1) => Colour::Palette(palette(ifd)?),
            (6, 3..) => Colour::YCbCr,
            (p, s) => {
                return Err(format!("photometric interpretation {p} with {s} samples is not read"));
            }
        };
        if colour == Colour::YCbCr
            && !matches!(compression, Compression::Jpeg | Compression::Jpeg2000 { .. })
        {
            let sub = ifd.uints(tag::YCBCR_SUBSAMPLING)?.unwrap_or_else(|| vec![2, 2]);
            if sub != [1, 1] {
                return Err(format!("uncompressed YCbCr with subsampling {sub:?} is not read"));
            }
        }
        let planar = ifd.uint_or(tag::PLANAR, 1)? == 2 && samples > 1;
        if planar && matches!(compression, Compression::Jpeg | Compression::Jpeg2000 { .. }) {
            return Err("JPEG in separate planes is not read".into());
        }
        let predict = match ifd.uint_or(tag::PREDICTOR, 1)? {
            1 => false,
            2 => matches!(compression, Compression::Lzw | Compression::Deflate),
            other => return Err(format!("predictor {other} is not read")),
        };
        let tables = ifd.bytes(tag::JPEG_TABLES)?;
        Ok(Self { compression, colour, samples: samples as usize, planar, predict, tables })
    }
}

fn palette(ifd: &Ifd) -> Result<Vec<[u8; 3]>, String> {
    let map = ifd.uints(tag::COLOR_MAP)?.ok_or("palette image without a colour map")?;
    if map.len() < 768 {
        return Err(format!("colour map of {} values", map.len()));
    }
    // 16-bit values; some writers leave them at 8 bits.
    let shift = if map.iter().any(|v| *v > 255) { 8 } else { 0 };
    let n = map.len() / 3;
    Ok((0..256)
        .map(|i| [map[i], map[n + i], map[2 * n + i]].map(|v| (v >> shift).min(255) as u8))
        .collect())
}

/// Decodes one chunky tile stored as `stored` pixels and cuts it to `size`.
pub(crate) fn decode(
    c: &Coding,
    raw: &[u8],
    stored: (usize, usize),
    size: (usize, usize),
) -> Result<Vec<u8>, String> {
    match c.compression {
        Compression::Jpeg => {
            let space = match c.colour {
                Colour::YCbCr => jpeg::Space::YCbCr,
                _ => jpeg::Space::AsStored,
            };
            let image = jpeg::decode(c.tables.as_deref(), raw, space, stored)?;
            cut_rgb(&image.data, (image.width, image.height), size)
        }
        Compression::Jpeg2000 { ycbcr } => {
            let image = jp2k::decode(raw, ycbcr || c.colour == Colour::YCbCr, stored)?;
            cut_rgb(&image.data, (image.width, image.height), size)
        }
        _ => {
            let plane = samples(c, raw, stored, c.samples)?;
            Ok(to_rgb(&c.colour, &plane, c.samples, stored.0, size))
        }
    }
}

/// Decodes a tile whose samples are stored in separate planes.
pub(crate) fn decode_planes(
    c: &Coding,
    raws: &[Vec<u8>],
    stored: (usize, usize),
    size: (usize, usize),
) -> Result<Vec<u8>, String> {
    let planes: Result<Vec<_>, _> = raws.iter().map(|raw| samples(c, raw, stored, 1)).collect();
    let planes = planes?;
    let mut chunky = vec![0; stored.0 * stored.1 * planes.len()];
    for (i, pixel) in chunky.chunks_exact_mut(planes.len()).enumerate() {
        for (value, plane) in pixel.iter_mut().zip(&planes) {
            *value = plane[i];
        }
    }
    Ok(to_rgb(&c.colour, &chunky, planes.len(), stored.0, size))
}

fn cut_rgb(data: &[u8], have: (usize, usize), size: (usize, usize)) -> Result<Vec<u8>, String> {
    if have.0 < size.0 || have.1 < size.1 {
        return Err(format!(
            "{} x {} pixels inside, {} x {} needed",
            have.0, have.1, size.0, size.1
        ));
    }
    let mut out = Vec::with_capacity(3 * size.0 * size.1);
    for line in data.chunks_exact(3 * have.0).take(size.1) {
        out.extend_from_slice(&line[..3 * size.0]);
    }
    Ok(out)
}

/// Decompresses and undoes the prediction: `w * h * n` samples.
fn samples(c: &Coding, raw: &[u8], (w, h): (usize, usize), n: usize) -> Result<Vec<u8>, String> {
    let size = w * h * n;
    // Far above what each scheme can reach; keeps a lying size from allocating much.
    let most = match c.compression {
        Compression::None => raw.len(),
        Compression::PackBits => raw.len().saturating_mul(64),
        _ => raw.len().saturating_mul(2048),
    };
    if size > most {
        return Err(format!("{} stored bytes cannot hold {size}", raw.len()));
    }
    let mut out = match c.compression {
        Compression::None => raw[..size].to_vec(),
        Compression::PackBits => pack_bits(raw, size)?,
        Compression::Deflate => {
            let mut out = vec![0; size];
            flate2::read::ZlibDecoder::new(raw)
                .read_exact(&mut out)
                .map_err(|e| format!("deflate: {e}"))?;
            out
        }
        Compression::Lzw => lzw(raw, size)?,
        Compression::Jpeg | Compression::Jpeg2000 { .. } => return Err("not a plain scheme".into()),
    };
    if c.predict {
        for line in out.chunks_exact_mut(w * n) {
            for i in n..line.len() {
                line[i] = line[i].wrapping_add(line[i - n]);
            }
        }
    }
    Ok(out)
}

fn lzw(raw: &[u8], size: usize) -> Result<Vec<u8>, String> {
    let mut out = vec![0; size];
    let mut decoder = weezl::decode::Decoder::with_tiff_size_switch(weezl::BitOrder::Msb, 8);
    let (mut from, mut to) = (0, 0);
    while to < size {
        let r = decoder.decode_bytes(&raw[from..], &mut out[to..]);
        from += r.consumed_in;
        to += r.consumed_out;
        match r.status {
            Ok(weezl::LzwStatus::Ok) if r.consumed_in + r.consumed_out > 0 => {}
            Ok(_) if to == size => {}
            Ok(_) => return Err(format!("LZW: {to} of {size} bytes")),
            Err(e) => return Err(format!("LZW: {e}")),
        }
    }
    Ok(out)
}

fn pack_bits(raw: &[u8], size: usize) -> Result<Vec<u8>, String> {
    let mut out = Vec::with_capacity(size);
    let mut i = 0;
    while out.len() < size {
        let short = || format!("PackBits: {} of {size} bytes", i);
        let n = *raw.get(i).ok_or_else(short)? as i8;
        i += 1;
        match n {
            0.. => {
                let end = i + n as usize + 1;
                out.extend_from_slice(raw.get(i..end).ok_or("PackBits: cut short")?);
                i = end;
            }
            -127..0 => {
                let v = *raw.get(i).ok_or("PackBits: cut short")?;
                out.resize(out.len() + 1 + usize::from(n.unsigned_abs()), v);
                i += 1;
            }
            -128 => {}
        }
    }
    out.truncate(size);
    Ok(out)
}

fn to_rgb(colour: &Colour, data: &[u8], n: usize, width: usize, size: (usize, usize)) -> Vec<u8> {
    let mut out = Vec::with_capacity(3 * size.0 * size.1);
    for line in data.chunks_exact(n * width).take(size.1) {
        let line = &line[..n * size.0];
        match colour {
            Colour::Rgb if n == 3 => out.extend_from_slice(line),
            Colour::Rgb => out.extend(line.chunks_exact(n).flat_map(|p| [p[0], p[1], p[2]])),
            Colour::Grey => out.extend(line.chunks_exact(n).flat_map(|p| [p[0]; 3])),
            Colour::GreyInverted => out.extend(line.chunks_exact(n).flat_map(|p| [255 - p[0]; 3])),
            Colour::Palette(map) => out.extend(line.iter().flat_map(|p| map[*p as usize])),
            Colour::YCbCr => {
                out.extend(line.chunks_exact(n).flat_map(|p| jpeg::ycc(p[0], p[1], p[2])))
            }
        }
    }
    out
}
