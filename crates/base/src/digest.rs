//! SHA-256, and bytes as hexadecimal digits.

pub use sha2::{Digest, Sha256};

use crate::file::{self, ReadError};
use std::io::Read;
use std::path::Path;

/// Lower-case hexadecimal digits, two per byte.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble)]);
    bytes.iter().flat_map(|b| [digit(b >> 4), digit(b & 15)]).collect()
}

/// SHA-256 of `bytes` as 64 hexadecimal digits.
#[must_use]
pub fn sha256(bytes: impl AsRef<[u8]>) -> String {
    hex(&Sha256::digest(bytes))
}

/// The same of several, one after the other.
#[must_use]
pub fn sha256_parts<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hash = Sha256::new();
    parts.into_iter().for_each(|part| hash.update(part));
    hex(&hash.finalize())
}

/// Size and SHA-256 of a file, read piece by piece.
///
/// # Errors
/// [`ReadError`] when it cannot be read.
pub fn sha256_file(path: &Path) -> Result<(u64, String), ReadError> {
    sha256_files([path])
}

/// Size and SHA-256 of files, one after the other, as of `cat A B C`.
///
/// # Errors
/// [`ReadError`] when one cannot be read.
pub fn sha256_files(
    paths: impl IntoIterator<Item = impl AsRef<Path>>,
) -> Result<(u64, String), ReadError> {
    let (mut hash, mut size, mut buffer) = (Sha256::new(), 0_u64, vec![0_u8; 1 << 20]);
    for path in paths {
        let path = path.as_ref();
        let fail = |source| ReadError { path: path.to_owned(), source };
        let mut file = file::open(path)?;
        loop {
            match file.read(&mut buffer) {
                Ok(0) => break,
                Ok(n) => {
                    hash.update(&buffer[..n]);
                    size += n as u64;
                }
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Err(fail(e)),
            }
        }
    }
    Ok((size, hex(&hash.finalize())))
}

/// How much of either end of a file goes into its digest, bytes.
pub const END: u64 = 1 << 20;
/// How many pieces between the ends are read.
const PIECES: u64 = 256;
/// Bytes of a piece.
const PIECE: u64 = 1 << 12;

/// SHA-256 over size, first and last MiB of a file of so many bytes; `read` fills a buffer from a place on.
///
/// # Errors
/// Those of `read`.
pub fn sha256_ends<E>(
    size: u64,
    mut read: impl FnMut(&mut [u8], u64) -> Result<(), E>,
) -> Result<String, E> {
    let mut hash = Sha256::new();
    hash.update(size.to_le_bytes());
    let second = size.saturating_sub(END).max(END);
    for (from, to) in [(0, size.min(END)), (second.min(size), size)] {
        let mut part = vec![0; (to - from) as usize];
        read(&mut part, from)?;
        hash.update(&part);
    }
    Ok(hex(&hash.finalize()))
}

/// SHA-256 over 256 pieces of 4 KiB between the ends of a file, one of each 256th of it, or over all between the ends
/// where that is less; none where there is nothing between them.
///
/// # Errors
/// Those of `read`.
pub fn sha256_pieces<E>(
    size: u64,
    mut read: impl FnMut(&mut [u8], u64) -> Result<(), E>,
) -> Result<Option<String>, E> {
    let between = size.saturating_sub(2 * END);
    let stride = between / PIECES;
    let mut hash = Sha256::new();
    if between == 0 {
        return Ok(None);
    } else if stride <= PIECE {
        let mut part = vec![0; between as usize];
        read(&mut part, END)?;
        hash.update(&part);
    } else {
        let mut piece = vec![0; PIECE as usize];
        for k in 0..PIECES {
            // At equal distances all pieces may be of one column of an image without compression: its margin.
            let shift = (k.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) % (stride - PIECE + 1);
            read(&mut piece, END + k * stride + shift)?;
            hash.update(&piece);
        }
    }
    Ok(Some(hex(&hash.finalize())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_of_bytes_and_files_agree_with_the_standard() {
        assert_eq!(hex(&[0, 1, 0xab, 0xff]), "0001abff");
        // FIPS 180-2, appendix B.1.
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256("abc"), abc);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("abc");
        std::fs::write(&path, "abc").unwrap();
        assert_eq!(sha256_file(&path).unwrap(), (3, abc.to_owned()));
        let halves = ["a", "bc"].map(|part| dir.path().join(part));
        halves.iter().zip(["a", "bc"]).for_each(|(p, text)| std::fs::write(p, text).unwrap());
        assert_eq!(sha256_files(&halves).unwrap(), (3, abc.to_owned()));
        let missing = sha256_file(&dir.path().join("none")).unwrap_err();
        assert!(missing.to_string().contains("none"), "{missing}");
    }

    /// Files that differ far from their ends alone.
    #[test]
    fn pieces_show_what_differs_between_the_ends() {
        fn digests(bytes: &[u8]) -> (String, Option<String>) {
            let read = |part: &mut [u8], at: u64| {
                let at = at as usize;
                part.copy_from_slice(bytes.get(at..at + part.len()).ok_or("beyond the end")?);
                Ok::<(), &str>(())
            };
            let size = bytes.len() as u64;
            (sha256_ends(size, read).unwrap(), sha256_pieces(size, read).unwrap())
        }
        let mib = 1 << 20;
        for size in [0, 1000, mib, 2 * mib] {
            assert_eq!(digests(&vec![7; size]).1, None, "the ends are all of it");
        }
        for (size, share) in [(2 * mib + 1, 1), (3 * mib, 3), (20 * mib, 10)] {
            let mut bytes = vec![255; size];
            let before = digests(&bytes);
            assert_eq!(before, digests(&bytes));
            let between = size - 2 * mib;
            bytes[mib + between / 2..][..between.div_ceil(share)].fill(0);
            let after = digests(&bytes);
            assert!(before.0 == after.0 && before.1 != after.1, "{size}");
        }
    }
}
