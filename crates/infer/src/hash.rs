//! SHA-256 as lower-case hex.

use sha2::{Digest, Sha256};
use std::fmt::Write as _;

/// SHA-256 of `bytes`, 64 lower-case hex digits, as model cards carry it.
#[must_use]
pub fn sha256_hex(bytes: &[u8]) -> String {
    sha256_of([bytes])
}

/// The same of several, one after the other.
pub(crate) fn sha256_of<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hash = Sha256::new();
    parts.into_iter().for_each(|part| hash.update(part));
    hash.finalize().iter().fold(String::with_capacity(64), |mut s, b| {
        write!(s, "{b:02x}").expect("writing to a string");
        s
    })
}
