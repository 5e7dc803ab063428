//! Every bundled network against ONNX Runtime (`golden/bundled.py`), on every instruction set that this processor has.

use crate::isa::Isa;
use crate::network::{Network, PlanOptions};
use std::path::{Path, PathBuf};

/// Largest difference of a probability.
const ALLOWED: f32 = 1e-5;

/// As `mixed` of the script.
fn mixed(v: usize) -> f32 {
    let v = (v as u32).wrapping_mul(2_654_435_761);
    let v = (v ^ (v >> 15)).wrapping_mul(2_246_822_519);
    (v >> 24) as f32
}

/// As `image` of the script.
fn image(index: usize, side: usize) -> Vec<f32> {
    let block = 2 + index % 4;
    let mut all = Vec::with_capacity(3 * side * side);
    for c in 0..3 {
        for y in 0..side {
            for x in 0..side {
                let coarse = ((y >> block) * 1024 + (x >> block)) * 3 + c + 7919 * index;
                let fine = (y * 1024 + x) * 3 + c + 104_729 * index;
                all.push((3.0 * mixed(coarse) + mixed(fine) - 512.0) / 256.0);
            }
        }
    }
    all
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn golden(name: &str) -> Vec<f32> {
    let file = root().join("crates/kernels/src/tests/golden").join(name).with_extension("f32");
    let bytes = std::fs::read(file).unwrap();
    bytes.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect()
}

fn check(name: &str, file: &str, side: usize, images: usize, every: usize) {
    let onnx = std::fs::read(root().join("models").join(file)).unwrap();
    let want = golden(name);
    let input: Vec<f32> = (0..images).flat_map(|i| image(i, side)).collect();
    for isa in Isa::available() {
        let options = PlanOptions {
            isa,
            together: 2,
            ..PlanOptions::new("image", [3, side, side], "probability")
        };
        let network = Network::plan(onnx.as_slice(), &options).unwrap();
        let mut all = vec![0.0; images * network.output_len()];
        network.run(&mut Vec::new(), &input, &mut all, 1).unwrap();
        let got: Vec<f32> = all.into_iter().step_by(every).collect();
        assert_eq!(got.len(), want.len());
        let off = got.iter().zip(&want).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(off <= ALLOWED, "{name}, {isa}: off by {off}");
    }
}

#[test]
fn first_stages_equal_onnx_runtime() {
    check("standard-segmenter", "mithras-standard/segmenter.onnx", 512, 2, 61);
    check("fast-segmenter", "mithras-fast/segmenter.onnx", 512, 2, 61);
}

#[test]
fn second_stages_equal_onnx_runtime() {
    check("fast-screen", "mithras-fast/screen.onnx", 64, 6, 1);
    check("standard-classifier", "mithras-standard/classifier.onnx", 96, 6, 1);
    check("morphology-classifier", "mithras-morphology/classifier.onnx", 96, 6, 1);
}
