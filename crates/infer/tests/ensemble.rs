//! Classifiers of several folds as one network.

use crate::common::{noise, picture};
use infer::card::{ClassifierCard, Interpolation, ScreenCard};
use infer::ensemble::{EnsembleError, classifier};
use infer::{EngineChoice, EngineOptions, ModelCard, ModelPackage, open};
use mitosis::RgbTile;
use std::fs;
use std::path::Path;

/// The bundled network of morphologies under two classes of its own, as it is or with other weights.
fn member(dir: &Path, name: &str) -> ModelPackage {
    let folder = testkit::workspace().join("models/mithras-morphology");
    let package = ModelPackage::open(&folder).unwrap();
    let mut onnx = package.classifier().unwrap().to_vec();
    if name == "changed" {
        // Numbers of two bytes: no bit of this place makes one infinite.
        let middle = onnx.len() / 2;
        onnx[middle..middle + 20_000].iter_mut().for_each(|b| *b ^= 8);
    }
    let mut whole = package.card;
    whole.name = name.into();
    let card = whole.classifier.as_mut().unwrap();
    (card.classes, card.positive) = (vec!["other".into(), "figure".into()], "figure".into());
    card.outputs = (0..8).map(|i| card.classes[usize::from(i > 3)].clone()).collect();
    card.symmetries = 2;
    written(&whole, &onnx, &dir.join(name))
}

fn answers(package: &ModelPackage, crops: &[RgbTile]) -> Vec<f32> {
    let mut models = open(package, &EngineOptions::default()).unwrap();
    let all = models.classifier.as_mut().unwrap().classes(crops).unwrap();
    all.into_iter().flat_map(|p| p.0).collect()
}

#[test]
fn a_crop_that_is_clearly_no_figure_is_asked_once() {
    let dir = tempfile::tempdir().unwrap();
    let twice = member(dir.path(), "twice");
    let crops = noise(64, 6);
    let asked = |name: &str, copies: u8, from: Option<f32>| {
        let mut card = twice.card.clone();
        let c = card.classifier.as_mut().unwrap();
        (c.symmetries, c.symmetries_from) = (copies, from);
        answers(&written(&card, twice.classifier().unwrap(), &dir.path().join(name)), &crops)
    };
    let (once, both) = (asked("once", 1, None), asked("both", 2, None));
    let figures = |all: &[f32]| all.iter().skip(1).step_by(2).copied().collect::<Vec<f32>>();
    let mut sorted = figures(&once);
    sorted.sort_by(f32::total_cmp);
    // Three crops below the bound, three at it or above.
    let least = sorted[3];
    assert!(sorted[2] < least && least < 1.0, "{sorted:?}");
    let some = asked("some", 2, Some(least));
    for (i, first) in figures(&once).into_iter().enumerate() {
        let wanted = if first >= least { &both } else { &once };
        assert_eq!(some[2 * i..2 * i + 2], wanted[2 * i..2 * i + 2], "crop {i}");
    }
    assert_ne!(once, both);
}

#[test]
fn a_screen_keeps_what_is_clearly_no_figure_and_passes_the_rest_on() {
    let dir = tempfile::tempdir().unwrap();
    let bundled =
        |name: &str| ModelPackage::open(&testkit::workspace().join("models").join(name)).unwrap();
    let second = bundled("mithras-standard");
    let own = second.card.classifier.clone().unwrap();
    // The same network under another normalisation answers otherwise.
    let screen_of = |passes_from| ScreenCard {
        file: "screen.onnx".into(),
        sha256: own.sha256.clone(),
        architecture: own.architecture.clone(),
        input: own.input,
        mean: [0.5; 3],
        std: [0.5; 3],
        passes_from,
    };
    let crops = noise(own.crop, 6);
    let by_second = answers(
        &written(&second.card, second.classifier().unwrap(), &dir.path().join("second")),
        &crops,
    );
    let as_screen =
        ModelCard { classifier: Some(screen_of(0.5).as_classifier(&own)), ..second.card.clone() };
    let by_small = answers(
        &written(&as_screen, second.classifier().unwrap(), &dir.path().join("small")),
        &crops,
    );
    let figures: Vec<f32> = by_small.iter().skip(1).step_by(2).copied().collect();
    let mut sorted = figures.clone();
    sorted.sort_by(f32::total_cmp);
    // Three crops below the bound, three at it or above.
    let least = sorted[3];
    assert!(0.0 < least && sorted[2] < least && least < 1.0, "{sorted:?}");

    let folder = dir.path().join("screened");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("screen.onnx"), second.classifier().unwrap()).unwrap();
    let card = ModelCard { screen: Some(screen_of(least)), ..second.card.clone() };
    let both = written(&card, second.classifier().unwrap(), &folder);
    let names: Vec<&str> = both.files().map(|f| f.0).collect();
    assert_eq!(names, ["classifier.onnx", "screen.onnx"]);
    let screened = answers(&both, &crops);
    for (i, figure) in figures.into_iter().enumerate() {
        let wanted = if figure >= least { &by_second } else { &by_small };
        for k in 2 * i..2 * i + 2 {
            assert!((screened[k] - wanted[k]).abs() < 1e-6, "crop {i}: {screened:?}");
        }
    }
    assert_ne!(screened, by_second);

    let timing = infer::timing::time(&both, &EngineOptions::default(), 1).unwrap();
    assert!(timing.screen_s.unwrap() > 0.0 && timing.crop_s.unwrap() > 0.0);
}

/// The grey tile of the first run does not pass the screen, and what is behind it must be tried nevertheless.
#[test]
fn a_network_behind_a_screen_is_tried_before_the_work_starts() {
    let dir = tempfile::tempdir().unwrap();
    let folder = testkit::workspace().join("models/mithras-fast");
    let bundled = ModelPackage::open(&folder).unwrap();
    let mut onnx = bundled.classifier().unwrap().to_vec();
    // Numbers of two bytes that are not a number.
    let middle = onnx.len() / 2;
    onnx[middle..middle + 20_000].fill(0xff);
    let broken = dir.path().join("broken");
    fs::create_dir_all(&broken).unwrap();
    fs::write(broken.join("screen.onnx"), bundled.screen().unwrap()).unwrap();
    let mut card = bundled.card.clone();
    card.screen.as_mut().unwrap().passes_from = 0.999;
    let package = written(&card, &onnx, &broken);
    let native = EngineOptions { engine: EngineChoice::Native, ..EngineOptions::default() };
    let refused = open(&package, &native).unwrap_err().to_string();
    assert!(refused.contains("the first run failed"), "{refused}");
}

fn written(of: &ModelCard, onnx: &[u8], dir: &Path) -> ModelPackage {
    let mut card = of.clone();
    (card.segmenter, card.candidates, card.operating_point) = (None, None, None);
    card.operating_points.clear();
    let classifier = card.classifier.as_mut().unwrap();
    (classifier.file, classifier.sha256) = ("classifier.onnx".into(), base::digest::sha256(onnx));
    fs::create_dir_all(dir).unwrap();
    fs::write(dir.join("classifier.onnx"), onnx).unwrap();
    fs::write(dir.join("card.toml"), card.to_toml().unwrap()).unwrap();
    ModelPackage::open(dir).unwrap()
}

#[test]
fn the_mean_of_networks_is_the_mean_of_their_answers() {
    let dir = tempfile::tempdir().unwrap();
    let members = ["as-it-is", "changed"].map(|name| member(dir.path(), name));
    let (card, onnx) = classifier(&members).unwrap();
    assert_eq!(card.folds, ["as-it-is", "changed"]);
    let of_member = members[0].card.classifier.as_ref().unwrap();
    assert_eq!(card.architecture, of_member.architecture);
    let whole = ModelCard { classifier: Some(card), ..members[0].card.clone() };
    let whole = written(&whole, &onnx, &dir.path().join("mean"));
    let mut crops = noise(64, 2);
    crops.push(picture(64));
    let mean = answers(&whole, &crops);
    let each: Vec<Vec<f32>> = members.iter().map(|m| answers(m, &crops)).collect();
    let apart = each[0].iter().zip(&each[1]).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(apart > 1e-3, "the members answer alike, so nothing is tried");
    for (i, m) in mean.iter().enumerate() {
        let expected = (each[0][i] + each[1][i]) / 2.0;
        assert!((m - expected).abs() < 1e-5, "{m} {expected}");
    }
}

#[test]
fn what_is_not_alike_has_no_mean() {
    let dir = tempfile::tempdir().unwrap();
    let [first, other] = ["as-it-is", "changed"].map(|name| member(dir.path(), name));
    let differ = |change: fn(&mut ClassifierCard)| {
        let mut other = other.clone();
        change(other.card.classifier.as_mut().unwrap());
        classifier(&[first.clone(), other]).unwrap_err()
    };
    let e = differ(|c| c.crop = 80);
    assert!(matches!(e, EnsembleError::Differ { what: "crop", .. }), "{e}");
    assert!(e.to_string().contains("changed"), "{e}");
    let e = differ(|c| c.interpolation = Interpolation::Bicubic);
    assert!(matches!(e, EnsembleError::Differ { what: "interpolation", .. }), "{e}");
    let e = differ(|c| c.outputs.reverse());
    assert!(matches!(e, EnsembleError::Differ { what: "outputs", .. }), "{e}");
    assert!(matches!(classifier(&[]), Err(EnsembleError::Onnx(_))));
}
