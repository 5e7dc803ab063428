//! Texts of an ICC colour profile (ICC.1:2022, section 9.2): descriptions of profile, device and maker.

use crate::privacy::holds_words;
use std::ops::Range;

/// Tags whose value is text.
const TEXTS: [&[u8; 4]; 8] =
    [b"desc", b"cprt", b"dmnd", b"dmdd", b"targ", b"vued", b"tech", b"meta"];
/// Words of profiles in use: colour spaces, makers of scanners and of colour software. A text that has
/// one of them describes a device or a space.
const TECHNICAL: [&str; 28] = [
    "srgb",
    "rgb",
    "gray",
    "grey",
    "display",
    "iec",
    "icc",
    "adobe",
    "apple",
    "microsoft",
    "kodak",
    "hewlett",
    "google",
    "lcms",
    "artifex",
    "aperio",
    "scanscope",
    "leica",
    "gt450",
    "hamamatsu",
    "nanozoomer",
    "philips",
    "3dhistech",
    "pannoramic",
    "ventana",
    "iscan",
    "olympus",
    "public domain",
];
/// Tags of one profile.
const MOST: usize = 256;

/// Places of texts in a profile, by tag.
fn places(b: &[u8]) -> Vec<(String, Range<usize>)> {
    let long = |at: usize| -> Option<usize> {
        let w = b.get(at..at.checked_add(4)?)?;
        Some(w.iter().fold(0, |v, x| v << 8 | usize::from(*x)))
    };
    let mut all = Vec::new();
    for i in 0..long(128).unwrap_or(0).min(MOST) {
        let e = 132 + 12 * i;
        let (Some(name), Some(at), Some(len)) = (b.get(e..e + 4), long(e + 4), long(e + 8)) else {
            break;
        };
        if !TEXTS.iter().any(|t| t[..] == *name) {
            continue;
        }
        let Some(value) = at.checked_add(len).and_then(|end| b.get(at..end)) else { continue };
        let name = String::from_utf8_lossy(name).into_owned();
        match value.get(..4) {
            Some(b"text") => all.push((name, at + 8..at + len)),
            Some(b"desc") => {
                let n = long(at + 8).unwrap_or(0).min(len.saturating_sub(12));
                all.push((name.clone(), at + 12..at + 12 + n));
                // The same in two bytes per character, and in Macintosh's script.
                all.push((name, at + 12 + n..at + len));
            }
            Some(b"mluc") => all.push((name, (at + 16).min(at + len)..at + len)),
            _ => {}
        }
    }
    all
}

/// The characters of a text, one byte each.
fn letters(value: &[u8]) -> Vec<u8> {
    value.iter().copied().filter(|b| (32..127).contains(b)).collect()
}

fn is_technical(text: &[u8]) -> bool {
    let lower = String::from_utf8_lossy(text).to_lowercase();
    TECHNICAL.iter().any(|w| lower.contains(w))
}

/// Whether a text holds a word, and not only those of devices and colour spaces.
fn is_personal(text: &[u8]) -> bool {
    holds_words(text) && !is_technical(text)
}

/// The texts that describe neither a known device nor a colour space, by the name of their tag.
pub(crate) fn texts(profile: &[u8]) -> Vec<(String, Vec<u8>)> {
    let all = places(profile).into_iter().map(|(tag, place)| (tag, letters(&profile[place])));
    all.filter(|(_, text)| is_personal(text)).collect()
}

/// The profile with blanks where [`texts`] finds something.
pub(crate) fn blanked(profile: &[u8]) -> Vec<u8> {
    let mut out = profile.to_vec();
    for (_, place) in places(profile) {
        let text = letters(&profile[place.clone()]);
        if is_personal(&text) {
            for b in out[place].iter_mut().filter(|b| (33..127).contains(*b)) {
                *b = b' ';
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(text: &str) -> Vec<u8> {
        let mut b = vec![0; 128];
        let value = [b"text\0\0\0\0", text.as_bytes()].concat();
        b.extend(1u32.to_be_bytes());
        b.extend(b"desc");
        b.extend(144u32.to_be_bytes());
        b.extend((value.len() as u32).to_be_bytes());
        b.extend(value);
        b
    }

    #[test]
    fn names_in_profiles_are_found_and_blanked() {
        let b = profile("scanned for Jane Doe");
        assert_eq!(texts(&b)[0].0, "desc");
        assert!(texts(&blanked(&b)).is_empty());
        assert_eq!(blanked(&b).len(), b.len());
        assert!(texts(&profile("sRGB IEC61966-2.1")).is_empty());
        for cut in 0..b.len() {
            blanked(&b[..cut]);
        }
    }
}
