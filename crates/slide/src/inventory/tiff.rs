//! Texts of a TIFF: every directory, those that directories point to, and what JPEG data carry.

use super::tags::{Holds, known};
use super::{FileText, Search, holds_words, jp2k, jpeg};
use crate::file::SlideFile;
use crate::limits::{Fault, Limits};
use crate::privacy::Personal;
use crate::tiff::{Ifd, TiffFile, tag};
use std::sync::Arc;

/// TIFF's numbers of types.
const BYTE: u16 = 1;
const ASCII: u16 = 2;
const UNDEFINED: u16 = 7;
/// Longest value that is searched for words; longer ones are named unread.
const LONGEST: u64 = 16 << 20;
/// Bytes of a tile's data that are looked at: headers are at its start.
const HEADER: u64 = 64 << 10;
const JPEG: u64 = 7;
/// `Compression` of JPEG 2000: Aperio's two, and the one of libtiff's list.
pub(crate) const JPEG_2000: [u64; 3] = [33003, 33005, 34712];

pub(super) fn search(file: &Arc<SlideFile>, limits: &Limits) -> Result<Search, Fault> {
    let tiff = TiffFile::read(file, limits)?;
    let mut search = Search::default();
    let mut fields = 0;
    let mut directories = 0;
    let mut jpeg_2000 = false;
    for (i, ifd) in tiff.ifds.iter().enumerate() {
        let prefix = if i == 0 { "tiff".to_owned() } else { format!("tiff[{i}]") };
        let mut left = vec![(ifd.clone(), prefix, 0)];
        while let Some((ifd, prefix, depth)) = left.pop() {
            directories += 1;
            jpeg_2000 |= is_jpeg_2000(&ifd);
            fields += directory(&ifd, &prefix, &mut search)?;
            if depth > 2 {
                continue;
            }
            for (k, below) in tiff.sub_ifds(&ifd)?.into_iter().enumerate() {
                left.push((below, format!("{prefix}.sub[{k}]"), depth + 1));
            }
            for (t, ..) in ifd.entries() {
                if let Some((_, Holds::Directory(name))) = known(t) {
                    // A damaged pointer does not lead to a directory.
                    for below in tiff.pointed(&ifd, t).unwrap_or_default() {
                        left.push((below, format!("{prefix}.{name}"), depth + 1));
                    }
                }
            }
        }
    }
    search.looked_at.push(format!(
        "{fields} text fields of {directories} directories, private tags, EXIF, GPS, XMP, IPTC and ICC \
         among them"
    ));
    search
        .looked_at
        .push("JPEG comments in the tables and the first tile or strip of each directory".into());
    search.not_looked_at.push("JPEG headers of all other tiles".into());
    if jpeg_2000 {
        search
            .looked_at
            .push("JPEG 2000 comments in the first tile or strip of each directory".into());
        search
            .not_looked_at
            .push("JPEG 2000 comments of all other tiles, and of tile parts".into());
    }
    search.not_looked_at.push("numbers in private tags, and bytes no directory points to".into());
    Ok(search)
}

/// Adds the texts of one directory; gives how many fields were looked at.
fn directory(ifd: &Ifd, prefix: &str, search: &mut Search) -> Result<usize, Fault> {
    let mut fields = 0;
    for (t, kind, count) in ifd.entries() {
        let (name, holds) = match known(t) {
            Some((name, holds)) => (format!("{prefix}.{name}"), Some(holds)),
            None => (format!("{prefix}.({t})"), None),
        };
        let gps = prefix.ends_with(".gps");
        let wanted = match holds {
            Some(Holds::Technical) => false,
            Some(Holds::Directory(_)) => false,
            Some(_) => true,
            None => gps || matches!(kind, BYTE | ASCII | UNDEFINED),
        };
        if !wanted {
            continue;
        }
        fields += 1;
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
        let bytes = ifd.bytes(t)?.unwrap_or_default();
        match holds {
            Some(Holds::Profile) => search.texts_found.extend(FileText::of_profile(&name, &bytes)),
            Some(Holds::Kind(kind)) => {
                search
                    .texts_found
                    .push(FileText { kind: Some(kind), ..FileText::text(name, &plain(t, &bytes)) });
            }
            _ if kind == ASCII || holds_words(&bytes) => {
                search.texts_found.push(FileText::text(name, &bytes))
            }
            _ => {}
        }
    }
    if ifd.uint(tag::COMPRESSION).ok().flatten() == Some(JPEG) {
        let tables = ifd.bytes(tag::JPEG_TABLES)?.unwrap_or_default();
        search.texts_found.extend(jpeg::texts(&format!("{prefix}.JPEGTables"), &tables));
        if let Some(head) = first_data(ifd)? {
            search.texts_found.extend(jpeg::texts(&format!("{prefix}.jpeg"), &head));
        }
    }
    if is_jpeg_2000(ifd)
        && let Some(head) = first_data(ifd)?
    {
        search.texts_found.extend(jp2k::texts(&format!("{prefix}.jpeg2000"), &head));
    }
    Ok(fields)
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
        37510 if bytes.len() >= 8 => bytes[8..].iter().copied().filter(|b| *b != 0).collect(),
        _ => bytes.to_vec(),
    }
}

/// The start of the first tile or strip that is there.
fn first_data(ifd: &Ifd) -> Result<Option<Vec<u8>>, Fault> {
    let (to, tc) = if ifd.has(tag::TILE_OFFSETS) {
        (tag::TILE_OFFSETS, tag::TILE_COUNTS)
    } else {
        (tag::STRIP_OFFSETS, tag::STRIP_COUNTS)
    };
    let (Some(offsets), Some(counts)) = (ifd.uints(to)?, ifd.uints(tc)?) else { return Ok(None) };
    let first = offsets.into_iter().zip(counts).find(|(_, n)| *n > 0);
    match first {
        Some((at, n)) => match ifd.data(at, n.min(HEADER)) {
            Ok(head) => Ok(Some(head)),
            Err(e @ Fault::Read(_)) => Err(e),
            Err(_) => Ok(None),
        },
        None => Ok(None),
    }
}
