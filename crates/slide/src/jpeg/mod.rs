//! JPEG tiles with libjpeg's pixels.
//!
//! Sequential and progressive Huffman JPEG, bit-equal to libjpeg-turbo with its default ("islow")
//! inverse DCT and fancy upsampling, and so to OpenSlide. Other decoders in Rust stray from it by up
//! to 5 grey levels on 4:2:0.

mod huffman;
mod idct;
mod paint;
mod parse;
mod progressive;
mod scan;
mod segments;

use mitosis::RgbTile;

pub(crate) use paint::ycc;
pub(crate) use segments::{
    Segment, Segments, components, has_one_scan, has_scan, is_frame, marked_ycbcr, segments,
    stated_size,
};

/// Doubt of a stream whose markers contradict the file that holds it.
pub(crate) const OTHER_COLOURS: &str =
    "the JPEG stream is marked as of other colours than the header states";

/// What the three components of a stream are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    /// YCbCr whatever the stream states (TIFF photometric 6).
    YCbCr,
    /// The components are R, G, B (or grey) whatever the stream states (TIFF photometric 2: Aperio
    /// writes RGB without a marker).
    AsStored,
    /// By the stream's own markers (flat JPEG files).
    ByMarkers,
}

/// Decodes a JPEG stream of at most `most` pixels per side. `tables` is TIFF's `JPEGTables`. With
/// the pixels comes what casts doubt on them, if anything: decoders agree that such a stream can be
/// read, but it was not written so.
pub(crate) fn decode(
    tables: Option<&[u8]>,
    raw: &[u8],
    space: Space,
    most: (usize, usize),
) -> Result<(RgbTile, Option<&'static str>), String> {
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
    let (planes, end) = if frame.sequential {
        scan::planes(&mut frame, raw, scan)?
    } else {
        progressive::planes(&mut frame, raw, scan)?
    };
    let doubt = frame.doubt.or_else(|| after(&raw[end.min(raw.len())..]));
    let data = paint::rgb(&planes, (w, h), ycbcr)?;
    Ok((RgbTile { width: w, height: h, data }, doubt))
}

/// What is wrong with the bytes after the last scan: an end marker belongs there, and nothing more.
fn after(mut rest: &[u8]) -> Option<&'static str> {
    // Fill bytes.
    while let [0xFF, 0xFF, ..] = rest {
        rest = &rest[1..];
    }
    match rest {
        [0xFF, 0xD9, padding @ ..] => {
            let nothing = |b: &u8| matches!(b, 0 | 0xFF);
            (!padding.iter().all(nothing)).then_some("data after the end of the JPEG stream")
        }
        [] | [0xFF] => Some("no end marker in the JPEG stream"),
        _ => Some("surplus data in the JPEG stream"),
    }
}

#[cfg(test)]
mod tests {
    use super::{Space, decode};

    fn golden(name: &str) -> Vec<u8> {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/slides/");
        std::fs::read(format!("{folder}{name}")).unwrap()
    }

    fn doubt(b: &[u8]) -> Option<&'static str> {
        decode(None, b, Space::ByMarkers, (1000, 1000)).unwrap().1
    }

    #[test]
    fn what_follows_the_image_is_looked_at() {
        for name in ["flat_420.jpg", "flat_progressive_444.jpg"] {
            let whole = golden(name);
            let body = &whole[..whole.len() - 2];
            assert_eq!(doubt(&whole), None, "{name}");
            assert_eq!(doubt(&[&whole[..], &[0, 0xFF, 0]].concat()), None, "padding");
            let after = doubt(&[&whole[..], b"more"].concat());
            assert_eq!(after, Some("data after the end of the JPEG stream"));
            if name == "flat_420.jpg" {
                assert_eq!(doubt(body), Some("no end marker in the JPEG stream"));
                let surplus = [body, &[0x12, 0x34, 0x56], &[0xFF, 0xD9]].concat();
                assert_eq!(doubt(&surplus), Some("surplus data in the JPEG stream"));
            }
        }
    }

    #[test]
    fn restart_markers_take_turns() {
        let mut out = Vec::new();
        let mut encoder = jpeg_encoder::Encoder::new(&mut out, 80);
        encoder.set_restart_interval(1);
        let pixels: Vec<u8> = (0..64 * 64 * 3u32).map(|i| (i * 31 % 251) as u8).collect();
        encoder.encode(&pixels, 64, 64, jpeg_encoder::ColorType::Rgb).unwrap();
        assert_eq!(doubt(&out), None);
        let places: Vec<usize> = (0..out.len() - 1)
            .filter(|&i| out[i] == 0xFF && (0xD0..=0xD7).contains(&out[i + 1]))
            .collect();
        assert!(places.len() > 10);
        out[places[4] + 1] = 0xD0 + (out[places[4] + 1] - 0xD0 + 1) % 8;
        assert_eq!(doubt(&out), Some("restart markers of the JPEG stream out of turn"));
    }
}
