//! Texts of a TIFF: every directory, those that directories point to, and what JPEG data carry.

use super::tags::{Holds, hides_words, is_bytes, is_text, known, most_numbers, without_code};
use super::{FileText, Search, jp2k, jpeg};
use crate::file::SlideFile;
use crate::jpeg::has_scan;
use crate::limits::{Fault, Limits};
use crate::privacy::Personal;
use crate::privacy::holds_words;
use crate::tiff::{Field, Ifd, TiffFile, tag};
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

/// Longest value that is searched for words; longer ones are named unread.
const LONGEST: u64 = 16 << 20;
/// Tiles of a directory that are looked at in a file on a server.
const REMOTE_TILES: usize = 16;
/// Bytes in which the header of most tiles ends.
const SHORT_HEADER: u64 = 1 << 10;
/// Longest header of a tile that is read.
const LONGEST_HEADER: u64 = 16 << 20;
const JPEG: u64 = 7;
const JPEG_START: [u8; 2] = [0xFF, 0xD8];
/// `Compression` of JPEG 2000: Aperio's two, and the one of libtiff's list.
pub(crate) const JPEG_2000: [u64; 3] = [33003, 33005, 34712];

/// Looks through a file. `read`: places of the directories whose images are read, and named elsewhere.
pub(super) fn search(
    file: &Arc<SlideFile>,
    read: &[u64],
    limits: &Limits,
) -> Result<Search, Fault> {
    let tiff = TiffFile::read(file, limits)?;
    let mut search = Search::default();
    let mut fields = 0;
    let mut directories = 0;
    let mut jpeg_2000 = false;
    let mut tiles = 0;
    let mut seen: HashSet<u64> = tiff.ifds.iter().map(|ifd| ifd.at).collect();
    for (i, ifd) in tiff.ifds.iter().enumerate() {
        let prefix = if i == 0 { "tiff".to_owned() } else { format!("tiff[{i}]") };
        let mut left = vec![(ifd.clone(), prefix)];
        while let Some((ifd, prefix)) = left.pop() {
            directories += 1;
            jpeg_2000 |= is_jpeg_2000(&ifd);
            fields += directory(&ifd, &prefix, &mut search)?;
            tiles += headers(&ifd, &prefix, reached(file), &mut search)?;
            for (below, place) in below(&tiff, &ifd)? {
                // One that several point to, or that points to itself, is looked at once.
                if seen.insert(below.at) {
                    tiff.countable(seen.len())?;
                    let prefix = format!("{prefix}.{place}");
                    search.texts_found.extend(picture(&below, &prefix, read));
                    left.push((below, prefix));
                }
            }
            // `SubIFDs` lists the first of a chain; of a directory of EXIF that place means nothing.
            if is_sub(&prefix) && ifd.next != 0 && seen.insert(ifd.next) {
                tiff.countable(seen.len())?;
                let next = tiff.directory(ifd.next)?;
                let prefix = format!("{prefix}.next");
                search.texts_found.extend(picture(&next, &prefix, read));
                left.push((next, prefix));
            }
        }
    }
    search.looked_at.push(format!(
        "{fields} text fields of {directories} directories, private tags, EXIF, GPS, XMP, IPTC and ICC \
         among them"
    ));
    let what = if jpeg_2000 { "JPEG and JPEG 2000" } else { "JPEG" };
    let reached = reached(file);
    search.looked_at.push(match reached {
        usize::MAX => {
            format!("{what} comments in the tables and in the headers of all {tiles} tiles")
        }
        _ => format!("{what} comments in the tables and the headers of {tiles} tiles"),
    });
    if reached != usize::MAX {
        let more = format!("{what} headers behind the first {reached} tiles of a directory");
        search.not_looked_at.push(more);
    }
    search.not_looked_at.push("what follows the header of a tile".into());
    search
        .not_looked_at
        .push("numbers in tags that a copy leaves out, and bytes no directory points to".into());
    Ok(search)
}

/// The directories that one points to, each with its place below it.
fn below(tiff: &TiffFile, ifd: &Ifd) -> Result<Vec<(Ifd, String)>, Fault> {
    let mut all = Vec::new();
    for field in ifd.entries() {
        if field.tag == tag::SUB_IFDS {
            let from = all.len();
            let listed = (from..).zip(tiff.pointed(ifd, field)?);
            all.extend(listed.map(|(k, sub)| (sub, format!("sub[{k}]"))));
        } else if let Some((_, Holds::Directory(name))) = known(field.tag) {
            // A damaged pointer does not lead to a directory.
            let pointed = tiff.pointed(ifd, field).unwrap_or_default();
            all.extend(pointed.into_iter().map(|below| (below, name.to_owned())));
        }
    }
    Ok(all)
}

/// Whether a directory is one of `SubIFDs`, or behind one of them.
fn is_sub(prefix: &str) -> bool {
    prefix.rsplit('.').find(|place| *place != "next").is_some_and(|place| place.starts_with("sub["))
}

/// The image of a directory that is not in the file's chain, unless it is a level or next to one: nothing here reads
/// it, so it may show anything.
fn picture(ifd: &Ifd, prefix: &str, read: &[u64]) -> Option<FileText> {
    let has_pixels = ifd.has(tag::STRIP_OFFSETS) || ifd.has(tag::TILE_OFFSETS);
    (has_pixels && !read.contains(&ifd.at)).then(|| FileText {
        name: prefix.to_owned(),
        value: "image".into(),
        kind: Some(Personal::Picture),
    })
}

/// Adds the texts of one directory; gives how many fields were looked at.
fn directory(ifd: &Ifd, prefix: &str, search: &mut Search) -> Result<usize, Fault> {
    let mut fields = 0;
    let samples = ifd.uint_or(tag::SAMPLES, 1).unwrap_or(1);
    for field in ifd.entries() {
        let Field { tag: t, kind, count, .. } = *field;
        let (name, holds) = match known(t) {
            Some((name, holds)) => (format!("{prefix}.{name}"), Some(holds)),
            None => (format!("{prefix}.({t})"), None),
        };
        let gps = prefix.ends_with(".gps");
        let is_letters = is_text(kind) || is_bytes(kind);
        let wanted = match holds {
            Some(Holds::Technical) => is_letters || most_numbers(t, samples).is_some(),
            Some(Holds::Directory(_)) => false,
            Some(_) => true,
            None => gps || is_letters,
        };
        if !wanted {
            continue;
        }
        fields += usize::from(is_letters || holds != Some(Holds::Technical));
        if count > LONGEST {
            search.texts_found.push(FileText {
                name,
                value: "unread".into(),
                kind: Some(Personal::Text),
            });
            continue;
        }
        if let (true, None) = (gps, holds) {
            search.texts_found.push(FileText {
                name,
                value: "place".into(),
                kind: Some(Personal::Place),
            });
            continue;
        }
        if let Some(Holds::Kind(Personal::Picture)) = holds {
            let value = "preview".into();
            search.texts_found.push(FileText { name, value, kind: Some(Personal::Picture) });
            continue;
        }
        let bytes = match ifd.value(field) {
            // Damaged numbers that nothing else reads.
            Err(Fault::Damaged(_)) if !is_letters && holds == Some(Holds::Technical) => continue,
            value => value?,
        };
        match holds {
            _ if t == tag::JPEG_TABLES && bytes.starts_with(&JPEG_START) => {
                search.texts_found.extend(jpeg::all_texts(&name, &bytes));
            }
            Some(Holds::Profile) => search.texts_found.extend(FileText::of_profile(&name, &bytes)),
            Some(Holds::Kind(kind)) => {
                search
                    .texts_found
                    .push(FileText { kind: Some(kind), ..FileText::text(name, &plain(t, &bytes)) });
            }
            Some(Holds::Technical) if is_letters => {
                search.texts_found.extend(FileText::of_product(name, kind, &bytes));
            }
            Some(Holds::Technical) => {
                let size = bytes.len() as u64 / count.max(1);
                if hides_words(t, &bytes, size, samples) {
                    let kind = Some(Personal::Text);
                    search.texts_found.push(FileText { kind, ..FileText::text(name, &bytes) });
                }
            }
            _ if is_text(kind) || holds_words(&bytes) => {
                search.texts_found.push(FileText::text(name, &bytes))
            }
            _ => {}
        }
    }
    Ok(fields)
}

/// How many tiles of a directory are looked at: all of a local file, few of one on a server, where each is a request.
pub(super) fn reached(file: &SlideFile) -> usize {
    if file.is_remote() { REMOTE_TILES } else { usize::MAX }
}

/// Adds the texts in the headers of tiles or strips; gives how many were looked at.
fn headers(ifd: &Ifd, prefix: &str, most: usize, search: &mut Search) -> Result<usize, Fault> {
    let jpeg_2000 = is_jpeg_2000(ifd);
    if !jpeg_2000 && ifd.uint(tag::COMPRESSION).ok().flatten() != Some(JPEG) {
        return Ok(0);
    }
    let (to, tc) = if ifd.has(tag::TILE_OFFSETS) {
        (tag::TILE_OFFSETS, tag::TILE_COUNTS)
    } else {
        (tag::STRIP_OFFSETS, tag::STRIP_COUNTS)
    };
    let (Some(offsets), Some(counts)) = (ifd.uints(to)?, ifd.uints(tc)?) else { return Ok(0) };
    let mut seen = BTreeSet::new();
    let mut tiles = 0;
    for (at, n) in offsets.into_iter().zip(counts).filter(|(_, n)| *n > 0).take(most) {
        let head = match header(ifd, at, n, jpeg_2000) {
            Ok(head) => head,
            Err(e @ Fault::Read(_)) => return Err(e),
            // A place outside of the file holds no text.
            Err(_) => continue,
        };
        tiles += 1;
        let texts = match jpeg_2000 {
            true => jp2k::texts(&format!("{prefix}.jpeg2000"), &head),
            false => jpeg::texts(&format!("{prefix}.jpeg"), &head),
        };
        // Each kind of text is named once, however many tiles have it.
        let texts = texts.into_iter().filter(|t| !t.findings().is_empty());
        search.texts_found.extend(texts.filter(|t| seen.insert(t.name.clone())));
    }
    Ok(tiles)
}

/// The start of a tile's data with its header, at most [`LONGEST_HEADER`]: of JPEG 2000 all, where every part of the
/// data may have a header of its own.
fn header(ifd: &Ifd, at: u64, n: u64, jpeg_2000: bool) -> Result<Vec<u8>, Fault> {
    let n = n.min(LONGEST_HEADER);
    let mut length = if jpeg_2000 { n } else { SHORT_HEADER };
    loop {
        let start = ifd.data(at, n.min(length))?;
        if length >= n || has_scan(&start) {
            return Ok(start);
        }
        length *= 64;
    }
}

fn is_jpeg_2000(ifd: &Ifd) -> bool {
    let compression = ifd.uint(tag::COMPRESSION).ok().flatten();
    compression.is_some_and(|c| JPEG_2000.contains(&c))
}

/// The value of a field as text: two bytes per character where Windows writes so, without the code of
/// a comment's characters.
fn plain(t: u16, bytes: &[u8]) -> Vec<u8> {
    match t {
        40091..=40095 => bytes.iter().copied().filter(|b| *b != 0).collect(),
        37510 => without_code(bytes).iter().copied().filter(|b| *b != 0).collect(),
        _ => bytes.to_vec(),
    }
}
