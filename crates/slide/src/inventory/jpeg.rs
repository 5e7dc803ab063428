//! Texts of a JPEG stream: comments and application data.

use super::{FileText, Search, holds_words, tags};
use crate::exif;
use crate::file::SlideFile;
use crate::jpeg::segments;
use crate::limits::Fault;
use crate::privacy::Personal;

const COMMENT: u8 = 0xFE;

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
