//! Where tests find real data. A dev-dependency only.
//!
//! Real data is never in the repository. It is looked for where `MITHRAS_DATA` points, then at
//! `../shared/data` next to the checkout. A test that misses it states it and returns.

#![expect(clippy::print_stderr, reason = "tests print why they skip")]
#![forbid(unsafe_code)]

pub mod ami;
pub mod conch;
pub mod server;
pub mod weights;

use std::path::{Path, PathBuf};

/// The workspace root.
#[must_use]
pub fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("workspace root")
}

/// The folder of real data, if it is there.
#[must_use]
pub fn data_dir() -> Option<PathBuf> {
    let dir = std::env::var_os("MITHRAS_DATA")
        .map_or_else(|| workspace().join("../shared/data"), PathBuf::from);
    dir.is_dir().then(|| dir.canonicalize().expect("data folder"))
}

/// A file or folder below the real data, or `None` with a plain word on stderr.
///
/// ```
/// let Some(frames) = testkit::data("icpr2012/frames") else { return };
/// assert!(frames.is_dir());
/// ```
#[must_use]
pub fn data(relative: &str) -> Option<PathBuf> {
    let found = data_dir().map(|d| d.join(relative)).filter(|p| p.exists());
    if found.is_none() {
        eprintln!("SKIPPED: real data `{relative}` is missing (set MITHRAS_DATA)");
    }
    found
}

/// Leaves the first tile of the coarsest level of a small TIFF out, as scanners leave out what another level holds: its
/// byte count becomes 0.
///
/// # Panics
/// Of a file that is not a classic little-endian TIFF with tiles.
pub fn leave_out_a_tile(slide: &Path) {
    let mut bytes = std::fs::read(slide).expect("a slide");
    let uint = |b: &[u8], at: usize, n: usize| {
        b[at..at + n].iter().rev().fold(0, |v, x| v << 8 | usize::from(*x))
    };
    let (mut next, mut counts) = (uint(&bytes, 4, 4), None);
    while next != 0 {
        let n = uint(&bytes, next, 2);
        for field in (0..n).map(|i| next + 2 + 12 * i) {
            // TileByteCounts.
            if uint(&bytes, field, 2) == 325 {
                let single = uint(&bytes, field + 4, 4) == 1;
                counts = Some(if single { field + 8 } else { uint(&bytes, field + 8, 4) });
            }
        }
        next = uint(&bytes, next + 2 + 12 * n, 4);
    }
    let counts = counts.expect("tiles");
    bytes[counts..counts + 4].fill(0);
    std::fs::write(slide, bytes).expect("a slide");
}
