//! From stored bytes to RGB: decompression, prediction, colour.

use super::ifd::{Ifd, tag};
use super::jp2k;
use super::unpack::{self, Compression};
use crate::exif;
use crate::jpeg;
use crate::limits::Fault;
use std::io::BufRead;

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

/// What a sample beyond the colours means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Alpha {
    /// No fourth sample, or not an opacity.
    None,
    /// Opacity that the colours were multiplied with.
    Associated,
    /// Opacity next to whole colours.
    Unassociated,
    /// A fourth sample of unspecified meaning. Writers that forget to declare opacity leave the ground
    /// at (0, 0, 0, 0): such pixels are white, all others keep their colours.
    Unspecified,
}

/// How the tiles of an image are stored.
#[derive(Clone, Debug)]
pub(crate) struct Coding {
    pub(crate) compression: Compression,
    colour: Colour,
    alpha: Alpha,
    pub(crate) samples: usize,
    pub(crate) planar: bool,
    predict: bool,
    tables: Option<Vec<u8>>,
}

impl Coding {
    pub(crate) fn new(ifd: &Ifd) -> Result<Self, Fault> {
        let no = |what: String| Err(Fault::Unsupported(what));
        let samples = ifd.uint_or(tag::SAMPLES, 1)?;
        if !(1..=5).contains(&samples) {
            return no(format!("{samples} samples per pixel, which is neither RGB nor grey"));
        }
        let bits = ifd.uints(tag::BITS)?.unwrap_or_else(|| vec![1]);
        if bits.iter().any(|b| *b != 8) {
            return no(format!("{} bits per sample, where 8 are read", bits[0]));
        }
        if ifd.uints(tag::SAMPLE_FORMAT)?.is_some_and(|f| f.iter().any(|v| *v != 1)) {
            return no("samples that are not unsigned whole numbers".into());
        }
        if let Some(what) = exif::refused(ifd.uint_or(tag::ORIENTATION, 1)?) {
            return no(what);
        }
        if ifd.uint_or(tag::FILL_ORDER, 1)? != 1 {
            return no("bits in reversed order (FillOrder 2)".into());
        }
        let compression = match ifd.uint_or(tag::COMPRESSION, 1)? {
            1 => Compression::None,
            5 => Compression::Lzw,
            7 => Compression::Jpeg,
            8 | 32946 => Compression::Deflate,
            32773 => Compression::PackBits,
            33003 => Compression::Jpeg2000 { ycbcr: true },
            33005 | 34712 => Compression::Jpeg2000 { ycbcr: false },
            other => return no(format!("compression {other}")),
        };
        let colour = match (ifd.uint_or(tag::PHOTOMETRIC, 1)?, samples) {
            (0, 1 | 2) => Colour::GreyInverted,
            (1, 1 | 2) => Colour::Grey,
            (2, 3..) => Colour::Rgb,
            (3, 1) => Colour::Palette(palette(ifd)?),
            (6, 3..) => Colour::YCbCr,
            (p, s) => return no(format!("photometric interpretation {p} with {s} samples")),
        };
        let coded = matches!(compression, Compression::Jpeg | Compression::Jpeg2000 { .. });
        if colour == Colour::YCbCr && !coded {
            plain_ycbcr(ifd)?;
        }
        if matches!(colour, Colour::Palette(_)) && compression == Compression::Jpeg {
            return no("a colour map under JPEG".into());
        }
        let alpha = alpha(ifd, samples as usize - colour.samples())?;
        // Two channels of fluorescence, of which the first alone would be read: RGB has a fourth sample by mistake.
        if samples == 2 && alpha == Alpha::Unspecified {
            return no("two channels of grey".into());
        }
        let planar = ifd.uint_or(tag::PLANAR, 1)? == 2 && samples > 1;
        if planar && coded {
            return no("JPEG in separate planes".into());
        }
        if matches!(alpha, Alpha::Associated | Alpha::Unassociated) && coded {
            return no("JPEG with opacity".into());
        }
        let predict = match ifd.uint_or(tag::PREDICTOR, 1)? {
            1 => false,
            2 if matches!(compression, Compression::Lzw | Compression::Deflate) => true,
            // JPEG has a prediction of its own, and uncompressed samples have none: libtiff ignores the field there.
            2 if coded || compression == Compression::None => false,
            other => return no(format!("predictor {other}")),
        };
        let tables = ifd.bytes(tag::JPEG_TABLES)?;
        let samples = samples as usize;
        Ok(Self { compression, colour, alpha, samples, planar, predict, tables })
    }

    /// Whether a sample beyond the colours may be an opacity that no field declares.
    pub(crate) fn has_undeclared_opacity(&self) -> bool {
        self.alpha == Alpha::Unspecified
    }

    /// Whether it has one channel, of grey values and not of indices of colours.
    pub(crate) fn is_grey(&self) -> bool {
        matches!(self.colour, Colour::Grey | Colour::GreyInverted)
    }

    /// Whether a piece is decoded row by row, in little memory.
    pub(crate) fn by_rows(&self) -> bool {
        !matches!(self.compression, Compression::Jpeg | Compression::Jpeg2000 { .. })
    }

    /// Bytes of memory per pixel that decoding a piece takes.
    pub(crate) fn bytes_per_pixel(&self) -> u64 {
        match self.compression {
            // Planes, coefficients of progressive files, the result.
            Compression::Jpeg => 12,
            // Planes of floating-point numbers, before and after the transform.
            Compression::Jpeg2000 { .. } => 36,
            _ => 3,
        }
    }
}

impl Colour {
    fn samples(&self) -> usize {
        match self {
            Self::Grey | Self::GreyInverted | Self::Palette(_) => 1,
            Self::Rgb | Self::YCbCr => 3,
        }
    }
}

/// What `ExtraSamples` states of the samples beyond the colours. Opacity must come first, and those
/// stated to be something else are not a part of the picture.
fn alpha(ifd: &Ifd, extra: usize) -> Result<Alpha, Fault> {
    if extra == 0 {
        return Ok(Alpha::None);
    }
    let kinds = ifd.uints(tag::EXTRA_SAMPLES)?.unwrap_or_default();
    if kinds.iter().skip(1).any(|k| matches!(k, 1 | 2)) {
        return Err(Fault::unsupported("opacity behind other extra samples"));
    }
    match kinds.first() {
        None | Some(0) => Ok(Alpha::Unspecified),
        Some(1) => Ok(Alpha::Associated),
        Some(2) => Ok(Alpha::Unassociated),
        Some(k) => Err(format!("extra samples of kind {k}").into()),
    }
}

/// Refuses YCbCr in plain samples but the one that is read: whole chroma, with the range and the coefficients of JPEG.
fn plain_ycbcr(ifd: &Ifd) -> Result<(), Fault> {
    const RANGE: [f64; 6] = [0.0, 255.0, 128.0, 255.0, 128.0, 255.0];
    const COEFFICIENTS: [f64; 3] = [0.299, 0.587, 0.114];
    let sub = ifd.uints(tag::YCBCR_SUBSAMPLING)?.unwrap_or_else(|| vec![2, 2]);
    if sub != [1, 1] {
        return Err(Fault::Unsupported(format!("uncompressed YCbCr with subsampling {sub:?}")));
    }
    for (field, name, usual) in [
        (tag::REFERENCE_BLACK_WHITE, "ReferenceBlackWhite", &RANGE[..]),
        (tag::YCBCR_COEFFICIENTS, "YCbCrCoefficients", &COEFFICIENTS[..]),
    ] {
        let Some(stated) = ifd.reals(field)? else { continue };
        let equal = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-3;
        if stated.len() != usual.len() || !stated.iter().zip(usual).all(equal) {
            return Err(Fault::Unsupported(format!("YCbCr with {name} {stated:?}")));
        }
    }
    Ok(())
}

fn palette(ifd: &Ifd) -> Result<Vec<[u8; 3]>, Fault> {
    let map = ifd.uints(tag::COLOR_MAP)?.ok_or("palette image without a colour map")?;
    if map.len() < 768 {
        return Err(format!("colour map of {} values", map.len()).into());
    }
    // 16-bit values; some writers leave them at 8 bits.
    let shift = if map.iter().any(|v| *v > 255) { 8 } else { 0 };
    let n = map.len() / 3;
    Ok((0..256)
        .map(|i| [map[i], map[n + i], map[2 * n + i]].map(|v| (v >> shift).min(255) as u8))
        .collect())
}

/// Decodes one JPEG or JPEG 2000 piece of at most `stored` pixels and cuts it to `size`. With it
/// comes what casts doubt on the pixels, if anything.
pub(crate) fn decode(
    c: &Coding,
    raw: &[u8],
    stored: (usize, usize),
    size: (usize, usize),
) -> Result<(Vec<u8>, Option<&'static str>), String> {
    let (image, doubt) = match c.compression {
        Compression::Jpeg2000 { ycbcr } => {
            (jp2k::decode(raw, ycbcr || c.colour == Colour::YCbCr, stored)?, None)
        }
        _ => {
            let tables = c.tables.as_deref();
            let stream = jpeg::components(raw);
            if let Some(n) = stream.filter(|n| *n != c.samples) {
                let samples = c.samples;
                return Err(format!(
                    "JPEG: {n} components where the directory states {samples} samples per pixel"
                ));
            }
            let space = match c.colour {
                Colour::YCbCr => jpeg::Space::YCbCr,
                _ => jpeg::Space::AsStored,
            };
            let (image, doubt) = jpeg::decode(tables, raw, space, stored)?;
            // The field of the directory holds, whatever markers state: so do libtiff and OpenSlide read it.
            let marked = jpeg::marked_ycbcr(raw).or_else(|| jpeg::marked_ycbcr(tables?));
            let other = c.samples == 3 && marked.is_some_and(|m| m != (c.colour == Colour::YCbCr));
            (image, doubt.or(other.then_some(jpeg::OTHER_COLOURS)))
        }
    };
    let mut data = cut_rgb(image.data, (image.width, image.height), size)?;
    match &c.colour {
        Colour::GreyInverted => data.iter_mut().for_each(|v| *v = 255 - *v),
        Colour::Palette(map) => {
            data.as_chunks_mut::<3>().0.iter_mut().for_each(|p| *p = map[usize::from(p[0])]);
        }
        Colour::Grey | Colour::Rgb | Colour::YCbCr => {}
    }
    Ok((data, doubt))
}

/// The stored bytes of a plane, and their number.
pub(crate) struct PlaneBytes<'a> {
    pub(crate) bytes: Box<dyn BufRead + 'a>,
    pub(crate) len: u64,
}

/// Decodes one piece of a plain scheme row by row: one plane for chunky samples, `sink` gets `size.1` rows of
/// `3 * size.0` bytes.
pub(crate) fn rows<'a>(
    c: &Coding,
    planes: Vec<PlaneBytes<'a>>,
    stored: (usize, usize),
    size: (usize, usize),
    sink: &mut dyn FnMut(&[u8]) -> Result<(), String>,
) -> Result<(), Fault> {
    let per_plane = if c.planar { 1 } else { c.samples };
    let mut readers = Vec::with_capacity(planes.len());
    for PlaneBytes { bytes, len: n } in planes {
        let needed = stored.0 as u64 * stored.1 as u64 * per_plane as u64;
        // Far above what each scheme can reach: a size that is costs no time.
        let most = match c.compression {
            Compression::None => n,
            Compression::PackBits => n.saturating_mul(64),
            _ => n.saturating_mul(2048),
        };
        if needed > most {
            return Err(format!("{n} stored bytes cannot hold {needed}").into());
        }
        readers.push(unpack::reader(c.compression, bytes));
    }
    let mut row = vec![0; stored.0 * per_plane * readers.len()];
    let mut chunky = Vec::new();
    let mut rgb = Vec::with_capacity(3 * size.0);
    for _ in 0..size.1 {
        for (line, reader) in row.chunks_exact_mut(stored.0 * per_plane).zip(&mut readers) {
            reader.read_exact(line).map_err(|e| unpack::fault(c.compression, &e))?;
            if c.predict {
                for i in per_plane..line.len() {
                    line[i] = line[i].wrapping_add(line[i - per_plane]);
                }
            }
        }
        rgb.clear();
        if c.planar {
            chunky.clear();
            chunky.extend((0..stored.0).flat_map(|x| row[x..].iter().step_by(stored.0).copied()));
            to_rgb(c, &chunky[..c.samples * size.0], &mut rgb);
        } else {
            to_rgb(c, &row[..c.samples * size.0], &mut rgb);
        }
        sink(&rgb)?;
    }
    let left = (stored.1.saturating_sub(size.1) * stored.0 * per_plane) as u64;
    readers.into_iter().try_for_each(|reader| unpack::check_sum(c.compression, reader, left))
}

/// The upper left part of a picture.
pub(crate) fn cut_rgb(
    data: Vec<u8>,
    have: (usize, usize),
    size: (usize, usize),
) -> Result<Vec<u8>, String> {
    if have.0 < size.0 || have.1 < size.1 {
        return Err(format!(
            "{} x {} pixels inside, {} x {} needed",
            have.0, have.1, size.0, size.1
        ));
    }
    if have == size {
        return Ok(data);
    }
    let mut out = Vec::with_capacity(3 * size.0 * size.1);
    for line in data.chunks_exact(3 * have.0).take(size.1) {
        out.extend_from_slice(&line[..3 * size.0]);
    }
    Ok(out)
}

/// Appends one row of samples as RGB. What is not opaque is on white.
fn to_rgb(c: &Coding, line: &[u8], out: &mut Vec<u8>) {
    let n = c.samples;
    let pixels = line.chunks_exact(n);
    let from = out.len();
    match &c.colour {
        Colour::Rgb if n == 3 => out.extend_from_slice(line),
        Colour::Rgb => out.extend(pixels.clone().flat_map(|p| [p[0], p[1], p[2]])),
        Colour::Grey => out.extend(pixels.clone().flat_map(|p| [p[0]; 3])),
        Colour::GreyInverted => out.extend(pixels.clone().flat_map(|p| [255 - p[0]; 3])),
        Colour::Palette(map) => out.extend(line.iter().flat_map(|p| map[usize::from(*p)])),
        Colour::YCbCr => out.extend(pixels.clone().flat_map(|p| jpeg::ycc(p[0], p[1], p[2]))),
    }
    if c.alpha == Alpha::None {
        return;
    }
    let at = c.colour.samples();
    for (rgb, pixel) in out[from..].as_chunks_mut::<3>().0.iter_mut().zip(pixels) {
        let a = pixel[at];
        *rgb = match c.alpha {
            Alpha::Unspecified if a == 0 && *rgb == [0; 3] => [255; 3],
            Alpha::Unspecified | Alpha::None => *rgb,
            Alpha::Associated => rgb.map(|v| v.saturating_add(255 - a)),
            Alpha::Unassociated => rgb.map(|v| over_white(v, a)),
        };
    }
}

/// A colour of opacity `a` on white.
pub(crate) fn over_white(c: u8, a: u8) -> u8 {
    ((u32::from(c) * u32::from(a) + 255 * (255 - u32::from(a)) + 127) / 255) as u8
}
