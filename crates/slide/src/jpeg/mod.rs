//! JPEG tiles with libjpeg's pixels.
//!
//! Sequential and progressive Huffman JPEG, bit-equal to libjpeg-turbo with its default ("islow")
//! inverse DCT and fancy upsampling, hence to OpenSlide. Other decoders in Rust stray from it by up
//! to 5 grey levels on 4:2:0.

mod huffman;
mod idct;
mod paint;
mod parse;
mod progressive;
mod scan;

use mitosis::RgbTile;

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
    // A block of 8 x 8 takes at least one bit, and of three components two may be thinned.
    if w * h * 3 > raw.len().saturating_mul(8 * 64 * 3) {
        return Err(format!("JPEG: {} bytes cannot hold {w} x {h} pixels", raw.len()));
    }
    let ycbcr = frame.components.len() == 3
        && match space {
            Space::YCbCr => true,
            Space::AsStored => false,
            Space::ByMarkers => frame.marked_ycbcr(),
        };
    let Some(scan) = scan else { return Err("JPEG: no image data".into()) };
    let planes = if frame.sequential {
        scan::planes(&mut frame, raw, scan)?
    } else {
        progressive::planes(&mut frame, raw, scan)?
    };
    let data = paint::rgb(&planes, (w, h), ycbcr)?;
    Ok(RgbTile { width: w, height: h, data })
}
