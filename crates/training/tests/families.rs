//! Every family of networks can be trained, probed and handed on, not transformers of timm's plain kind alone.

use crate::protocol::{drawn, options, packaged};
use infer::{EngineChoice, EngineOptions};
use mitosis::{Classifier as _, RgbTile};
use net::encoder::EncoderConfig;
use pixels::geometry::centred;
use regions::task::{Task, TrainingSet};
use std::path::Path;
use train::port::TorchClassifier;
use train::preset::Preset as _;
use train::protocol::{self, CropsPreset, ProbePreset, fold_dir};
use train::run::{MODEL, RunOptions};

/// A row of each family, the transformers with the switches that plain ones lack (LayerScale, SwiGLU, registers,
/// attentional pooling), and a small side of its images.
const ROWS: [(&str, i64); 5] = [
    ("resnet50", 32),
    ("ctranspath", 32),
    ("gigapath-flash", 32),
    ("dinov2-vits14-reg4", 28),
    ("conch_v1", 32),
];

fn keys(name: &str, image: i64, more: &[&str]) -> Vec<String> {
    let own = [
        "task=\"folder\"".to_owned(),
        "positive=\"mf\"".to_owned(),
        format!("model.name=\"{name}\""),
        format!("model.image={image}"),
        format!("data.crop={image}"),
    ];
    own.into_iter().chain(more.iter().map(|s| (*s).to_owned())).collect()
}

fn one_step(name: &str, image: i64) -> CropsPreset {
    let file = testkit::workspace().join("presets/finetune-ami-br-paper-vit-base.toml");
    let short = [
        "init=\"scratch\"",
        "train.epochs=1",
        "train.warmup_epochs=0.0",
        "train.batch=14",
        "train.base_lr=0.02",
        "train.keep=\"last\"",
        "train.precision=\"f32\"",
    ];
    CropsPreset::load(&file, &keys(name, image, &short)).unwrap()
}

fn probe(name: &str, image: i64) -> ProbePreset {
    let file = testkit::workspace().join("presets/probe-ami-br-several-vit-base.toml");
    let mut p = ProbePreset::load(&file, &keys(name, image, &["augment=1"])).unwrap();
    p.probes.retain(|name, _| name == "logistic");
    p
}

/// The packaged classifier on the built-in engine and the run's on libtorch give a crop the same.
fn handed_on(run: &Path, out: &Path, tile: &RgbTile) {
    let options = EngineOptions { engine: EngineChoice::Rten, ..EngineOptions::default() };
    let mut models = infer::open(&packaged(run, false, out), &options).unwrap();
    let crop = std::slice::from_ref(tile);
    let have = models.classifier.as_mut().unwrap().classes(crop).unwrap();
    let weights = fold_dir(run, 0).join(MODEL);
    let want = TorchClassifier::open(&weights, "cpu").unwrap().classes(crop).unwrap();
    for (a, b) in have[0].0.iter().zip(&want[0].0) {
        assert!((a - b).abs() < 1e-4, "{}: {have:?} {want:?}", run.display());
    }
}

/// An operating point's scale goes into the last layer, whatever that is called.
fn scaled(weights: &Path, tile: &RgbTile) {
    let open = || TorchClassifier::open(weights, "cpu").unwrap();
    let crop = std::slice::from_ref(tile);
    let plain = f64::from(open().classes(crop).unwrap()[0].0[1]);
    let moved = open().scaled(1.5, -0.4).unwrap().classes(crop).unwrap()[0].0[1];
    let odds = 1.5 * (plain / (1.0 - plain)).ln() - 0.4;
    let want = 1.0 / (1.0 + (-odds).exp());
    assert!((f64::from(moved) - want).abs() < 1e-4, "{}: {moved} {want}", weights.display());
}

#[test]
fn every_family_is_trained_probed_and_packaged() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    drawn(&data, "mf", "mimicker");
    let set = TrainingSet::open(Task::Folder, &data).unwrap();
    for (name, image) in ROWS {
        let at = dir.path().join(name);
        let (p, run) = (one_step(name, image), at.join("run"));
        assert_eq!(p.model.pool, EncoderConfig::new(name, 2).pool, "{name}");
        protocol::finetune(&p, &set, 0, &options(&run)).unwrap();
        let weights = fold_dir(&run, 0).join(MODEL);
        let tile = centred(&set.images()[0], image as usize, image as usize);
        handed_on(&run, &at.join("package"), &tile);
        scaled(&weights, &tile);

        let probed = at.join("probed");
        let from = RunOptions { init: Some(weights), ..options(&probed) };
        let runs = protocol::probe(&probe(name, image), &set, Some(0), None, &from).unwrap();
        assert!(fold_dir(&runs[0].run, 0).join(MODEL).is_file(), "{name}: a probe is a classifier");
        std::fs::remove_dir_all(&at).unwrap();
    }
}
