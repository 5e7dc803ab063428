//! The bundled packages: what the fast detector saves, and what all weigh.

use infer::ModelPackage;
use net::onnx::multiply_accumulates;

/// Candidates per mm2, of them those that a screen passes on, and of these those that are asked again, flipped.
struct Candidates(f64, f64, f64);

/// Multiply-accumulates per mm2: of the first stage, and of screen and second stage on its candidates.
fn per_mm2(name: &str, Candidates(all, passed, again): Candidates) -> (f64, f64) {
    let package = ModelPackage::bundled_named(name).unwrap();
    let count = |onnx: Option<&[u8]>, side: usize| {
        multiply_accumulates(onnx.unwrap(), side as i64).unwrap() as f64
    };
    let s = package.card.segmenter.as_ref().unwrap();
    let step = s.stride as f64 * s.mpp.get() / 1000.0;
    let c = package.card.classifier.as_ref().unwrap();
    let screen = package.card.screen.as_ref();
    let screen = screen.map_or(0.0, |s| count(package.screen(), s.input) * all);
    let crops = passed + again * f64::from(c.symmetries - 1);
    let second = screen + count(package.classifier(), c.input) * crops;
    (count(package.segmenter(), s.window) / (step * step), second)
}

/// Candidates per mm2 as counted on the frames of docs/results/detection.md and docs/notes/fast-detector.md.
#[test]
fn the_fast_detector_asks_for_a_sixth() {
    let standard = per_mm2("standard", Candidates(154.1, 154.1, 154.1));
    let fast = per_mm2("fast", Candidates(94.3, 50.5, 27.5));
    let giga = |v: f64| (v / 1e9).round();
    assert_eq!((giga(standard.0), giga(standard.1)), (368.0, 186.0));
    assert_eq!((giga(fast.0), giga(fast.1)), (34.0, 50.0));
    let ratio = (standard.0 + standard.1) / (fast.0 + fast.1);
    assert!(ratio > 6.0, "{ratio}");
}

#[test]
fn bundled_packages_are_small_and_have_cards_to_read() {
    let folder = testkit::workspace().join("models");
    let mut sizes = std::collections::BTreeMap::new();
    for name in ModelPackage::bundled_names() {
        let readme = std::fs::read_to_string(folder.join(name).join("README.md")).unwrap();
        assert!(readme.starts_with(&format!("# {name}\n")), "{name}");
        let package = ModelPackage::bundled_named(name).unwrap();
        // What packages share is there once.
        let parts = package.files().map(|(_, bytes)| bytes);
        sizes.extend(parts.map(|part| (part.as_ptr(), part.len())));
    }
    let bytes = sizes.into_values().sum::<usize>();
    assert!((1_000_000..60_000_000).contains(&bytes), "{bytes}");
}
