//! The chunks of a PNG (third edition, 5.3).

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

/// Pixels per metre across and down, where a PNG states them (`pHYs`); `None` where it states two of them.
#[must_use]
pub fn png_pixels_per_metre(b: &[u8]) -> Option<[u32; 2]> {
    if !b.starts_with(SIGNATURE) {
        return None;
    }
    let mut stated = chunks(b).take_while(|c| c.kind != b"IEND").filter(|c| c.kind == b"pHYs");
    let field: &[u8; 9] = stated.next()?.body.try_into().ok()?;
    if stated.any(|other| other.body != field) {
        return None;
    }
    let number =
        |at: usize| u32::from_be_bytes([field[at], field[at + 1], field[at + 2], field[at + 3]]);
    (field[8] == 1).then(|| [number(0), number(4)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(kind: &[u8; 4], body: &[u8]) -> Vec<u8> {
        [&(body.len() as u32).to_be_bytes()[..], kind, body, &[0; 4]].concat()
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
        assert_eq!(png_pixels_per_metre(&whole), None);
        let stated = [SIGNATURE, &chunk(b"pHYs", &density), &chunk(b"IEND", &[])].concat();
        assert_eq!(png_pixels_per_metre(&stated), Some([2000, 2000]));
        let coarser = [&1000_u32.to_be_bytes()[..], &density[4..]].concat();
        for (second, agrees) in [(&density, true), (&coarser, false)] {
            let twice = [SIGNATURE, &chunk(b"pHYs", &density), &chunk(b"pHYs", second)].concat();
            assert_eq!(png_pixels_per_metre(&twice).is_some(), agrees);
        }
        // Cut in a body: as much as there is, and an end.
        let cut: Vec<_> = chunks(&whole[..50]).collect();
        assert_eq!((cut.len(), cut[1].body.len(), cut[1].whole), (2, 50 - 8 - 25 - 8, None));
        let huge = [SIGNATURE, &[255; 4], b"IDAT", &[1, 2]].concat();
        assert_eq!(chunks(&huge).map(|c| c.body.len()).collect::<Vec<_>>(), [2]);
    }
}
