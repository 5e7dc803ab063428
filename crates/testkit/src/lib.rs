//! Where tests find real data. A dev-dependency only.
//!
//! Real data is never in the repository. It is looked for where `MITHRAS_DATA` points, then at
//! `../shared/data` next to the checkout. A test that misses it states it and returns.

#![forbid(unsafe_code)]

pub mod ami;
pub mod server;

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
