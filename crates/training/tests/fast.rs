//! The bundled packages: what the fast detector saves, and what all weigh.

use infer::ModelPackage;
use net::onnx::multiply_accumulates;

/// Multiply-accumulates per mm2: of the first stage, and of the second on as many candidates.
fn per_mm2(name: &str, candidates: f64) -> (f64, f64) {
    let package = ModelPackage::bundled_named(name).unwrap();
    let count = |onnx: Option<&[u8]>, side: usize| {
        multiply_accumulates(onnx.unwrap(), side as i64).unwrap() as f64
    };
    let s = package.card.segmenter.as_ref().unwrap();
    let step = s.stride as f64 * s.mpp.get() / 1000.0;
    let c = package.card.classifier.as_ref().unwrap();
    let crop = count(package.classifier(), c.input) * f64::from(c.symmetries);
    (count(package.segmenter(), s.window) / (step * step), crop * candidates)
}

/// Candidates per mm2 as counted on the frames of docs/results/detection.md.
#[test]
fn the_fast_detector_asks_for_a_third() {
    let (standard, fast) = (per_mm2("standard", 154.1), per_mm2("fast", 57.7));
    let giga = |v: f64| (v / 1e9).round();
    assert_eq!((giga(standard.0), giga(standard.1)), (368.0, 186.0));
    assert_eq!((giga(fast.0), giga(fast.1)), (107.0, 69.0));
    let ratio = (standard.0 + standard.1) / (fast.0 + fast.1);
    assert!(ratio > 3.0, "{ratio}");
}

#[test]
fn bundled_packages_are_small_and_have_cards_to_read() {
    let folder = testkit::workspace().join("models");
    let mut sizes = std::collections::BTreeMap::new();
    for name in ModelPackage::bundled_names() {
        let readme = std::fs::read_to_string(folder.join(name).join("README.md")).unwrap();
        assert!(readme.starts_with(&format!("# {name}\n")), "{name}");
        let package = ModelPackage::bundled_named(name).unwrap();
        let parts = [package.segmenter(), package.classifier()];
        // What packages share is there once.
        let parts = parts.into_iter().flatten().chain(package.encoder());
        sizes.extend(parts.map(|part| (part.as_ptr(), part.len())));
    }
    let bytes = sizes.into_values().sum::<usize>();
    assert!((1_000_000..60_000_000).contains(&bytes), "{bytes}");
}
