//! Comments of a JPEG 2000 codestream (ISO/IEC 15444-1, A.9.2).

use super::{FileText, holds_words};
use std::ops::Range;

const START: [u8; 4] = [0xFF, 0x4F, 0xFF, 0x51];
const COMMENT: u16 = 0xFF64;
const TILE_PART: u16 = 0xFF90;
/// `Rcom` of text in Latin letters.
const LATIN: u16 = 1;

/// What encoders write about themselves (OpenJPEG, Kakadu, JasPer): these words, and a version behind them.
const ENCODERS: [&str; 3] = ["Created by OpenJPEG version ", "Kakadu-", "Creator: JasPer Version "];
/// Kakadu's table of slopes and lengths: this line, and numbers below it.
const LAYERS: &str = "Kdu-Layer-Info: log_2{Delta-D(MSE)/[2^16*Delta-L(bytes)]}, L(bytes)";

/// A comment of the main header: of the marker and all behind it, and its text.
struct Comment {
    whole: Range<usize>,
    latin: bool,
    body: Range<usize>,
}

/// The comments before the first tile part of a codestream.
fn comments(b: &[u8]) -> Vec<Comment> {
    let mut all = Vec::new();
    if !b.starts_with(&START) {
        return all;
    }
    let word = |at: usize| b.get(at..at + 2).map(|w| u16::from(w[0]) << 8 | u16::from(w[1]));
    let mut at = 2;
    while let (Some(marker), Some(length)) = (word(at), word(at + 2)) {
        let end = at + 2 + usize::from(length).max(2);
        if marker == TILE_PART || end > b.len() {
            break;
        }
        if marker == COMMENT && length >= 4 {
            let latin = word(at + 4) == Some(LATIN);
            all.push(Comment { whole: at..end, latin, body: at + 6..end });
        }
        at = end;
    }
    all
}

/// Whether a comment only names the encoder, or its rates.
fn is_technical(text: &str) -> bool {
    let text = text.trim_matches(['\0', ' ', '\r', '\n']);
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

/// The comments that may identify somebody.
pub(super) fn texts(prefix: &str, b: &[u8]) -> Vec<FileText> {
    let all = comments(b).into_iter().filter(|c| is_personal(b, c));
    all.map(|c| FileText::text(format!("{prefix}.Comment"), &b[c.body])).collect()
}

/// The places of all comments but those that name the encoder.
pub(crate) fn removable(b: &[u8]) -> Vec<Range<usize>> {
    let text = |c: &Comment| String::from_utf8_lossy(&b[c.body.clone()]).into_owned();
    let all = comments(b).into_iter().filter(|c| !is_technical(&text(c)));
    all.map(|c| c.whole).collect()
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
