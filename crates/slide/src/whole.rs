//! Whether a JPEG file is all there: many decoders fill up what is missing with grey, without an error.

use crate::jpeg::{Space, decode, segments};

/// Sides of a JPEG at most, px.
const MOST: (usize, usize) = (65_535, 65_535);

/// What is missing of a JPEG file; none of a whole one, and of what is not a JPEG. A file that lacks its end marker
/// alone is whole.
#[must_use]
pub(crate) fn missing_of_jpeg(bytes: &[u8]) -> Option<String> {
    if !bytes.starts_with(&[0xFF, 0xD8, 0xFF])
        || bytes[..segments(bytes).1].ends_with(&[0xFF, 0xD9])
    {
        return None;
    }
    match decode(None, bytes, Space::ByMarkers, MOST) {
        Ok((_, Some(doubt))) if doubt.contains("no end marker") => None,
        Ok((_, doubt)) => Some(format!("JPEG: {}", doubt.unwrap_or("no end marker"))),
        Err(reason) => Some(reason),
    }
}

#[cfg(test)]
mod tests {
    use super::missing_of_jpeg;

    #[test]
    fn a_jpeg_that_is_cut_or_ends_in_zeros_is_noticed() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/slides/");
        for name in ["flat_420.jpg", "flat_progressive_444.jpg"] {
            let whole = std::fs::read(format!("{folder}{name}")).unwrap();
            assert_eq!(missing_of_jpeg(&whole), None, "{name}");
            assert_eq!(missing_of_jpeg(&[&whole[..], b"more"].concat()), None, "{name}");
            for share in [0.3, 0.5, 0.9, 0.99] {
                let mut cut = whole[..(whole.len() as f64 * share) as usize].to_vec();
                assert!(missing_of_jpeg(&cut).is_some(), "{name}, {share}");
                cut.resize(whole.len(), 0);
                assert!(missing_of_jpeg(&cut).is_some(), "{name}, {share} and zeros");
            }
        }
        let sequential = std::fs::read(format!("{folder}flat_420.jpg")).unwrap();
        assert_eq!(missing_of_jpeg(&sequential[..sequential.len() - 2]), None);
        assert_eq!(missing_of_jpeg(b"\x89PNG"), None);
    }
}
