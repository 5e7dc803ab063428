//! A PNG or JPEG without texts: the pixels' own chunks and segments, byte by byte.

use super::{DeidentifyError, Written, disk};
use crate::inventory::without_texts;
use crate::limits::Fault;
use crate::png;
use crate::{Slide, SlideError};
use sha2::{Digest, Sha256};
use std::path::Path;

/// Chunks of PNG that are copied: pixels, colours, resolution.
const KEPT: [&[u8; 4]; 14] = [
    b"IHDR", b"PLTE", b"IDAT", b"IEND", b"tRNS", b"cHRM", b"gAMA", b"sBIT", b"sRGB", b"bKGD",
    b"pHYs", b"cICP", b"mDCV", b"cLLI",
];

pub(super) fn write(slide: &Slide, output: &Path) -> Result<Written, DeidentifyError> {
    let mut bytes = vec![0; slide.file.len as usize];
    slide.file.read_at(&mut bytes, 0).map_err(|e| {
        let reason = Fault::read(0, &e).reason();
        SlideError::read(&slide.path, reason)
    })?;
    let clean =
        if slide.format() == "png" { png(&bytes) } else { without_texts(&bytes).into_owned() };
    std::fs::write(output, &clean).map_err(disk(output))?;
    let written = base::file::read_whole(output).map_err(disk(output))?;
    let digest = |b: &[u8]| base::digest::hex(&Sha256::digest(pixels(slide.format(), b)));
    let output = vec![output.to_path_buf()];
    let main = output[0].clone();
    let (sha256, copied) = (digest(&bytes), digest(&written));
    Ok(Written { output, main, removed: Vec::new(), tiles: 1, sha256, copied })
}

fn png(b: &[u8]) -> Vec<u8> {
    let mut out = b[..png::SIGNATURE.len()].to_vec();
    for chunk in png::chunks(b).filter(|c| KEPT.contains(&c.kind)) {
        out.extend_from_slice(chunk.whole.unwrap_or_default());
    }
    out
}

/// The bytes that make the pixels.
fn pixels(format: &str, b: &[u8]) -> Vec<u8> {
    if format == "png" {
        let pixels = png::chunks(b).filter(|c| c.kind == b"IDAT").filter_map(|c| c.whole);
        return pixels.flatten().copied().collect();
    }
    without_texts(b).into_owned()
}
