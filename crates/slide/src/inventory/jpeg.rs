//! Texts of a JPEG stream: comments and application data.

use super::{CODED, FileText, Search, tags};
use crate::exif;
use crate::file::SlideFile;
use crate::jpeg::{Segment, segments};
use crate::limits::Fault;
use crate::privacy::Personal;
use crate::privacy::holds_words;
use std::borrow::Cow;
use std::ops::Range;

const COMMENT: u8 = 0xFE;

/// Bytes of JFIF's segment before the size of a thumbnail, of one byte for each side.
const JFIF: usize = 12;
/// Bytes of Adobe's segment.
const ADOBE: usize = 12;

/// Bytes of a header or of tables by what they state themselves; decoders read no further. `None` where they break off.
fn coding_length(marker: u8, body: &[u8]) -> Option<usize> {
    let count = |at: usize| body.get(at).map(|n| usize::from(*n));
    let tables = |length: &dyn Fn(usize) -> Option<usize>| {
        let mut at = 0;
        while let Some(next) = (at < body.len()).then(|| length(at)).flatten() {
            match at + next <= body.len() {
                true => at += next,
                false => break,
            }
        }
        (at > 0).then_some(at)
    };
    match marker {
        // Huffman tables: a class and number, how many codes of each of 16 lengths there are, and the codes.
        0xC4 => tables(&|at| {
            let counts = body.get(at + 1..at + 17)?;
            (body[at] & 0xEE == 0)
                .then(|| 17 + counts.iter().map(|n| usize::from(*n)).sum::<usize>())
        }),
        // Quantisation tables of one or two bytes a number.
        0xDB => {
            tables(&|at| (body[at] & 0xEC == 0).then(|| 1 + 64 * (1 + usize::from(body[at] >> 4))))
        }
        0xDA => Some(4 + 2 * count(0)?),
        0xDC | 0xDD => Some(2),
        0xDF => Some(1),
        _ => Some(6 + 3 * count(5)?),
    }
}

/// What of a segment is needed for the pixels or describes their coding; empty for texts. Behind the fixed part of
/// JFIF's and Adobe's anybody may have written anything.
fn needed(marker: u8, body: &[u8]) -> Cow<'_, [u8]> {
    match marker {
        0xE0 if body.starts_with(b"JFIF\0") => match body.get(..JFIF) {
            Some(fixed) if body.len() > JFIF + 1 => Cow::Owned([fixed, &[0, 0]].concat()),
            _ => Cow::Borrowed(b"JFIF\0"),
        },
        0xEE if body.starts_with(b"Adobe") => Cow::Borrowed(body.get(..ADOBE).unwrap_or(b"Adobe")),
        // Headers and tables of ITU-T T.81, B.1.1.3.
        0xC0..=0xC7 | 0xC9..=0xCB | 0xCD..=0xCF | 0xDA..=0xDF => {
            let own = coding_length(marker, body).filter(|own| *own <= body.len());
            Cow::Borrowed(own.map_or(body, |own| &body[..own]))
        }
        // Numbers for arithmetic coding, and headers of JPEG-LS.
        0xCC | 0xF7 | 0xF8 if !holds_words(body) => Cow::Borrowed(body),
        // Comments, application data, and markers that are reserved: no decoder reads them.
        _ => Cow::Borrowed(&[]),
    }
}

/// The places of a stream that nothing needs for its pixels: they can be blanked.
pub(crate) fn blankable(b: &[u8]) -> Vec<Range<usize>> {
    let (all, end) = segments(b);
    let texts = all.into_iter().filter_map(|Segment { marker, body, .. }| {
        let needed = needed(marker, &b[body.clone()]);
        let same = needed.iter().zip(&b[body.clone()]).take_while(|(a, b)| a == b).count();
        (body.start + same < body.end).then_some(body.start + same..body.end)
    });
    texts.chain((end < b.len()).then_some(end..b.len())).collect()
}

/// A stream without comments, application data, and what follows its end.
pub(crate) fn without_texts(b: &[u8]) -> Cow<'_, [u8]> {
    let (all, end) = segments(b);
    let (mut out, mut from) = (Vec::new(), 0);
    for s in &all {
        let body = &b[s.body.clone()];
        let needed = needed(s.marker, body);
        if *needed == *body {
            continue;
        }
        out.extend_from_slice(&b[from..s.start]);
        if !needed.is_empty() {
            out.extend([0xFF, s.marker]);
            out.extend((needed.len() as u16 + 2).to_be_bytes());
            out.extend_from_slice(&needed);
        }
        from = s.body.end;
    }
    if from == 0 && end >= b.len() {
        return Cow::Borrowed(b);
    }
    out.extend_from_slice(&b[from..end.min(b.len())]);
    Cow::Owned(out)
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
            0xE0 if body.starts_with(b"JFIF\0")
                && body.get(JFIF..JFIF + 2).is_some_and(|side| *side != [0, 0]) =>
            {
                texts_found.push(preview(format!("{prefix}.JFIF")));
            }
            marker @ (0xE0..=0xEF) => {
                let rest = body.get(needed(marker, body).len()..).unwrap_or_default();
                if holds_words(rest) {
                    texts_found.push(FileText::text(format!("{prefix}.APP{}", marker & 15), rest));
                }
            }
            marker => {
                let rest = body.get(needed(marker, body).len()..).unwrap_or_default();
                if holds_words(rest) {
                    let name = format!("{prefix}.segment {marker:02X}");
                    texts_found.push(FileText::text(name, rest));
                }
            }
        }
    }
    texts_found.extend(FileText::of_profile(&format!("{prefix}.ICCProfile"), &profile));
    texts_found
}

/// The texts of a stream or of tables, and what follows its end.
pub(super) fn all_texts(prefix: &str, b: &[u8]) -> Vec<FileText> {
    let mut texts_found = texts(prefix, b);
    texts_found.extend(text_behind(prefix, b.get(segments(b).1..).unwrap_or_default()));
    texts_found
}

/// The text in what follows the end of a stream.
pub(super) fn text_behind(prefix: &str, behind: &[u8]) -> Option<FileText> {
    let name = || format!("{prefix}.after the end");
    holds_words(behind).then(|| FileText::text(name(), behind))
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
                let text = if f.tag == 37510 { tags::without_code(f.value) } else { f.value };
                let value: Vec<u8> = text.iter().copied().filter(|b| *b != 0).collect();
                texts_found.push(FileText { kind: Some(kind), ..FileText::text(name, &value) });
            }
            Some(tags::Holds::Technical) => {
                texts_found.extend(FileText::of_product(name, f.kind, f.value));
            }
            Some(_) => {}
            None if tags::is_text(f.kind) || holds_words(f.value) => {
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
    let looked_at = vec![
        "comments, EXIF, GPS, XMP, IPTC, ICC, other application data, what follows the end".into(),
    ];
    let not_looked_at = vec![CODED.into()];
    Ok(Search { texts_found: all_texts("jpeg", &bytes), looked_at, not_looked_at })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(marker: u8, body: &[u8]) -> Vec<u8> {
        [&[0xFF, marker][..], &(body.len() as u16 + 2).to_be_bytes(), body].concat()
    }

    /// Headers and tables state how long they are: what is behind that in their segment is not theirs.
    #[test]
    fn words_behind_headers_and_tables_are_found_and_cut_off() {
        let frame = [&[8, 0, 16, 0, 16, 3][..], &[1, 0x22, 0, 2, 0x11, 1, 3, 0x11, 1]].concat();
        let huffman = [&[0x10, 0, 2, 1][..], &[0; 13], &[7, 8, 9]].concat();
        let numbers = [vec![0], vec![16; 64]].concat();
        let parts: [(u8, &[u8]); 7] = [
            (0xC0, &frame),
            (0xC4, &[&huffman[..], &huffman].concat()),
            (0xDB, &[&numbers[..], &numbers].concat()),
            (0xDC, &[0, 16]),
            (0xDD, &[0, 4]),
            (0xDF, &[0x11]),
            (0xDA, &[3, 1, 0, 2, 0x11, 3, 0x11, 0, 63, 0]),
        ];
        let stream = |jane: &[u8]| {
            let all = parts.map(|(marker, body)| segment(marker, &[body, jane].concat()));
            [&[0xFF, 0xD8][..], &all.concat(), &[1, 2, 3, 0xFF, 0xD9]].concat()
        };
        let (plain, written) = (stream(b""), stream(b"Jane Doe"));
        assert!(texts("j", &plain).is_empty());
        assert_eq!(texts("j", &written).len(), parts.len());
        assert_eq!(without_texts(&written), plain);
        assert!(matches!(without_texts(&plain), Cow::Borrowed(_)));
        assert_eq!(blankable(&written).len(), parts.len());
        // Tables that break off stay as they are.
        let broken = [&[0xFF, 0xD8][..], &segment(0xC4, &huffman[..18])].concat();
        assert!(matches!(without_texts(&broken), Cow::Borrowed(_)));
    }
}
