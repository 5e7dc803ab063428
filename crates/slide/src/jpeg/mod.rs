//! JPEG tiles with libjpeg's pixels.
//!
//! Sequential Huffman JPEG, which is what slides hold, is decoded here: bit-equal to libjpeg-turbo
//! with its default ("islow") inverse DCT and fancy upsampling, hence to OpenSlide. `zune-jpeg`
//! strays by up to 5 grey levels on 4:2:0 and is used for progressive files alone.

mod huffman;
mod idct;
mod paint;
mod parse;
mod scan;

use mitosis::RgbTile;
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

pub(crate) use paint::ycc;

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

/// Decodes a JPEG stream of at most `most` pixels per side. `tables` is TIFF's `JPEGTables`.
pub(crate) fn decode(
    tables: Option<&[u8]>,
    raw: &[u8],
    space: Space,
    most: (usize, usize),
) -> Result<RgbTile, String> {
    let mut frame = parse::Frame::default();
    if let Some(tables) = tables {
        frame.headers(tables)?;
    }
    let scan = frame.headers(raw)?;
    let (w, h) = (frame.width, frame.height);
    if w == 0 || h == 0 {
        return Err("JPEG: no frame header".into());
    }
    if w > most.0 || h > most.1 {
        return Err(format!("JPEG: {w} x {h} pixels where {} x {} are expected", most.0, most.1));
    }
    // A coded block of 8 x 8 takes some bits; a size far above that is a lie.
    if w * h * 3 > raw.len().saturating_mul(4096) {
        return Err(format!("JPEG: {} bytes cannot hold {w} x {h} pixels", raw.len()));
    }
    if !frame.sequential {
        return progressive(tables, raw, space, (w, h));
    }
    let ycbcr = frame.components.len() == 3
        && match space {
            Space::YCbCr => true,
            Space::AsStored => false,
            Space::ByMarkers => frame.marked_ycbcr(),
        };
    let Some(scan) = scan else { return Err("JPEG: no image data".into()) };
    let planes = scan::planes(&mut frame, raw, scan)?;
    let data = paint::rgb(&planes, (w, h), ycbcr)?;
    Ok(RgbTile { width: w, height: h, data })
}

fn progressive(
    tables: Option<&[u8]>,
    raw: &[u8],
    space: Space,
    (w, h): (usize, usize),
) -> Result<RgbTile, String> {
    let joined;
    let stream = match tables {
        Some(t) if t.len() > 4 && raw.len() > 2 => {
            // Tables end with EOI, the tile begins with SOI.
            joined = [t.strip_suffix(&[0xFF, 0xD9]).unwrap_or(t), &raw[2..]].concat();
            &joined[..]
        }
        _ => raw,
    };
    let options =
        DecoderOptions::default().set_strict_mode(true).set_max_width(w).set_max_height(h);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(stream), options);
    decoder.decode_headers().map_err(|e| format!("JPEG: {e:?}"))?;
    let out = match (space, decoder.input_colorspace()) {
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
