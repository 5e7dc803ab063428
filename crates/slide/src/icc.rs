//! Texts of an ICC colour profile (ICC.1:2022, sections 7.2, 9.2 and 10): descriptions of profile, device and maker,
//! and whatever else is in it that is not numbers.

use crate::privacy::{holds_date, holds_words, is_of_known_words};
use std::ops::Range;

/// Types of values that are numbers alone; the last are Apple's.
const NUMBERS: [&[u8; 4]; 25] = [
    b"XYZ ", b"curv", b"para", b"sf32", b"uf32", b"mft1", b"mft2", b"mAB ", b"mBA ", b"mpet",
    b"sig ", b"chrm", b"meas", b"view", b"dtim", b"ui08", b"ui16", b"ui32", b"ui64", b"cicp",
    b"clro", b"scrn", b"vcgt", b"ndin", b"mmod",
];
/// Words of the texts of profiles in use, in lower case: colour spaces, devices, makers of colour software and their
/// notes on rights. Those of scanners' makers are among the products.
#[rustfmt::skip]
const TECHNICAL: &[&str] = &[
    "all", "apple", "artifex", "bt", "built", "c", "ch", "cms", "colormatch", "company", "condition", "consortium",
    "copyright", "crt", "dci", "display", "domain", "dot", "eastman", "facebook", "freely", "gain", "gamma", "gamut",
    "generic", "google", "gray", "grey", "hewlett", "http", "https", "icc", "iec61966", "in", "incorporated",
    "international", "itu", "k", "kcgcolorspacedisplayp3",
    "kcgcolorspacegenericrgb", "kcgcolorspacesrgb", "kodak", "lcd", "lcms", "linear", "little", "microsoft", "monitor", "no", "packard",
    "perceptual", "preference", "prophoto", "public", "r", "rec", "reference", "reserved", "rights", "romm", "scaled",
    "scrgb", "smpte", "solutions", "srgb2014", "technologies", "urgb", "viewing", "wide", "www", "xyz",
];
/// Bytes of the header, of which the first are numbers and signatures, and the rest are reserved.
const HEADER: usize = 128;
const NUMBERS_OF_HEADER: usize = 100;
/// Tags of one profile.
const MOST: usize = 256;

/// A part of a profile that may be text.
struct Place {
    tag: String,
    at: Range<usize>,
    /// Whether its characters have two bytes, the first the higher one.
    wide: bool,
}

impl Place {
    fn text(&self, b: &[u8]) -> String {
        let bytes = b.get(self.at.clone()).unwrap_or_default();
        let text = if self.wide {
            let units = bytes.as_chunks::<2>().0.iter().map(|c| u16::from_be_bytes(*c));
            char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
        } else {
            // ASCII by the standard; others write UTF-8, or a letter of their own in each byte.
            let latin = || bytes.iter().copied().map(char::from).collect();
            std::str::from_utf8(bytes).map_or_else(|_| latin(), str::to_owned)
        };
        text.chars().map(|c: char| if c.is_control() { ' ' } else { c }).collect()
    }
}

/// A number of four bytes.
fn long(b: &[u8], at: usize) -> Option<usize> {
    let bytes = b.get(at..at.checked_add(4)?)?;
    Some(bytes.iter().fold(0, |v, x| v << 8 | usize::from(*x)))
}

/// The parts of a profile that are not numbers.
fn places(b: &[u8]) -> Vec<Place> {
    let is_profile = b.get(36..40) == Some(b"acsp");
    let header = if is_profile { NUMBERS_OF_HEADER } else { 0 };
    let mut all = vec![plain("header", header..HEADER.min(b.len()))];
    let mut known = vec![Range { start: 0, end: HEADER + 4 }];
    for i in 0..long(b, HEADER).unwrap_or(0).min(MOST) {
        let e = HEADER + 4 + 12 * i;
        let (Some(name), Some(at), Some(len)) = (b.get(e..e + 4), long(b, e + 4), long(b, e + 8))
        else {
            break;
        };
        known.push(e..e + 12);
        let Some(value) = at.checked_add(len).and_then(|end| b.get(at..end)) else { continue };
        known.push(at..at + len);
        all.extend(places_of_tag(&String::from_utf8_lossy(name), at, value));
    }
    // What no tag points to.
    known.sort_by_key(|r| r.start);
    let mut end = 0;
    for part in known.into_iter().chain(std::iter::once(b.len()..b.len())) {
        if part.start > end {
            all.push(plain("between tags", end..part.start));
        }
        end = end.max(part.end);
    }
    all
}

fn plain(tag: &str, at: Range<usize>) -> Place {
    Place { tag: tag.to_owned(), at, wide: false }
}

/// The parts of a tag's value, which begins at the byte `at` of the profile.
fn places_of_tag(tag: &str, at: usize, value: &[u8]) -> Vec<Place> {
    let end = at + value.len();
    let place = |from: usize, to: usize, wide| {
        let (from, to) = (from.min(value.len()), to.min(value.len()));
        Place { tag: tag.to_owned(), at: at + from..at + to.max(from), wide }
    };
    match value.first_chunk::<4>() {
        Some(kind) if NUMBERS.contains(&kind) => Vec::new(),
        Some(b"desc") => {
            let n = long(value, 8).unwrap_or(0).saturating_add(12).min(value.len());
            // The same in two bytes per character, behind its language and length, and in Macintosh's script.
            let wide =
                long(value, n + 4).and_then(|count| (n + 8).checked_add(count.checked_mul(2)?));
            let first = place(12, n, false);
            match wide.filter(|end| *end <= value.len()) {
                Some(to) => vec![first, place(n + 8, to, true), place(to + 3, value.len(), false)],
                None => vec![first, place(n, value.len(), false)],
            }
        }
        Some(b"mluc") => {
            let mut from = 16;
            let mut cuts = vec![value.len()];
            for _ in 0..long(value, 8).unwrap_or(0) {
                let (Some(n), Some(start)) = (long(value, from + 4), long(value, from + 8)) else {
                    break;
                };
                let Some(end) = start.checked_add(n).filter(|end| *end <= value.len()) else {
                    break;
                };
                cuts.extend([start, end]);
                from += 12;
            }
            // Each text by itself, and what none of them covers.
            cuts.retain(|cut| *cut > from);
            cuts.push(from);
            cuts.sort_unstable();
            cuts.windows(2).map(|w| place(w[0], w[1], true)).collect()
        }
        // Without a kind, as that of a tag of few bytes.
        _ if value.len() < 8 => vec![plain(tag, at..end)],
        _ => vec![place(8, value.len(), false)],
    }
}

/// Whether a text is of the words of devices and colour spaces alone.
pub(crate) fn is_technical(text: &str) -> bool {
    is_of_known_words(text, TECHNICAL)
}

/// Whether a text holds a word, and not only those of devices and colour spaces.
fn is_personal(text: &str) -> bool {
    let is_foreign = text.chars().any(|c| !c.is_ascii() && c.is_alphabetic());
    let is_text = is_foreign || holds_words(text.as_bytes()) || holds_date(text);
    is_text && !is_technical(text)
}

/// The texts that describe neither a known device nor a colour space, by the name of their tag.
pub(crate) fn texts(profile: &[u8]) -> Vec<(String, String)> {
    let all = places(profile).into_iter().map(|place| (place.text(profile), place.tag));
    all.filter(|(text, _)| is_personal(text)).map(|(text, tag)| (tag, text)).collect()
}

/// The profile with zeros where [`texts`] finds something.
pub(crate) fn blanked(profile: &[u8]) -> Vec<u8> {
    let mut out = profile.to_vec();
    for place in places(profile).into_iter().filter(|place| is_personal(&place.text(profile))) {
        out[place.at].fill(0);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A profile whose description is this value.
    fn with(value: &[u8]) -> Vec<u8> {
        let mut b = vec![0; HEADER];
        b.extend(1u32.to_be_bytes());
        b.extend(b"desc");
        b.extend(144u32.to_be_bytes());
        b.extend((value.len() as u32).to_be_bytes());
        b.extend(value);
        b
    }

    fn profile(text: &str) -> Vec<u8> {
        with(&[b"text\0\0\0\0", text.as_bytes()].concat())
    }

    fn wide(text: &str) -> Vec<u8> {
        text.encode_utf16().flat_map(u16::to_be_bytes).collect()
    }

    /// The text in one byte per character, in two, and as Macintosh writes it.
    fn three(text: &str) -> Vec<u8> {
        let n = (text.len() as u32).to_be_bytes();
        let wide = wide(text);
        let head = [&b"desc\0\0\0\0"[..], &n, text.as_bytes(), &[0; 4]].concat();
        let count = (wide.len() as u32 / 2).to_be_bytes();
        [&head[..], &count, &wide, &[0, 0, text.len() as u8], text.as_bytes()].concat()
    }

    /// The same in two languages.
    fn localised(text: &str) -> Vec<u8> {
        let wide = wide(text);
        let n = wide.len() as u32;
        let numbers = |all: &[u32]| all.iter().flat_map(|v| v.to_be_bytes()).collect::<Vec<u8>>();
        let head = [&b"mluc\0\0\0\0"[..], &numbers(&[2, 12])].concat();
        let places = [&b"enUS"[..], &numbers(&[n, 40]), b"ruRU", &numbers(&[n, 40 + n])].concat();
        [head, places, wide.clone(), wide].concat()
    }

    fn found_and_blanked(b: &[u8], what: &str) {
        assert!(texts(b).iter().any(|(tag, _)| tag == "desc"), "{what}: {:?}", texts(b));
        assert!(texts(&blanked(b)).is_empty(), "{what}");
        assert_eq!(blanked(b).len(), b.len());
        for cut in 0..b.len() {
            blanked(&b[..cut]);
        }
    }

    #[test]
    fn names_in_profiles_are_found_and_blanked() {
        for text in [
            "scanned for Jane Doe",
            "Riccardo Doe",
            "Dr. Gray",
            "display of Jane Doe",
            "sRGB, Jane Doe",
            "Aperio of Jane",
            "Carl Gray",
            "2021-03-04",
            "Иванов",
            "李伟",
        ] {
            found_and_blanked(&profile(text), text);
            found_and_blanked(&with(&localised(text)), text);
            if text.is_ascii() {
                found_and_blanked(&with(&three(text)), text);
            }
        }
        // In a code page, and in tags of any name and kind.
        found_and_blanked(&with(b"text\0\0\0\0\xC8\xE2\xE0\xED\xEE\xE2"), "a code page");
        found_and_blanked(&with(&[&b"dict\0\0\0\0"[..], &wide("Jane Doe")].concat()), "dict");
        let mut other = profile("for Jane Doe");
        other[132..136].copy_from_slice(b"priv");
        assert_eq!(texts(&other).len(), 1);
        assert_eq!(texts(b"Jane Doe, not a profile").len(), 1);
        let behind = [profile("sRGB"), b"for Jane Doe".to_vec()].concat();
        assert_eq!(texts(&behind).len(), 1);
        assert!(texts(&blanked(&behind)).is_empty());
    }

    #[test]
    fn descriptions_of_profiles_in_use_are_technical() {
        for text in [
            "sRGB IEC61966-2.1",
            "IEC 61966-2.1 Default RGB colour space - sRGB",
            "Reference Viewing Condition in IEC61966-2.1",
            "IEC http://www.iec.ch",
            "Copyright (c) 1998 Hewlett-Packard Company",
            "Copyright 2000 Adobe Systems Incorporated",
            "Copyright Apple Inc., 2018",
            "Copyright International Color Consortium, 2009",
            "No copyright, use freely",
            "Public Domain",
            "sRGB built-in",
            "GIMP built-in sRGB",
            "ScanScope v1",
            "Adobe RGB (1998)",
            "Display P3",
            "Gray Gamma 2.2",
            "Aperio",
            "Leica GT450",
            "Hamamatsu Photonics K.K.",
            "Philips",
            "KODAK sRGB Display",
        ] {
            for b in [profile(text), with(&three(text)), with(&localised(text))] {
                assert_eq!(texts(&b), [], "{text}");
                assert_eq!(blanked(&b), b, "{text}");
            }
        }
    }
}
