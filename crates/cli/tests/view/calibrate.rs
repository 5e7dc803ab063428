//! From a review of a laboratory's own slides to a package on its scale.

use super::back::mithras;
use super::made::serve;
use infer::ModelPackage;
use mithras::export::read_detections;
use std::path::Path;

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn logit(p: f32) -> f64 {
    let p = f64::from(p);
    (p / (1.0 - p)).ln()
}

#[test]
#[expect(clippy::too_many_lines, reason = "one review, whose package is used in what follows")]
fn judged_candidates_set_the_scale_and_the_points_of_a_package() {
    let dir = tempfile::tempdir().unwrap();
    let (run, ours) = (dir.path().join("run"), dir.path().join("ours"));
    let size = ["--size", "2200,1800", "--figures", "16", "--engine", "native"];
    mithras(&[&["demo", "--out", text(&run)][..], &size].concat()).unwrap();
    let calibrate = |more: &[&str]| {
        let own = ["calibrate", "--data", text(&run), "--out", text(&ours)];
        mithras(&[&own[..], more].concat())
    };
    let refused = calibrate(&[]).unwrap_err();
    assert!(refused.contains("no candidate of this run was judged"), "{refused}");

    let mut table = csv::Reader::from_path(run.join("truth.csv")).unwrap();
    let figures: Vec<[f64; 2]> = table
        .records()
        .map(Result::unwrap)
        .filter(|r| &r[3] == "mitotic")
        .map(|r| [r[1].parse().unwrap(), r[2].parse().unwrap()])
        .collect();
    let before = read_detections(&run.join("drawn/detections.csv")).unwrap();
    let is_figure =
        |at: [f64; 2]| figures.iter().any(|f| (f[0] - at[0]).hypot(f[1] - at[1]) <= 30.0);
    let judge = |who: &str, up_to: usize| {
        let server = serve(&[&run]);
        for r in &before[..up_to] {
            let at = [r.x_px, r.y_px];
            let word = if is_figure(at) { "\"figure\"" } else { "\"mimicker\"" };
            assert_eq!(server.review(who, 0, at, word, false).status, 200);
        }
    };
    judge("bert", 3);
    let refused = calibrate(&[]).unwrap_err();
    assert!(refused.contains("judge or measure more candidates"), "{refused}");
    let objects = run.join("drawn/qupath.geojson");
    let refused = calibrate(&["--reviews", text(&objects)]).unwrap_err();
    assert!(refused.contains("review the run in `mithras view`"), "{refused}");
    judge("anna", before.len());
    let refused = calibrate(&[]).unwrap_err();
    assert!(refused.contains("anna, bert") && refused.contains("name one of them"), "{refused}");
    let refused = calibrate(&["--model", "fast", "--reviews", "anna"]).unwrap_err();
    assert!(refused.contains("mithras-fast"), "{refused}");
    assert!(!ours.exists(), "what is refused leaves nothing");

    let made = calibrate(&["--reviews", "anna", "--json"]).unwrap();
    let made: serde_json::Value = serde_json::from_str(&made).unwrap();
    let judged = before.iter().filter(|r| !r.outside_tissue).count() as u64;
    assert_eq!(made["figures"].as_u64().unwrap() + made["others"].as_u64().unwrap(), judged);
    assert!(
        made["kept"].as_bool().unwrap(),
        "a drawn slide is not what the scale was made for: {made}"
    );
    assert!(made["after"]["log_loss"].as_f64() < made["before"]["log_loss"].as_f64());
    let card = ModelPackage::open(&ours).unwrap().card;
    assert_eq!(card.name, "mithras-standard-calibrated");
    let scale = card.classifier.as_ref().unwrap().scale.unwrap();
    assert_eq!(scale.slope, made["slope"].as_f64().unwrap());
    let point = card.point("balanced").unwrap();
    assert_eq!(point.cls, card.operating_point.as_ref().unwrap().cls);
    let used = card.training.unwrap()["calibration_slides"].as_array().unwrap().clone();
    assert_eq!(used[0]["name"].as_str(), Some("drawn"));

    // A full output is an error of this verb as of every other.
    #[cfg(target_os = "linux")]
    for (out, more) in [("full", &[][..]), ("full-2", &["--json"])] {
        let own = ["calibrate", "--data", "run", "--reviews", "anna", "--out", out];
        let words: Vec<_> = own.iter().chain(more).map(|w| (*w).into()).collect();
        assert_eq!(crate::special::full_in(crate::program(), dir.path(), &words), None);
    }

    // The package detects, on its own scale, and the run keeps that scale in mind.
    let again = dir.path().join("again");
    let slide = run.join("drawn.tiff");
    let detect = |out: &Path, more: &[&str]| {
        let own = ["detect", text(&slide), "--out", text(out), "--engine", "native"];
        mithras(&[&own[..], more].concat())
    };
    detect(&again, &["--model", text(&ours)]).unwrap();
    let after = read_detections(&again.join("drawn/detections.csv")).unwrap();
    assert_eq!(after.len(), before.len());
    for (a, b) in after.iter().zip(&before) {
        let want = 1.0 / (1.0 + (-scale.slope * logit(b.s_cls.unwrap()) - scale.offset).exp());
        assert!((f64::from(a.s_cls.unwrap()) - want).abs() < 1e-5, "{a:?} for {want}");
    }
    let counts = mithras::report::results(&again.join("drawn")).unwrap().counts;
    assert_eq!(counts.model.classifier_scale, Some(scale));
    let refused = detect(&again, &["--resume"]).unwrap_err();
    assert!(refused.contains("scale"), "other scores are not mixed in: {refused}");
    let refused = calibrate(&["--reviews", "anna"]).unwrap_err();
    assert!(refused.contains("holds a package already"), "{refused}");

    // Nor scores of fewer copies: the same networks, asked once where they answered twice.
    let card = ours.join("card.toml");
    let fewer = std::fs::read_to_string(&card)
        .unwrap()
        .replace("symmetries = 2", "symmetries = 2\nsymmetries_from = 0.1");
    std::fs::write(&card, fewer).unwrap();
    let refused = detect(&again, &["--model", text(&ours), "--resume"]).unwrap_err();
    assert!(refused.contains("symmetries_from"), "{refused}");
}
