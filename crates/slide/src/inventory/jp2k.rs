//! Texts of JPEG 2000: comments of a codestream (ISO/IEC 15444-1, A.9.2), and the boxes of a JP2 file around it (I.7).

use super::FileText;
use crate::jp2::{JP2, boxes};
use crate::privacy::holds_words;
use std::ops::Range;

const START: [u8; 4] = [0xFF, 0x4F, 0xFF, 0x51];
/// Boxes without which a JP2 file is not read.
const NEEDED: [&[u8]; 4] = [b"jP  ", b"ftyp", b"jp2h", b"jp2c"];
const COMMENT: u16 = 0xFF64;
const TILE_PART: u16 = 0xFF90;
const DATA: u16 = 0xFF93;
const END: u16 = 0xFFD9;
/// `Rcom` of text in Latin letters.
const LATIN: u16 = 1;

/// What encoders write about themselves (OpenJPEG, Kakadu, JasPer): these words, and a version behind them.
const ENCODERS: [&str; 3] = ["Created by OpenJPEG version ", "Kakadu-", "Creator: JasPer Version "];
/// Kakadu's table of slopes and lengths: this line, and numbers below it.
const LAYERS: &str = "Kdu-Layer-Info: log_2{Delta-D(MSE)/[2^16*Delta-L(bytes)]}, L(bytes)";

/// A comment: of the marker and all behind it, and its text.
struct Comment {
    whole: Range<usize>,
    latin: bool,
    body: Range<usize>,
    /// Whether it is before the first tile part, where no length counts it.
    main: bool,
}

/// The comments of a codestream that ends at `until`, and what is behind its end.
fn comments(b: &[u8]) -> (Vec<Comment>, Range<usize>) {
    let mut all = Vec::new();
    if !b.starts_with(&START) {
        return (all, b.len()..b.len());
    }
    let word = |at: usize| b.get(at..at + 2).map(|w| u16::from(w[0]) << 8 | u16::from(w[1]));
    let (mut at, mut part) = (2, None);
    while let (Some(marker), Some(length)) = (word(at), word(at + 2).or(Some(0))) {
        let end = at + 2 + usize::from(length).max(2);
        match marker {
            END => return (all, at + 2..b.len()),
            // Behind its header are the data of the part, whose length its first marker states; 0: to the end.
            DATA => match part {
                Some(next) if next > at => at = next,
                _ => break,
            },
            _ if end > b.len() => break,
            TILE_PART => {
                let length = b
                    .get(at + 6..at + 10)
                    .map_or(0, |l| l.iter().fold(0usize, |v, x| v << 8 | usize::from(*x)));
                part = (length > 0).then(|| at.saturating_add(length));
                at = end;
            }
            COMMENT if length >= 4 => {
                let (latin, main) = (word(at + 4) == Some(LATIN), part.is_none());
                all.push(Comment { whole: at..end, latin, body: at + 6..end, main });
                at = end;
            }
            _ => at = end,
        }
    }
    (all, b.len()..b.len())
}

/// Whether bytes are the start of a codestream, or of a JP2 file.
pub(super) fn is_start(b: &[u8]) -> bool {
    b.starts_with(&START) || b.starts_with(&JP2)
}

/// Whether a comment only names the encoder, or its rates.
fn is_technical(text: &str) -> bool {
    let text = text.trim_matches(['\0', ' ', '\r', '\n']);
    if text.is_empty() {
        return true;
    }
    let version = |rest: &str| {
        rest.len() < 16 && rest.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | 'v' | '-'))
    };
    let number = |c: char| c.is_ascii_digit() || c.is_whitespace() || "+-.,e".contains(c);
    ENCODERS.iter().any(|e| text.strip_prefix(e).is_some_and(version))
        || text.strip_prefix(LAYERS).is_some_and(|rest| rest.chars().all(number))
}

fn is_personal(b: &[u8], comment: &Comment) -> bool {
    let body = &b[comment.body.clone()];
    let text = String::from_utf8_lossy(body);
    !is_technical(&text) && (comment.latin || holds_words(body))
}

/// The texts that may identify somebody.
pub(super) fn texts(prefix: &str, b: &[u8]) -> Vec<FileText> {
    if b.starts_with(&JP2) {
        let mut all = Vec::new();
        for (kind, body) in boxes(b) {
            let body = &b[body];
            match kind {
                b"jp2c" => all.extend(texts(prefix, body)),
                kind if NEEDED.contains(&kind) => {}
                kind if holds_words(body) => {
                    let kind = String::from_utf8_lossy(kind).trim().to_owned();
                    all.push(FileText::text(format!("{prefix}.{kind}"), body));
                }
                _ => {}
            }
        }
        return all;
    }
    let (all, behind) = comments(b);
    let all = all.into_iter().filter(|c| is_personal(b, c));
    let mut texts: Vec<FileText> =
        all.map(|c| FileText::text(format!("{prefix}.Comment"), &b[c.body])).collect();
    if holds_words(&b[behind.clone()]) {
        texts.push(FileText::text(format!("{prefix}.behind"), &b[behind]));
    }
    texts
}

/// The places of all comments of a codestream's main header but those that name the encoder; they can be cut out.
pub(crate) fn removable(b: &[u8]) -> Vec<Range<usize>> {
    let text = |c: &Comment| String::from_utf8_lossy(&b[c.body.clone()]).into_owned();
    let all = comments(b).0.into_iter().filter(|c| c.main && !is_technical(&text(c)));
    all.map(|c| c.whole).collect()
}

/// The places of all texts; they can be blanked where they are.
pub(crate) fn blankable(b: &[u8]) -> Vec<Range<usize>> {
    if b.starts_with(&JP2) {
        let mut all = Vec::new();
        let mut end = 0;
        for (kind, body) in boxes(b) {
            end = body.end;
            match kind {
                b"jp2c" => all.extend(
                    blankable(&b[body.clone()])
                        .into_iter()
                        .map(|r| body.start + r.start..body.start + r.end),
                ),
                kind if NEEDED.contains(&kind) => {}
                _ => all.push(body),
            }
        }
        all.extend((end < b.len()).then_some(end..b.len()));
        return all;
    }
    let (found, behind) = comments(b);
    let text = |c: &Comment| String::from_utf8_lossy(&b[c.body.clone()]).into_owned();
    let all = found.into_iter().filter(|c| !is_technical(&text(c))).map(|c| c.body);
    all.chain((!behind.is_empty()).then_some(behind)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_of_encoders_are_technical_and_others_are_not() {
        for text in [
            "Created by OpenJPEG version 2.5.4",
            "Kakadu-v6.0",
            "Kdu-Layer-Info: log_2{Delta-D(MSE)/[2^16*Delta-L(bytes)]}, L(bytes)\n-256.0, 1.4e+004\n",
        ] {
            assert!(is_technical(text), "{text}");
        }
        for text in ["Jane Doe", "Created by OpenJPEG version of Jane", "Kakadu-v6.0 S21-1234"] {
            assert!(!is_technical(text), "{text}");
        }
    }

    fn boxed(kind: &[u8], body: &[u8]) -> Vec<u8> {
        [&(8 + body.len() as u32).to_be_bytes()[..], kind, body].concat()
    }

    #[test]
    fn boxes_and_tile_parts_are_searched_and_blanked() {
        let comment = |text: &[u8]| {
            let length = (4 + text.len() as u16).to_be_bytes();
            [&[0xFF, 0x64][..], &length, &[0, 1], text].concat()
        };
        let inner = comment(b"Richard Roe, S21-1234");
        let length = (12 + inner.len() as u32 + 5).to_be_bytes();
        let part =
            [&[0xFF, 0x90, 0, 10, 0, 0][..], &length, &[0, 1], &inner, &[0xFF, 0x93, 9, 9, 9]]
                .concat();
        let stream =
            [&START[..], &[0, 4, 9, 9], &comment(b"Jane Doe"), &part, &[0xFF, 0xD9]].concat();
        let xml = b"<patient>John Smith</patient>";
        let uuid = [&[7; 16][..], b"Mary Major, 1950-02-03"].concat();
        let jp2 = [
            JP2.to_vec(),
            boxed(b"ftyp", b"jp2 \0\0\0\0jp2 "),
            boxed(b"xml ", xml),
            boxed(b"jp2c", &stream),
            boxed(b"uuid", &uuid),
        ]
        .concat();
        let mut blank = jp2.clone();
        for place in blankable(&jp2) {
            blank[place].fill(0);
        }
        for name in ["Jane Doe", "Richard Roe", "John Smith", "Mary Major"] {
            let holds = |b: &[u8]| b.windows(name.len()).any(|w| w == name.as_bytes());
            assert!(holds(&jp2) && !holds(&blank), "{name}");
            assert!(texts("x", &jp2).iter().any(|t| t.value.contains(name)), "{name}");
        }
        assert!(texts("x", &blank).is_empty());
        assert_eq!(boxes(&jp2).len(), 5);
        assert_eq!(removable(&stream).len(), 1, "only those that no length counts are cut out");
        for cut in 0..jp2.len() {
            let _ = (blankable(&jp2[..cut]), texts("x", &jp2[..cut]));
        }
    }

    #[test]
    fn a_header_that_is_cut_ends_the_search() {
        let mut b = START.to_vec();
        b.extend([0, 4, 9, 9, 0xFF, 0x64, 0, 8, 0, 1]);
        b.extend(b"Jane");
        b.extend([0xFF, 0x90, 0, 4, 0, 0, 0xFF, 0x64, 0, 8, 0, 1]);
        assert_eq!(removable(&b).first(), Some(&(8..18)));
        assert_eq!(removable(&b).len(), 1);
        assert_eq!(texts("x", &b).len(), 1);
        for cut in 0..b.len() {
            let _ = (removable(&b[..cut]), texts("x", &b[..cut]));
        }
    }
}
