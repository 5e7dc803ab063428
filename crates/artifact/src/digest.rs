//! SHA-256, and bytes as hexadecimal digits.

pub use sha2::{Digest, Sha256};

use crate::file::ReadError;
use std::fs::File;
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

/// Size and SHA-256 of a file, read piece by piece.
///
/// # Errors
/// [`ReadError`] when it cannot be read.
pub fn sha256_file(path: &Path) -> Result<(u64, String), ReadError> {
    let fail = |source| ReadError { path: path.to_owned(), source };
    let mut file = File::open(path).map_err(fail)?;
    let (mut hash, mut size, mut buffer) = (Sha256::new(), 0_u64, vec![0_u8; 1 << 20]);
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok((size, hex(&hash.finalize()))),
            Ok(n) => {
                hash.update(&buffer[..n]);
                size += n as u64;
            }
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(fail(e)),
        }
    }
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
        let missing = sha256_file(&dir.path().join("none")).unwrap_err();
        assert!(missing.to_string().contains("none"), "{missing}");
    }
}
