//! JPEG tiles: abbreviated streams with shared tables, and libjpeg's pixels.
//!
//! `zune-jpeg` decodes the planes; upsampling and colour are done here, because its own upsampling
//! differs from libjpeg's "fancy" one, which every slide vendor's viewer and OpenSlide show.

use mitosis::RgbTile;
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

/// What the three components of a stream are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    /// YCbCr whatever the stream says (TIFF photometric 6).
    YCbCr,
    /// The components are R, G, B (or grey) whatever the stream says (TIFF photometric 2: Aperio
    /// writes RGB without a marker).
    AsStored,
    /// By the stream's own markers (flat JPEG files).
    ByMarkers,
}

/// ITU-R BT.601 full range, in libjpeg's fixed point.
pub(crate) fn ycc(y: u8, cb: u8, cr: u8) -> [u8; 3] {
    let (y, cb, cr) = (i32::from(y), i32::from(cb) - 128, i32::from(cr) - 128);
    const HALF: i32 = 1 << 15;
    let r = y + ((91_881 * cr + HALF) >> 16);
    let g = y + ((-22_554 * cb - 46_802 * cr + HALF) >> 16);
    let b = y + ((116_130 * cb + HALF) >> 16);
    [r, g, b].map(|v| v.clamp(0, 255) as u8)
}

/// Decodes a JPEG stream of at most `most` pixels per side.
pub(crate) fn decode(
    tables: Option<&[u8]>,
    raw: &[u8],
    space: Space,
    most: (usize, usize),
) -> Result<RgbTile, String> {
    let joined;
    let stream = match tables {
        Some(t) if t.len() > 4 && raw.len() > 2 => {
            // Tables end with EOI, the tile begins with SOI.
            let end = if t.ends_with(&[0xFF, 0xD9]) { t.len() - 2 } else { t.len() };
            joined = [&t[..end], &raw[2..]].concat();
            &joined[..]
        }
        _ => raw,
    };
    // The smallest coded block of 8 x 8 takes some bits; a size far above it is a lie.
    let (w, h) = (most.0.min(65_535), most.1.min(65_535));
    let options =
        DecoderOptions::default().set_strict_mode(true).set_max_width(w).set_max_height(h);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(stream), options);
    decoder.decode_headers().map_err(|e| format!("JPEG: {e:?}"))?;
    let info = decoder.info().ok_or("JPEG: no header")?;
    let (w, h) = (usize::from(info.width), usize::from(info.height));
    if w * h * 3 > stream.len().saturating_mul(4096) {
        return Err(format!("JPEG: {} bytes cannot hold {w} x {h} pixels", stream.len()));
    }
    let stored = decoder.input_colorspace();
    let out = match (space, stored) {
        (_, Some(ColorSpace::Luma)) => ColorSpace::Luma,
        (Space::YCbCr, Some(ColorSpace::YCbCr))
        | (Space::ByMarkers, Some(ColorSpace::YCbCr | ColorSpace::RGB)) => ColorSpace::RGB,
        (Space::AsStored, Some(c @ (ColorSpace::YCbCr | ColorSpace::RGB))) => c,
        (_, other) => return Err(format!("JPEG: colour space {other:?} is not read")),
    };
    decoder.set_options(options.jpeg_set_out_colorspace(out));
    let mut data = decoder.decode().map_err(|e| format!("JPEG: {e:?}"))?;
    if out == ColorSpace::Luma {
        data = data.iter().flat_map(|v| [*v; 3]).collect();
    }
    if data.len() != 3 * w * h {
        return Err(format!("JPEG: {} samples for {w} x {h} pixels", data.len()));
    }
    Ok(RgbTile { width: w, height: h, data })
}
