//! Files that hold more than the picture that is read: animated PNG, several pictures in one JPEG (CIPA DC-007), pages
//! of a TIFF. As with several scenes of a slide, another picture like the first is refused, because nobody knows which
//! is meant; one of another size is named; previews are neither.

use crate::exif;
use crate::file::SlideFile;
use crate::jpeg::{Segment, Segments, stated_size};
use crate::limits::Limits;
use crate::png;
use crate::tiff::{Ifd, TiffFile, is_tiff, tag};
use std::sync::Arc;

/// What to do about further pictures.
pub(crate) const REMEDY: &str = "save the picture that is meant in a file of its own";
/// Bytes of a picture in which its size is looked for.
pub(crate) const HEAD: u64 = 64 << 10;

/// Tag of the list of pictures, and bytes of one of them (CIPA DC-007, 5.2.3).
const ENTRIES: u16 = 0xB002;
const ENTRY: usize = 16;
/// Kinds of picture: a preview of the first, and one of several views.
const PREVIEW: u32 = 0x01_0000;
const VIEW: u32 = 0x02_0000;

/// Why a PNG is not one picture.
pub(crate) fn in_png(b: &[u8]) -> Option<String> {
    let (mut frames, mut first_is_frame) = (0, false);
    for chunk in png::chunks(b).take_while(|c| !matches!(c.kind, b"IDAT" | b"IEND")) {
        match chunk.kind {
            b"acTL" => frames = u32::from_be_bytes(*chunk.body.first_chunk()?),
            b"fcTL" => first_is_frame = true,
            _ => {}
        }
    }
    let frames = u64::from(frames);
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
        let size = head(at).and_then(|head| stated_size(&head));
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

/// Kinds and places of the pictures behind the first of a JPEG.
fn further(b: &[u8]) -> Vec<(u32, u64)> {
    let is_list = |s: &Segment| s.marker == 0xE2 && b[s.body.clone()].starts_with(b"MPF\0");
    let Some(list) = Segments::before_scans(b).find(is_list) else { return Vec::new() };
    let start = list.body.start + 4;
    let fields = exif::fields(&b[start..list.body.end]);
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

/// Whether a TIFF has a page that is neither a shrunk copy of another nor a mask: by what it states, as the
/// directories of slides do, or by its size. Of what cannot be walked that is not known.
fn has_pages(b: &[u8]) -> bool {
    let file = Arc::new(SlideFile::from(b.to_vec()));
    let Ok(tiff) = TiffFile::read(&file, &Limits::default()) else { return false };
    let uint = |ifd: &Ifd, tag| ifd.uint(tag).ok().flatten();
    let is_page = |ifd: &&Ifd| {
        let stated = uint(ifd, tag::SUBFILE_TYPE).is_some_and(|kind| kind & 5 != 0);
        !stated && uint(ifd, tag::OLD_SUBFILE_TYPE) != Some(2)
    };
    let size = |ifd: &Ifd| uint(ifd, tag::WIDTH).zip(uint(ifd, tag::HEIGHT));
    let mut pages = tiff.ifds.iter().filter(is_page);
    let Some(first) = pages.next() else { return false };
    let is_copy = |page| size(first).zip(size(page)).is_some_and(|(all, own)| shrunk(all, own));
    !pages.all(is_copy)
}

/// Whether an image is a shrunk copy of another, by its size.
pub(crate) fn shrunk((w, h): (u64, u64), (iw, ih): (u64, u64)) -> bool {
    // Same shape within a pixel of the smaller image.
    let (fx, fy) = (w as f64 / iw as f64, h as f64 / ih as f64);
    let slack = 1.0 / iw.min(ih) as f64 + 0.01;
    iw < w && ih < h && (fx / fy - 1.0).abs() <= slack
}

/// Why a crop's or a mask's file is not one picture, with the remedy; none of one that is.
#[must_use]
pub(crate) fn other_pictures(b: &[u8]) -> Option<String> {
    let what = if b.starts_with(png::SIGNATURE) {
        in_png(b)
    } else if let Some(size) = stated_size(b) {
        let mut head = |at: u64| {
            let from = usize::try_from(at).ok()?;
            Some(b.get(from..b.len().min(from.saturating_add(HEAD as usize)))?.to_vec())
        };
        in_jpeg(b, size, &mut head).err()
    } else {
        (is_tiff(b) && has_pages(b)).then(|| "several pages, of which one would be read".to_owned())
    };
    what.map(|what| format!("{what}; {REMEDY}"))
}
