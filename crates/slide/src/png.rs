//! The chunks of a PNG (third edition, 5.3), and the texts in them.

use crate::resolution::{CONTRADICTION, differ};
use flate2::read::ZlibDecoder;
use mitosis::Mpp;
use std::io::Read;

/// What every PNG begins with.
pub(crate) const SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";

/// A chunk whose kind is in the file; its body may be cut.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chunk<'a> {
    pub(crate) kind: &'a [u8; 4],
    /// As much as there is of it.
    pub(crate) body: &'a [u8],
    /// Length, kind, body and checksum; `None` where the file ends before.
    pub(crate) whole: Option<&'a [u8]>,
}

/// The chunks one after the other, the end (`IEND`) and what follows it included.
pub(crate) fn chunks(b: &[u8]) -> impl Iterator<Item = Chunk<'_>> {
    let mut rest = b.get(SIGNATURE.len()..).unwrap_or_default();
    std::iter::from_fn(move || {
        let (length, behind) = rest.split_first_chunk::<4>()?;
        let (kind, behind) = behind.split_first_chunk::<4>()?;
        let length = u32::from_be_bytes(*length) as usize;
        let body = &behind[..length.min(behind.len())];
        let whole = rest.get(..length.saturating_add(12));
        rest = whole.map_or(&[], |whole| &rest[whole.len()..]);
        Some(Chunk { kind, body, whole })
    })
}

/// Longest text of a chunk that is read; of a longer one as much.
pub(crate) const LONGEST: u64 = 16 << 20;

/// Keyword and text of a chunk of text (`tEXt`, `zTXt`, `iTXt`), unpacked; `None` for any other.
pub(crate) fn text(kind: &[u8; 4], body: &[u8]) -> Option<(String, Vec<u8>)> {
    let (key, value) = keyword(body);
    let text = match kind {
        b"tEXt" => value.to_vec(),
        b"zTXt" => inflated(value.get(1..).unwrap_or_default()),
        b"iTXt" => {
            let packed = value.first() == Some(&1);
            // Flag, method, language and translated keyword, each ended by a zero.
            let mut rest = value.get(2..).unwrap_or_default().splitn(3, |b| *b == 0);
            let text = rest.nth(2).unwrap_or_default();
            if packed { inflated(text) } else { text.to_vec() }
        }
        _ => return None,
    };
    Some((key, text))
}

/// The keyword that a body begins with, and what follows it.
pub(crate) fn keyword(body: &[u8]) -> (String, &[u8]) {
    match body.iter().position(|b| *b == 0) {
        Some(i) => (String::from_utf8_lossy(&body[..i]).into_owned(), &body[i + 1..]),
        None => (String::new(), body),
    }
}

/// What zlib packed; of damaged data what is before the damage.
pub(crate) fn inflated(b: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let _ = ZlibDecoder::new(b).take(LONGEST).read_to_end(&mut out);
    out
}

/// The bytes of a raw profile as ImageMagick writes it into a text: a name, the number of bytes, and their digits.
pub(crate) fn raw_profile(text: &[u8]) -> Option<Vec<u8>> {
    let mut words = text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let _name = words.next()?;
    let length: usize = std::str::from_utf8(words.next()?).ok()?.parse().ok()?;
    let digit = |b: &u8| char::from(*b).to_digit(16).map(|d| d as u8);
    let digits: Vec<u8> = words.flatten().map(digit).collect::<Option<_>>()?;
    let mut bytes: Vec<u8> = digits.as_chunks::<2>().0.iter().map(|[a, b]| a << 4 | b).collect();
    bytes.truncate(length);
    Some(bytes)
}

/// A resolution that a PNG states.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PngResolution {
    /// `png.pHYs` or `png.sCAL`.
    pub field: &'static str,
    /// um/px across and down; not finite where the field is 0.
    pub mpp: [f64; 2],
}

impl PngResolution {
    /// Whether two of them contradict each other.
    #[must_use]
    pub fn contradicts(&self, other: &Self) -> bool {
        (0..2).any(|axis| differ(self.mpp[axis], other.mpp[axis], CONTRADICTION))
    }
}

/// um/px of a chunk `sCAL`.
fn scale(body: &[u8]) -> Option<[f64; 2]> {
    // Metres; radians are 2.
    let text = std::str::from_utf8(body.strip_prefix(&[1])?).ok()?;
    let (across, down) = text.split_once('\0')?;
    let um = |v: &str| v.trim().parse::<f64>().ok().map(|m| m * 1e6).filter(|um| *um > 0.0);
    Some([um(across)?, um(down)?])
}

/// Whether a chunk `sCAL` is the resolution of a slide and nothing else: other numbers may be those of a case.
pub(crate) fn is_scale(body: &[u8]) -> bool {
    let is_short = body.len() <= LONGEST_SCALE;
    is_short && scale(body).is_some_and(|mpp| mpp.iter().all(|v| Mpp::new(*v).is_ok()))
}

/// Longest such chunk: two numbers of all digits that they may have.
const LONGEST_SCALE: usize = 32;

/// What a PNG states of its resolution: pixels per metre (`pHYs`) and the scale of what it shows (`sCAL`), each as
/// often as it does.
#[must_use]
pub fn png_resolutions(b: &[u8]) -> Vec<PngResolution> {
    if !b.starts_with(SIGNATURE) {
        return Vec::new();
    }
    let stated = |c: Chunk<'_>| match c.kind {
        b"pHYs" => {
            let (numbers, unit) = c.body.split_last_chunk::<1>()?;
            let [across, down] = numbers.as_chunks::<4>().0 else { return None };
            let mpp = [across, down].map(|n| 1e6 / f64::from(u32::from_be_bytes(*n)));
            (*unit == [1]).then_some(PngResolution { field: "png.pHYs", mpp })
        }
        b"sCAL" => Some(PngResolution { field: "png.sCAL", mpp: scale(c.body)? }),
        _ => None,
    };
    chunks(b).take_while(|c| c.kind != b"IEND").filter_map(stated).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(kind: &[u8; 4], body: &[u8]) -> Vec<u8> {
        [&(body.len() as u32).to_be_bytes()[..], kind, body, &[0; 4]].concat()
    }

    #[test]
    fn a_raw_profile_is_a_name_a_length_and_digits() {
        let read = |text: &str| raw_profile(text.as_bytes());
        assert_eq!(read("\nexif\n       3\n4a61\n6E\n"), Some(b"Jan".to_vec()));
        assert_eq!(read("\nexif\n 2\n4a616E00"), Some(b"Ja".to_vec()), "as long as it states");
        for text in ["", "exif", "exif x 4a", "exif 2 4axx"] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn chunks_are_walked_and_words_in_pixels_are_not_chunks() {
        let density = [&2000_u32.to_be_bytes()[..], &2000_u32.to_be_bytes(), &[1]].concat();
        let words = [b"pHYs", &density[..]].concat();
        let whole =
            [SIGNATURE, &chunk(b"IHDR", &[7; 13]), &chunk(b"IDAT", &words), &chunk(b"IEND", &[])]
                .concat();
        let kinds: Vec<_> = chunks(&whole).map(|c| c.kind).collect();
        assert_eq!(kinds, [b"IHDR", b"IDAT", b"IEND"]);
        assert_eq!(png_resolutions(&whole), []);
        let stated = [SIGNATURE, &chunk(b"pHYs", &density), &chunk(b"IEND", &[])].concat();
        assert_eq!(
            png_resolutions(&stated),
            [PngResolution { field: "png.pHYs", mpp: [500.0, 500.0] }]
        );
        // Cut in a body: as much as there is, and an end.
        let cut: Vec<_> = chunks(&whole[..50]).collect();
        assert_eq!((cut.len(), cut[1].body.len(), cut[1].whole), (2, 50 - 8 - 25 - 8, None));
        let huge = [SIGNATURE, &[255; 4], b"IDAT", &[1, 2]].concat();
        assert_eq!(chunks(&huge).map(|c| c.body.len()).collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn every_resolution_of_a_png_is_read_and_compared() {
        let density =
            [&4_000_000_u32.to_be_bytes()[..], &2_000_000_u32.to_be_bytes(), &[1]].concat();
        let read = |kind: &[u8; 4], body: &[u8]| {
            png_resolutions(&[SIGNATURE, &chunk(b"pHYs", &density), &chunk(kind, body)].concat())
        };
        for (kind, body, agrees) in [
            (b"sCAL", &b"\x01 2.5e-7\x000.00000049"[..], true),
            (b"sCAL", b"\x015e-7\x005e-7", false),
            (b"pHYs", &density, true),
            (b"pHYs", &[&density[4..8], &density[4..]].concat(), false),
        ] {
            let [first, second] = read(kind, body)[..] else { panic!("{kind:?}") };
            assert_eq!(first.mpp, [0.25, 0.5]);
            assert_eq!(first.contradicts(&second), !agrees, "{second:?}");
        }
        // Radians, texts that are not numbers, pixels without a unit.
        for (kind, body) in [
            (b"sCAL", &b"\x021\x001"[..]),
            (b"sCAL", b"\x01x\x001"),
            (b"sCAL", b"\x01-1\x001"),
            (b"sCAL", b"\x011"),
            (b"pHYs", &[&density[..8], &[0]].concat()),
        ] {
            assert_eq!(read(kind, body).len(), 1, "{body:?}");
        }
    }
}
