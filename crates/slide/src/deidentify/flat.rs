//! A PNG or JPEG without texts: the pixels' own chunks and segments, byte by byte.

use super::{DeidentifyError, Written, disk};
use crate::inventory::is_technical_segment;
use crate::jpeg::segments;
use crate::limits::Fault;
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
    let clean = if slide.format() == "png" { png(&bytes) } else { jpeg(&bytes) };
    std::fs::write(output, &clean).map_err(disk(output))?;
    let written = base::file::read_whole(output).map_err(disk(output))?;
    let digest = |b: &[u8]| base::digest::hex(&Sha256::digest(pixels(slide.format(), b)));
    let output = vec![output.to_path_buf()];
    let main = output[0].clone();
    let (sha256, copied) = (digest(&bytes), digest(&written));
    Ok(Written { output, main, removed: Vec::new(), tiles: 1, sha256, copied })
}

/// The chunks of a PNG: kind and bytes, length and checksum included.
fn chunks(b: &[u8]) -> Vec<([u8; 4], &[u8])> {
    let mut all = Vec::new();
    let mut at = 8;
    while let Some(head) = b.get(at..at + 8) {
        let len = u32::from_be_bytes([head[0], head[1], head[2], head[3]]) as usize;
        let Some(whole) = b.get(at..at.saturating_add(len).saturating_add(12)) else { break };
        all.push(([head[4], head[5], head[6], head[7]], whole));
        at += whole.len();
    }
    all
}

fn png(b: &[u8]) -> Vec<u8> {
    let mut out = b[..8].to_vec();
    for (kind, whole) in chunks(b) {
        if KEPT.iter().any(|k| **k == kind) {
            out.extend_from_slice(whole);
        }
    }
    out
}

fn jpeg(b: &[u8]) -> Vec<u8> {
    let (all, end) = segments(b);
    let mut out = Vec::with_capacity(b.len());
    let mut from = 0;
    for s in all.iter().filter(|s| !is_technical_segment(s.marker, &b[s.body.clone()])) {
        out.extend_from_slice(&b[from..s.start]);
        from = s.body.end;
    }
    out.extend_from_slice(&b[from..end.min(b.len())]);
    out
}

/// The bytes that make the pixels.
fn pixels(format: &str, b: &[u8]) -> Vec<u8> {
    if format == "png" {
        let all = chunks(b).into_iter();
        return all.filter(|(k, _)| k == b"IDAT").flat_map(|(_, c)| c.to_vec()).collect();
    }
    jpeg(b)
}
