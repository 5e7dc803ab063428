//! Files that hold more than the picture that is read: animated PNG, several pictures in one JPEG (CIPA DC-007), pages
//! of a TIFF. As with several scenes of a slide, another picture like the first is refused, because nobody knows which
//! is meant; one of another size is named; previews are neither.

use crate::exif;
use std::ops::Range;

/// What to do about further pictures.
pub(crate) const REMEDY: &str = "save the picture that is meant in a file of its own";
/// Bytes of a picture in which its size is looked for.
pub(crate) const HEAD: u64 = 64 << 10;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";
/// Tag of the list of pictures, and bytes of one of them (CIPA DC-007, 5.2.3).
const ENTRIES: u16 = 0xB002;
const ENTRY: usize = 16;
/// Kinds of picture: a preview of the first, and one of several views.
const PREVIEW: u32 = 0x01_0000;
const VIEW: u32 = 0x02_0000;

/// Why a PNG is not one picture.
pub(crate) fn in_png(b: &[u8]) -> Option<String> {
    let mut at = PNG.len();
    let (mut frames, mut first_is_frame) = (0, false);
    while let Some(chunk) = b.get(at..at.saturating_add(8)) {
        let length = u32::from_be_bytes([chunk[0], chunk[1], chunk[2], chunk[3]]) as usize;
        match &chunk[4..8] {
            b"IDAT" | b"IEND" => break,
            b"acTL" => {
                let n = b.get(at + 8..at + 12)?;
                frames = n.iter().fold(0u64, |v, x| v << 8 | u64::from(*x));
            }
            b"fcTL" => first_is_frame = true,
            _ => {}
        }
        at = at.saturating_add(length).saturating_add(12);
    }
    let all = if first_is_frame || frames == 0 { frames } else { frames + 1 };
    (all > 1).then(|| format!("an animation of {all} pictures, of which one would be read"))
}

/// Notes on the further pictures of a JPEG of `size`, or why it is not one picture. `head` reads [`HEAD`] bytes from a
/// place of the file.
pub(crate) fn in_jpeg(
    b: &[u8],
    (w, h): (u64, u64),
    head: &mut dyn FnMut(u64) -> Option<Vec<u8>>,
) -> Result<Vec<String>, String> {
    let (mut notes, mut alike) = (Vec::new(), 1);
    for (i, (kind, at)) in further(b).into_iter().enumerate() {
        if kind & 0xFF_0000 == PREVIEW {
            continue;
        }
        let size = head(at).and_then(|head| jpeg_size(&head));
        if kind & 0xFF_0000 == VIEW || size == Some((w, h)) {
            alike += 1;
            continue;
        }
        let size = size.map_or_else(String::new, |(w, h)| format!(" ({w} x {h} px)"));
        notes.push(format!("picture {} of the file{size} is not read", i + 2));
    }
    match alike {
        1 => Ok(notes),
        n => Err(format!("{n} pictures of {w} x {h} px, of which one would be read")),
    }
}

/// Markers and bodies of the segments before the data of a JPEG.
fn segments(b: &[u8]) -> Vec<(u8, Range<usize>)> {
    let (mut all, mut at) = (Vec::new(), 2);
    while let Some(&[0xFF, marker, high, low]) = b.get(at..at + 4) {
        let end = at + 2 + usize::from(u16::from_be_bytes([high, low])).max(2);
        if marker == 0xFF {
            at += 1;
            continue;
        }
        if end > b.len() || marker == 0xDA {
            break;
        }
        all.push((marker, at + 4..end));
        at = end;
    }
    all
}

/// Width and height that the frame header of a JPEG states.
fn jpeg_size(b: &[u8]) -> Option<(u64, u64)> {
    let is_frame = |m: u8| matches!(m, 0xC0..=0xCF) && !matches!(m, 0xC4 | 0xC8 | 0xCC);
    let all = segments(b.starts_with(&[0xFF, 0xD8]).then_some(b)?);
    let (_, body) = all.into_iter().find(|(marker, _)| is_frame(*marker))?;
    let side = |at: usize| b.get(at..at + 2).map(|s| u64::from(s[0]) << 8 | u64::from(s[1]));
    Some((side(body.start + 3)?, side(body.start + 1)?))
}

/// Kinds and places of the pictures behind the first of a JPEG.
fn further(b: &[u8]) -> Vec<(u32, u64)> {
    let is_list = |(marker, body): &(u8, Range<usize>)| {
        *marker == 0xE2 && b[body.clone()].starts_with(b"MPF\0")
    };
    let Some((_, list)) = segments(b).into_iter().find(is_list) else { return Vec::new() };
    let start = list.start + 4;
    let fields = exif::fields(&b[start..list.end]);
    let Some(field) = fields.iter().find(|f| f.tag == ENTRIES) else { return Vec::new() };
    let uint = |b: &[u8]| match field.big_endian {
        true => b.iter().fold(0, |v, x| v << 8 | u32::from(*x)),
        false => b.iter().rev().fold(0, |v, x| v << 8 | u32::from(*x)),
    };
    let entries = field.value.chunks_exact(ENTRY).skip(1);
    entries
        .map(|e| (uint(&e[..4]) & 0xFF_FFFF, start as u64 + u64::from(uint(&e[8..12]))))
        .collect()
}

/// Pages of a TIFF that are not shrunk copies or masks of others; 0 of what is not one. Two are enough.
fn pages(b: &[u8]) -> usize {
    let big_endian = b.starts_with(b"MM");
    let uint = |at: u64, n: u64| -> Option<u64> {
        let (from, to) = (usize::try_from(at).ok()?, usize::try_from(at.checked_add(n)?).ok()?);
        let bytes = b.get(from..to)?;
        Some(match big_endian {
            true => bytes.iter().fold(0, |v, x| v << 8 | u64::from(*x)),
            false => bytes.iter().rev().fold(0, |v, x| v << 8 | u64::from(*x)),
        })
    };
    let walk = || -> Option<usize> {
        let big = uint(2, 2)? == 43;
        let (word, count, entry) = if big { (8, 8, 20) } else { (4, 2, 12) };
        let (mut at, mut pages, mut seen) = (uint(if big { 8 } else { 4 }, word)?, 0, Vec::new());
        while at != 0 && pages < 2 && !seen.contains(&at) && seen.len() < 100 {
            seen.push(at);
            let n = uint(at, count)?.min(4096);
            let value = |tag: u64| {
                let place = (0..n).map(|i| at + count + i * entry);
                let entry = place.into_iter().find(|p| uint(*p, 2) == Some(tag))?;
                uint(entry + entry_value(big), if uint(entry + 2, 2)? == 3 { 2 } else { 4 })
            };
            let shrunk = value(254).is_some_and(|kind| kind & 5 != 0) || value(255) == Some(2);
            pages += usize::from(!shrunk);
            at = uint(at + count + n * entry, word)?;
        }
        Some(pages)
    };
    match b.get(..4) {
        Some(b"II*\0" | b"MM\0*" | b"II+\0" | b"MM\0+") => walk().unwrap_or(0),
        _ => 0,
    }
}

/// Where the value of a directory's entry is in it.
fn entry_value(big: bool) -> u64 {
    if big { 12 } else { 8 }
}

/// Why a crop's file is not one picture, with the remedy; none of one that is.
#[must_use]
pub fn other_pictures(b: &[u8]) -> Option<String> {
    let what = if b.starts_with(PNG) {
        in_png(b)
    } else if let Some(size) = jpeg_size(b).filter(|_| b.starts_with(&[0xFF, 0xD8])) {
        let mut head = |at: u64| {
            let from = usize::try_from(at).ok()?;
            Some(b.get(from..b.len().min(from.saturating_add(HEAD as usize)))?.to_vec())
        };
        in_jpeg(b, size, &mut head).err()
    } else {
        (pages(b) > 1).then(|| "several pages, of which one would be read".to_owned())
    };
    what.map(|what| format!("{what}; {REMEDY}"))
}
