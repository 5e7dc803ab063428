//! A PNG or JPEG without texts: the pixels' own chunks and segments, byte by byte.

use super::DeidentifyError;
use super::error::disk;
use super::written::Written;
use crate::file::SlideFile;
use crate::inventory::{PNG_PIXELS, without_texts};
use crate::limits::Fault;
use crate::png::{SIGNATURE, is_scale};
use crate::privacy::holds_words;
use crate::{Limits, Slide, SlideError};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// Chunks of PNG that are copied: pixels, colours, resolution.
const KEPT: [&[u8; 4]; 15] = [
    b"IHDR", b"PLTE", b"IDAT", b"IEND", b"tRNS", b"cHRM", b"gAMA", b"sBIT", b"sRGB", b"bKGD",
    b"pHYs", b"sCAL", b"cICP", b"mDCV", b"cLLI",
];
/// Bytes of a chunk next to its body: length, kind, checksum.
const FRAME: u64 = 12;
/// Longest body of those that are neither pixels nor tables of colours.
const SHORT: u64 = 32;
/// Bytes copied at once.
const PIECE: u64 = 1 << 20;

/// What is done with a piece of a chunk of this kind.
type Sink<'a> = dyn FnMut(&[u8; 4], &[u8]) -> Result<(), DeidentifyError> + 'a;

pub(super) fn write(slide: &Slide, output: &Path) -> Result<Written, DeidentifyError> {
    let (sha256, copied) = match slide.format() {
        "png" => png(slide, output)?,
        _ => jpeg(slide, output)?,
    };
    let main = output.to_path_buf();
    Ok(Written { output: vec![main.clone()], main, removed: Vec::new(), tiles: 1, sha256, copied })
}

/// Copies a JPEG, of which decoding needs more memory than its bytes; gives the digests of both.
fn jpeg(slide: &Slide, output: &Path) -> Result<(String, String), DeidentifyError> {
    let mut bytes = vec![0; slide.file.len as usize];
    slide.file.read_at(&mut bytes, 0).map_err(|e| fault(&slide.path, Fault::read(0, &e)))?;
    std::fs::write(output, without_texts(&bytes)).map_err(disk(output))?;
    let written = base::file::read_whole(output).map_err(disk(output))?;
    let digest = |b: &[u8]| base::digest::hex(&Sha256::digest(without_texts(b)));
    Ok((digest(&bytes), digest(&written)))
}

/// Copies a PNG piece by piece, as it may be larger than memory; gives the digests of the pixels of both.
fn png(slide: &Slide, output: &Path) -> Result<(String, String), DeidentifyError> {
    let file = File::create_new(output).map_err(disk(output))?;
    let mut out = BufWriter::with_capacity(PIECE as usize, file);
    out.write_all(SIGNATURE).map_err(disk(output))?;
    let mut digest = Sha256::new();
    each_kept_chunk(&slide.file, &slide.path, &mut |kind, piece| {
        if kind == b"IDAT" {
            digest.update(piece);
        }
        out.write_all(piece).map_err(disk(output))
    })?;
    let file = out.into_inner().map_err(|e| disk(output)(e.into_error()))?;
    file.sync_all().map_err(disk(output))?;
    let mut copied = Sha256::new();
    let written = SlideFile::open(output, &Limits::default())?;
    each_kept_chunk(&written, output, &mut |kind, piece| {
        if kind == b"IDAT" {
            copied.update(piece);
        }
        Ok(())
    })?;
    Ok((base::digest::hex(&digest.finalize()), base::digest::hex(&copied.finalize())))
}

/// Hands on the kept chunks of a PNG up to its end, each whole and in pieces.
fn each_kept_chunk(
    file: &SlideFile,
    path: &Path,
    sink: &mut Sink<'_>,
) -> Result<(), DeidentifyError> {
    let read = |at: u64, n: u64| {
        let mut bytes = vec![0; n as usize];
        let done = file.read_at(&mut bytes, at).map_err(|e| fault(path, Fault::read(at, &e)));
        done.map(|()| bytes)
    };
    let mut at = SIGNATURE.len() as u64;
    while at + FRAME <= file.len {
        let head = read(at, 8)?;
        let [a, b, c, d, kind @ ..] = head.first_chunk::<8>().copied().unwrap_or_default();
        let length = u64::from(u32::from_be_bytes([a, b, c, d]));
        let end = at + FRAME + length;
        if end > file.len {
            let reason = format!(
                "the chunk at {at} claims {length} bytes, beyond the end of the file ({} bytes)",
                file.len
            );
            return Err(fault(path, Fault::Damaged(reason)));
        }
        let is_kept = KEPT.contains(&&kind)
            && (PNG_PIXELS.contains(&&kind)
                || (length <= SHORT && is_number(&kind, &read(at + 8, length)?)));
        while is_kept && at < end {
            let n = PIECE.min(end - at);
            sink(&kind, &read(at, n)?)?;
            at += n;
        }
        at = end;
        if kind == *b"IEND" {
            break;
        }
    }
    Ok(())
}

/// Whether the body of a chunk is numbers alone.
fn is_number(kind: &[u8; 4], body: &[u8]) -> bool {
    if kind == b"sCAL" { is_scale(body) } else { !holds_words(body) }
}

fn fault(path: &Path, fault: Fault) -> DeidentifyError {
    DeidentifyError::Slide(match fault {
        Fault::Read(reason) => SlideError::read(path, reason),
        other => SlideError::Malformed { path: path.to_path_buf(), reason: other.reason() },
    })
}
