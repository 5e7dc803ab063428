//! Texts of a JPEG stream: comments and application data.

use super::{FileText, Search, holds_words, tags};
use crate::exif;
use crate::file::SlideFile;
use crate::limits::Fault;
use crate::privacy::Personal;
use std::ops::Range;

const COMMENT: u8 = 0xFE;

/// A segment before, between or after scans: its marker, and the place of its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) marker: u8,
    /// Of the marker and its length.
    pub(crate) start: usize,
    pub(crate) body: Range<usize>,
}

/// The segments of a stream, and where it ends (behind the end marker, or where it is cut).
pub(crate) fn segments(b: &[u8]) -> (Vec<Segment>, usize) {
    let mut all = Vec::new();
    let mut at = 2;
    if !b.starts_with(&[0xFF, 0xD8]) {
        return (all, b.len());
    }
    while let Some(&[0xFF, marker]) = b.get(at..at + 2) {
        match marker {
            0xFF => at += 1,
            0xD9 => return (all, at + 2),
            0x01 | 0xD0..=0xD8 => at += 2,
            _ => {
                let Some(len) = b.get(at + 2..at + 4) else { break };
                let len = usize::from(len[0]) << 8 | usize::from(len[1]);
                let end = at + 2 + len.max(2);
                if end > b.len() {
                    break;
                }
                all.push(Segment { marker, start: at, body: at + 4..end });
                at = end;
                if marker == 0xDA {
                    // Entropy-coded data end at a marker that is neither stuffed nor a restart.
                    while let Some(w) = b.get(at..at + 2) {
                        if w[0] == 0xFF && !matches!(w[1], 0 | 0xD0..=0xD7 | 0xFF) {
                            break;
                        }
                        at += 1;
                    }
                }
            }
        }
    }
    (all, b.len())
}

/// Whether a segment is needed for the pixels, or only describes their coding.
pub(crate) fn is_technical(marker: u8, body: &[u8]) -> bool {
    match marker {
        0xE0 => body.starts_with(b"JFIF\0"),
        0xEE => body.starts_with(b"Adobe"),
        COMMENT | 0xE1..=0xEF => false,
        _ => true,
    }
}

/// The texts of a stream or of tables.
pub(crate) fn texts(prefix: &str, b: &[u8]) -> Vec<FileText> {
    let (all, _) = segments(b);
    let mut texts_found = Vec::new();
    let mut profile = Vec::new();
    for s in all {
        let body = &b[s.body];
        match s.marker {
            COMMENT => texts_found.push(FileText::text(format!("{prefix}.Comment"), body)),
            0xE0 if body.starts_with(b"JFXX\0") => {
                texts_found.push(preview(format!("{prefix}.JFXX")))
            }
            0xE1 if body.starts_with(b"Exif\0\0") => {
                texts_found.extend(exif_texts(prefix, &body[6..]))
            }
            0xE1 if body.starts_with(b"http://ns.adobe.com/") => {
                texts_found.push(FileText::text(format!("{prefix}.XMP"), body));
            }
            0xE2 if body.starts_with(b"ICC_PROFILE\0") => {
                profile.extend_from_slice(body.get(14..).unwrap_or_default());
            }
            0xED => texts_found.push(FileText::text(format!("{prefix}.Photoshop"), body)),
            marker if is_technical(marker, body) => {}
            marker if holds_words(body) => {
                texts_found.push(FileText::text(format!("{prefix}.APP{}", marker & 15), body));
            }
            _ => {}
        }
    }
    texts_found.extend(FileText::of_profile(&format!("{prefix}.ICCProfile"), &profile));
    texts_found
}

fn preview(name: String) -> FileText {
    FileText { name, value: "preview".into(), kind: Some(Personal::Picture) }
}

/// The texts of an EXIF block.
pub(super) fn exif_texts(prefix: &str, block: &[u8]) -> Vec<FileText> {
    let mut texts_found = Vec::new();
    for f in exif::fields(block) {
        let place = match f.directory {
            "image" => format!("{prefix}.exif"),
            other => format!("{prefix}.exif.{other}"),
        };
        let known = tags::known(f.tag);
        let name = known.map_or_else(|| format!("({})", f.tag), |(name, _)| name.to_owned());
        let name = format!("{place}.{name}");
        match known.map(|k| k.1) {
            _ if f.directory == "gps" => {
                let value = "place".into();
                texts_found.push(FileText { name, value, kind: Some(Personal::Place) });
            }
            Some(tags::Holds::Kind(Personal::Picture)) => texts_found.push(preview(name)),
            Some(tags::Holds::Kind(kind)) => {
                let skip = if f.tag == 37510 { 8.min(f.value.len()) } else { 0 };
                let value: Vec<u8> = f.value[skip..].iter().copied().filter(|b| *b != 0).collect();
                texts_found.push(FileText { kind: Some(kind), ..FileText::text(name, &value) });
            }
            Some(tags::Holds::Technical) => {
                texts_found.extend(FileText::of_product(name, f.kind, f.value));
            }
            Some(_) => {}
            None if f.kind == 2 || holds_words(f.value) => {
                texts_found.push(FileText::text(name, f.value))
            }
            None => {}
        }
    }
    texts_found
}

pub(super) fn search(file: &SlideFile) -> Result<Search, Fault> {
    let mut bytes = vec![0; file.len as usize];
    file.read_at(&mut bytes, 0).map_err(|e| Fault::read(0, &e))?;
    let mut texts_found = texts("jpeg", &bytes);
    let (_, end) = segments(&bytes);
    if holds_words(&bytes[end.min(bytes.len())..]) {
        texts_found.push(FileText::text("jpeg.after the end", &bytes[end..]));
    }
    let looked_at = vec![
        "comments, EXIF, GPS, XMP, IPTC, ICC, other application data, what follows the end".into(),
    ];
    Ok(Search { texts_found, looked_at, not_looked_at: Vec::new() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_found_on_both_sides_of_a_scan() {
        let mut b = vec![0xFF, 0xD8, 0xFF, 0xFE, 0, 6];
        b.extend(b"Jane");
        b.extend([0xFF, 0xDA, 0, 2, 1, 2, 0xFF, 0, 3, 0xFF, 0xD0, 4]);
        b.extend([0xFF, 0xFE, 0, 5]);
        b.extend(b"Doe");
        b.extend([0xFF, 0xD9, 7]);
        let (all, end) = segments(&b);
        assert_eq!(all.iter().map(|s| s.marker).collect::<Vec<_>>(), [0xFE, 0xDA, 0xFE]);
        assert_eq!(&b[all[2].body.clone()], b"Doe");
        assert_eq!(end, b.len() - 1);
        for cut in 0..b.len() {
            segments(&b[..cut]);
        }
    }
}
