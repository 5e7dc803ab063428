//! From the bytes of a file to text: encodings, and files that are not text at all.

use crate::signature::{Kind, START, Signature, signature};
use std::borrow::Cow;

/// What is wrong with the bytes, and on which line, from 1.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NotText {
    pub line: u64,
    pub reason: String,
}

/// What a file is that is not a table, and what to do with it.
fn not_a_table(Signature { what, kind }: Signature) -> String {
    let remedy = match kind {
        Kind::Parquet => "; give its name the ending .parquet",
        Kind::Archive | Kind::Workbook => "; save the sheet as CSV (UTF-8)",
        Kind::Gzip => "; decompress it first (gzip -d)",
        Kind::Zstandard => "; decompress it first (zstd -d)",
        Kind::Bzip2 => "; decompress it first (bzip2 -d)",
        Kind::Xz => "; decompress it first (xz -d)",
        Kind::LfsPointer => "; fetch the file with `git lfs pull`",
        Kind::Page => "; download the file again",
        Kind::Picture | Kind::Database | Kind::Other => ", not delimited text",
    };
    format!("this is {what}{remedy}")
}

/// The text of a file: UTF-8 with or without a byte order mark, or UTF-16 (with a mark, or in the
/// pattern that ASCII letters have in it).
pub(super) fn decode(bytes: &[u8]) -> Result<Cow<'_, str>, NotText> {
    let start = bytes.get(..START as usize).unwrap_or(bytes);
    if let Some(known) = signature(start) {
        return Err(NotText { line: 1, reason: not_a_table(known) });
    }
    match *bytes {
        [0xff, 0xfe, ref rest @ ..] => return utf16(rest, u16::from_le_bytes),
        [0xfe, 0xff, ref rest @ ..] => return utf16(rest, u16::from_be_bytes),
        [a, 0, b, 0, ..] if a != 0 && b != 0 => return utf16(bytes, u16::from_le_bytes),
        [0, a, 0, b, ..] if a != 0 && b != 0 => return utf16(bytes, u16::from_be_bytes),
        _ => {}
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let text = std::str::from_utf8(bytes).map_err(|e| NotText {
        line: next_line_number(&bytes[..e.valid_up_to()]),
        reason: format!(
            "the byte 0x{:02X} is not UTF-8; save the table as UTF-8 (Excel: \"CSV UTF-8\")",
            bytes[e.valid_up_to()]
        ),
    })?;
    without_nul(text).map(Cow::Borrowed)
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Result<Cow<'_, str>, NotText> {
    let wrong = |text: &str, reason: &str| NotText {
        line: next_line_number(text.as_bytes()),
        reason: format!("this is UTF-16, and {reason}; save the table as UTF-8"),
    };
    let (pairs, rest) = bytes.as_chunks::<2>();
    let mut text = String::with_capacity(bytes.len() / 2);
    for c in char::decode_utf16(pairs.iter().copied().map(unit)) {
        let Ok(c) = c else { return Err(wrong(&text, "holds half a character")) };
        text.push(c);
    }
    if !rest.is_empty() {
        return Err(wrong(&text, "ends within a character"));
    }
    without_nul(&text)?;
    Ok(Cow::Owned(text))
}

fn without_nul(text: &str) -> Result<&str, NotText> {
    match text.as_bytes().iter().position(|&b| b == 0) {
        None => Ok(text),
        Some(at) => Err(NotText {
            line: next_line_number(&text.as_bytes()[..at]),
            reason: "holds a zero byte: the file is not text, or is damaged".into(),
        }),
    }
}

/// The line that follows this text, from 1; lines end with `\n`, `\r\n` or `\r`.
fn next_line_number(before: &[u8]) -> u64 {
    let ends = |i: &usize| {
        before[*i] == b'\n'
            || (before[*i] == b'\r' && before.get(i + 1).is_some_and(|&n| n != b'\n'))
    };
    (0..before.len()).filter(ends).count() as u64 + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings() {
        let wide = |text: &str, unit: fn(u16) -> [u8; 2]| -> Vec<u8> {
            text.encode_utf16().flat_map(unit).collect()
        };
        let text = "a,b\r\nµ,\u{1f600}\n";
        assert_eq!(decode(text.as_bytes()).unwrap(), text);
        assert_eq!(decode(format!("\u{feff}{text}").as_bytes()).unwrap(), text);
        for unit in [u16::to_le_bytes as fn(u16) -> [u8; 2], u16::to_be_bytes] {
            assert_eq!(decode(&wide(text, unit)).unwrap(), text);
            assert_eq!(decode(&wide(&format!("\u{feff}{text}"), unit)).unwrap(), text);
        }
        let mut half = wide("\u{feff}a\nb", u16::to_le_bytes);
        half.push(0x41);
        assert_eq!(decode(&half).unwrap_err().line, 2);
    }

    #[test]
    fn what_is_not_text_is_named() {
        let reason = |bytes: &[u8]| decode(bytes).unwrap_err();
        assert!(reason(b"PK\x03\x04").reason.contains("Excel"));
        assert!(reason(b"<html><body>").reason.contains("web page"));
        let latin = reason(b"a,b\r\nx,y\r\ncaf\xe9,1\n");
        assert_eq!((latin.line, latin.reason.contains("0xE9")), (3, true));
        assert_eq!(reason(b"a,b\n1,\0\0").line, 2);
    }
}
