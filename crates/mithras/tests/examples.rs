//! The examples of the repository's root, run on a drawn slide.

#[path = "../../../examples/custom_classifier.rs"]
#[allow(dead_code, reason = "`main` is the example's own")]
mod custom_classifier;
#[path = "../../../examples/custom_export.rs"]
#[allow(dead_code, reason = "`main` is the example's own")]
mod custom_export;
#[path = "../../../examples/detect_one.rs"]
#[allow(dead_code, reason = "`main` is the example's own")]
mod detect_one;

use mithras::demo::{self, Container, Layout, Spec};

#[test]
fn the_examples_run_on_a_drawn_slide() {
    let folder = tempfile::tempdir().unwrap();
    let slide = folder.path().join("drawn.tiff");
    let layout = Layout::new(Spec::new(640, 640, 1, 2).unwrap()).unwrap();
    demo::write(&layout, &slide, Container::Auto, &mut mithras::progress::Silent).unwrap();

    let record = detect_one::detect(&slide).unwrap();
    detect_one::print(&record);
    assert!(record.figures().count() >= 2, "{record:?}");

    let table = String::from_utf8((custom_export::FIGURES_TSV.bytes)(&record).unwrap()).unwrap();
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines[0], "x_mm\ty_mm\tscore");
    assert_eq!(lines.len(), 1 + record.figures().count());
    let x: f64 = lines[1].split('\t').next().unwrap().parse().unwrap();
    let first = record.figures().next().unwrap();
    assert!((x * 1000.0 - first.x_um).abs() < 0.01, "{x} mm, {} um", first.x_um);

    // Same first stage, so the same candidates; other scores in the second.
    let other = custom_classifier::detect(&slide).unwrap();
    assert_eq!(other.rows.len(), record.rows.len());
    for (own, bundled) in other.rows.iter().zip(&record.rows) {
        assert_eq!((own.s_seg, own.x_px), (bundled.s_seg, bundled.x_px));
    }
    let scores = |r: &mithras::SlideRecord| r.rows.iter().map(|r| r.s_cls).collect::<Vec<_>>();
    assert!(scores(&other).iter().all(|s| s.is_some_and(|s| s > 0.0 && s < 1.0)));
    assert_ne!(scores(&other), scores(&record));
}
