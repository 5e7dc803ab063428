//! Tumour filters from published files.

use infer::{EngineOptions, ModelPackage};
use mitosis::{Mpp, RgbTile};
use std::path::{Path, PathBuf};
use tempfile::tempdir;
use testkit::conch::NINE;
use train::headed::Headed;
use training::encoders::headed::{Draft, Head, classifier};

fn draft(name: &str, image: usize, half: bool) -> Draft {
    let mpp = Mpp::new(0.5).unwrap();
    Draft { name: name.into(), license: "none".into(), mpp, crop: 224, image, half }
}

/// Two crops of 224 px.
fn crops() -> Vec<RgbTile> {
    let crop = |k: usize| {
        let value = |i: usize| (i * (k + 3) / 7 % 200) as u8;
        RgbTile::new(224, 224, (0..3 * 224 * 224).map(value).collect())
    };
    vec![crop(0), crop(1)]
}

fn answers(package: &Path) -> Vec<Vec<f32>> {
    let package = ModelPackage::open(package).unwrap();
    let mut models = infer::open(&package, &EngineOptions::default()).unwrap();
    let all = models.classifier.as_mut().unwrap().classes(&crops()).unwrap();
    all.into_iter().map(|p| p.0).collect()
}

#[test]
fn a_texture_classifier_becomes_a_tumour_filter() {
    let dir = tempdir().unwrap();
    let file = dir.path().join("impash.safetensors");
    Headed::drawn("impash", 224, 9, 5).unwrap().save(&file).unwrap();
    let out = dir.path().join("filter");
    let classes: Vec<String> = NINE.map(str::to_owned).into();
    let head = |classes: &[String]| Head::File {
        classes: classes.to_vec(),
        positive: "tumour_epithelium".into(),
    };
    let make = |head: &Head, out: &PathBuf| {
        let options = EngineOptions::default();
        classifier(&file, "impash", head, out, &draft("impash", 224, true), &options)
            .map_err(|e| e.to_string())
    };
    let made = make(&head(&classes), &out).unwrap();
    assert!(made.difference < 1e-2, "{made}");
    let card = made.card.classifier.as_ref().unwrap();
    assert_eq!((card.crop, card.input, card.classes.len()), (224, 224, 9));
    let p = answers(&out);
    assert!(p.iter().all(|p| (p.iter().sum::<f32>() - 1.0).abs() < 1e-3) && p[0] != p[1], "{p:?}");

    // Another number of classes than the file's, and an unknown class, leave nothing behind.
    let no = dir.path().join("no");
    let e = make(&head(&classes[1..]), &no).unwrap_err();
    assert!(e.contains("impash.safetensors") && e.contains("[9, 2048]"), "{e}");
    let wrong = Head::File { classes: classes.clone(), positive: "TUM".into() };
    let e = make(&wrong, &no).unwrap_err();
    assert!(e.contains("TUM") && !no.exists(), "{e}");
    let e = make(&head(&classes), &out).unwrap_err();
    assert!(e.contains("there is a package already"), "{e}");
}
