//! Shared by the integration tests.
#![allow(dead_code, reason = "each test binary uses its own part")]

use infer::ModelPackage;
use mitosis::RgbTile;
use std::path::PathBuf;

/// `tests/golden/tiny`.
pub fn tiny_dir() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/tiny")
}

pub fn tiny() -> ModelPackage {
    ModelPackage::open(&tiny_dir()).unwrap()
}

/// Expected values from PyTorch.
pub fn golden() -> serde_json::Value {
    serde_json::from_slice(&std::fs::read(tiny_dir().join("golden.json")).unwrap()).unwrap()
}

/// The picture that `generate.py` draws.
pub fn picture(side: usize) -> RgbTile {
    let mut data = Vec::with_capacity(3 * side * side);
    for y in 0..side {
        for x in 0..side {
            data.extend([x * 7 + y * 3, x * x / 5 + y, x ^ y].map(|v| (v % 256) as u8));
        }
    }
    RgbTile::new(side, side, data)
}

/// Tiles that differ from one another.
pub fn noise(side: usize, n: usize) -> Vec<RgbTile> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    (0..n)
        .map(|_| {
            let data = (0..3 * side * side)
                .map(|_| {
                    state ^= state << 13;
                    state ^= state >> 7;
                    state ^= state << 17;
                    (state >> 32) as u8
                })
                .collect();
            RgbTile::new(side, side, data)
        })
        .collect()
}

/// The package that the product runs, or seeded networks of the same size
/// (`generate.py full target/seeded-full`), or a plain word.
///
/// With it: whether the weights are trained. Seeded weights amplify rounding without bound, so
/// that bf16 means nothing for them.
pub fn real_size() -> Option<(ModelPackage, bool)> {
    let seeded = testkit::workspace().join("target/seeded-full");
    let trained = ModelPackage::bundled().ok().map(|p| (p, true));
    let found = trained.or_else(|| ModelPackage::open(&seeded).ok().map(|p| (p, false)));
    if found.is_none() {
        eprintln!(
            "SKIPPED: no bundled weights and no {}; \
             run crates/infer/tests/golden/generate.py full target/seeded-full",
            seeded.display()
        );
    }
    found
}
