//! The boxes of a JP2 file (ISO/IEC 15444-1, annex I), and what it and its codestream state of colours.

use std::ops::Range;

/// The first bytes of a JP2 file.
pub(crate) const JP2: [u8; 12] = *b"\0\0\0\x0CjP  \r\n\x87\n";
/// `EnumCS` of sYCC (15444-1, table I.10).
const SYCC: u32 = 18;

/// The boxes of a JP2 file, or of one of its boxes: kind and body.
pub(crate) fn boxes(b: &[u8]) -> Vec<(&[u8], Range<usize>)> {
    let mut all = Vec::new();
    let mut at = 0;
    while at + 8 <= b.len() {
        let uint = |from: usize, n: usize| {
            let bytes = b.get(from..from + n)?;
            usize::try_from(bytes.iter().fold(0u64, |v, x| v << 8 | u64::from(*x))).ok()
        };
        let (head, length) = match uint(at, 4) {
            Some(0) => (8, b.len() - at),
            Some(1) => (16, uint(at + 8, 8).unwrap_or(0)),
            length => (8, length.unwrap_or(0)),
        };
        let end = at.saturating_add(length).min(b.len());
        if length < head || at + head > end {
            break;
        }
        all.push((&b[at + 4..at + 8], at + head..end));
        at = end;
    }
    all
}

/// Whether a JP2 file names sYCC as the colours of its stream.
pub(crate) fn is_sycc(file: &[u8]) -> bool {
    let Some(header) = part(file, b"jp2h") else { return false };
    // Method 1: a number of a colour space.
    let named = |c: &[u8]| c.first() == Some(&1) && c.get(3..7) == Some(&SYCC.to_be_bytes());
    boxes(header).into_iter().any(|(kind, body)| kind == b"colr" && named(&header[body]))
}

/// Whether a codestream, alone or in a JP2 file, states the transform of three components (table A.14).
pub(crate) fn is_transformed(b: &[u8]) -> bool {
    const COD: u16 = 0xFF52;
    const TILE_PART: u16 = 0xFF90;
    let stream = part(b, b"jp2c").unwrap_or(b);
    let word = |at: usize| stream.get(at..at + 2).map(|w| u16::from(w[0]) << 8 | u16::from(w[1]));
    let mut at = 2;
    while let (Some(marker), Some(length)) = (word(at), word(at + 2)) {
        match marker {
            COD => return stream.get(at + 8) == Some(&1),
            TILE_PART => break,
            _ => at += 2 + usize::from(length).max(2),
        }
    }
    false
}

/// The body of the first box of a kind.
fn part<'a>(file: &'a [u8], kind: &[u8]) -> Option<&'a [u8]> {
    let all = if file.starts_with(&JP2) { boxes(file) } else { Vec::new() };
    all.into_iter().find(|(k, _)| *k == kind).map(|(_, body)| &file[body])
}
