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
}
