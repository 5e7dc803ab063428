//! Classifiers of several folds as one network.

use crate::common::{noise, picture};
use infer::ensemble::{EnsembleError, classifier};
use infer::{EngineOptions, ModelCard, ModelPackage, open};
use mitosis::RgbTile;
use std::fs;
use std::path::Path;

/// A bundled package's classifier, under classes of its own.
fn member(name: &str) -> ModelPackage {
    let mut package = ModelPackage::open(&testkit::workspace().join("models").join(name)).unwrap();
    let card = package.card.classifier.as_mut().unwrap();
    (card.classes, card.positive) = (vec!["other".into(), "figure".into()], "figure".into());
    card.symmetries = 2;
    package
}

fn answers(package: &ModelPackage, crops: &[RgbTile]) -> Vec<f32> {
    let mut models = open(package, &EngineOptions::default()).unwrap();
    let all = models.classifier.as_mut().unwrap().classes(crops).unwrap();
    all.into_iter().flat_map(|p| p.0).collect()
}

fn written(of: &ModelCard, onnx: &[u8], dir: &Path) -> ModelPackage {
    let mut card = of.clone();
    (card.segmenter, card.candidates, card.operating_point) = (None, None, None);
    card.operating_points.clear();
    card.classifier.as_mut().unwrap().file = "classifier.onnx".into();
    fs::create_dir_all(dir).unwrap();
    fs::write(dir.join("classifier.onnx"), onnx).unwrap();
    fs::write(dir.join("card.toml"), card.to_toml().unwrap()).unwrap();
    ModelPackage::open(dir).unwrap()
}

#[test]
fn the_mean_of_networks_is_the_mean_of_their_answers() {
    let dir = tempfile::tempdir().unwrap();
    let members = [member("mithras-fast"), member("mithras-atypical")];
    let (card, onnx) = classifier(&members).unwrap();
    assert_eq!(card.folds, ["mithras-fast", "mithras-atypical"]);
    assert_eq!(card.architecture, "efficientnet_lite0");
    let whole = ModelCard { classifier: Some(card), ..members[0].card.clone() };
    let whole = written(&whole, &onnx, &dir.path().join("mean"));
    let mut crops = noise(64, 2);
    crops.push(picture(64));
    let mean = answers(&whole, &crops);
    let each: Vec<Vec<f32>> = members
        .iter()
        .map(|m| {
            let alone = dir.path().join(&m.card.name);
            answers(&written(&m.card, m.classifier().unwrap(), &alone), &crops)
        })
        .collect();
    let apart = each[0].iter().zip(&each[1]).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(apart > 1e-3, "the members answer alike, so nothing is tried");
    for (i, m) in mean.iter().enumerate() {
        let expected = (each[0][i] + each[1][i]) / 2.0;
        assert!((m - expected).abs() < 1e-5, "{m} {expected}");
    }
}

#[test]
fn what_is_not_alike_has_no_mean() {
    let mut other = member("mithras-atypical");
    other.card.classifier.as_mut().unwrap().crop = 80;
    let e = classifier(&[member("mithras-fast"), other]).unwrap_err();
    assert!(matches!(e, EnsembleError::Differ { what: "crop", .. }), "{e}");
    assert!(e.to_string().contains("mithras-atypical"), "{e}");
    assert!(matches!(classifier(&[]), Err(EnsembleError::Onnx(_))));
}
