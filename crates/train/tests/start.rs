//! Starting weights of a run: taken whole, or refused with the list and nothing written.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use image::{Rgb, RgbImage};
use net::checkpoint;
use net::encoder::{self, EncoderConfig};
use regions::task::{Task, TrainingSet};
use tch::{Device, Tensor, nn::VarStore};
use train::embed::Embedder;
use train::preset::Preset as _;
use train::protocol::{self, CropsPreset, ProbePreset, fold_dir};
use train::run::{MODEL, RANDOM, RunOptions};

const VIT: &str = "vit_tiny_patch16_224";

fn drawn(dir: &Path) -> TrainingSet {
    for (c, class) in ["mf", "mimicker"].iter().enumerate() {
        for s in 0..3_u8 {
            let folder = dir.join(class).join(format!("slide{s}"));
            fs::create_dir_all(&folder).unwrap();
            for k in 0..2_u8 {
                let colour = Rgb([40 + 90 * c as u8, 30 + s, 60 + k]);
                RgbImage::from_pixel(32, 32, colour).save(folder.join(format!("{k}.png"))).unwrap();
            }
        }
    }
    TrainingSet::open(Task::Folder, dir).unwrap()
}

fn keys(more: &[&str]) -> Vec<String> {
    let all = ["task=\"folder\"", "positive=\"mf\"", "init=\"checkpoint\"", "data.crop=32"];
    let model = ["model.name=\"vit_tiny_patch16_224\"", "model.classes=2", "model.image=32"];
    let all = all.iter().chain(&model).chain(more);
    all.map(|s| (*s).to_string()).collect()
}

fn file(name: &str) -> PathBuf {
    testkit::workspace().join("presets").join(name)
}

fn finetune() -> CropsPreset {
    let more = ["train.epochs=1", "train.warmup_epochs=0.0", "train.batch=4", "symmetries=1"];
    let more = [&more[..], &["train.precision=\"f32\""]].concat();
    CropsPreset::load(&file("finetune-ami-br-vit-tiny.toml"), &keys(&more)).unwrap()
}

fn options(out: &Path, init: &Path, allow_partial: bool) -> RunOptions {
    RunOptions {
        out: out.to_path_buf(),
        resume: false,
        device: "cpu".into(),
        init: Some(init.to_path_buf()),
        allow_partial,
        stop_after: 0,
        reporter: Default::default(),
    }
}

/// An encoder of these classes as a file of others, changed by `change`.
fn weights(path: &Path, classes: i64, change: impl FnOnce(&mut BTreeMap<String, Tensor>)) {
    tch::manual_seed(3);
    let vs = VarStore::new(Device::Cpu);
    let config = EncoderConfig { image: 32, ..EncoderConfig::new(VIT, classes) };
    encoder::build(&vs.root(), &config).unwrap();
    let mut all: BTreeMap<String, Tensor> = vs.variables().into_iter().collect();
    change(&mut all);
    checkpoint::save_tensors(path, &all, BTreeMap::new()).unwrap();
}

/// The notes on a fold, by its folder.
fn notes(fold: &Path) -> String {
    protocol::read_fold_notes(fold).unwrap().join("\n")
}

#[test]
fn weights_that_saw_what_a_fold_holds_out_are_noted_by_fine_tuning_and_probing() {
    let dir = tempfile::tempdir().unwrap();
    let set = drawn(&dir.path().join("data"));
    let whole = dir.path().join("whole.safetensors");
    weights(&whole, 1000, |_| {});
    let (p, first) = (finetune(), dir.path().join("first"));
    protocol::finetune(&p, &set, 0, &options(&first, &whole, false)).unwrap();
    assert_eq!(notes(&fold_dir(&first, 0)), "", "weights of others list nothing");
    let labelled = fold_dir(&first, 0).join(MODEL);
    let held = checkpoint::read_trained_on(&labelled).unwrap().unwrap().slides;
    assert_eq!(held.len(), 2);

    // The same encoder as a pretraining without labels leaves it.
    let (unlabelled, old) =
        (dir.path().join("pre.safetensors"), dir.path().join("old.safetensors"));
    let file = checkpoint::read_tensors(&labelled).unwrap();
    let (tensors, spec) = (file.tensors, file.spec.unwrap());
    let pretrained = checkpoint::Spec {
        trained_on: Some(Default::default()),
        pretrained_on: spec.trained_on.clone(),
        ..spec.clone()
    };
    checkpoint::save_described(&unlabelled, &tensors, &pretrained).unwrap();
    let unknown = checkpoint::Spec { trained_on: None, ..spec };
    checkpoint::save_described(&old, &tensors, &unknown).unwrap();

    let more = [
        "model.pool=\"mean\"",
        "augment=1",
        "average=1",
        "probes.near.kind=\"knn\"",
        "probes.near.k=1",
    ];
    let probe = ProbePreset::load(&file_of_probes(dir.path()), &keys(&more)).unwrap();
    for (init, words) in [
        (&labelled, "were trained on slides that fold"),
        (&unlabelled, "were pretrained, without labels, on slides that fold"),
        (&old, "do not list the slides they were trained on"),
    ] {
        let out = init.with_extension("run");
        let options = |name: &str| options(&out.join(name), init, false);
        for k in 0..3 {
            protocol::finetune(&p, &set, k, &options("fine")).unwrap();
        }
        protocol::probe(&probe, &set, None, None, &options("probe")).unwrap();
        for k in 0..3 {
            let [fine, near] =
                ["fine", "probe/near"].map(|run| notes(&fold_dir(&out.join(run), k)));
            assert_eq!(fine, near);
            assert_eq!(fine.contains(words), k > 0 || init == &old, "fold {k}: {fine}");
            let run = fs::read_to_string(fold_dir(&out.join("fine"), k).join("run.json")).unwrap();
            assert_eq!(run.contains(words), !fine.is_empty(), "{run}");
        }
        let spec = checkpoint::read_spec(&fold_dir(&out.join("fine"), 1).join(MODEL)).unwrap();
        assert_eq!(spec.pretrained_on.is_some(), init == &unlabelled, "handed on");
    }
}

/// A preset of a probe without `[train]`, for `[probes]`.
fn file_of_probes(dir: &Path) -> PathBuf {
    let text = fs::read_to_string(file("probe-ami-br-vit-tiny.toml")).unwrap();
    let mut table: toml::Table = text.parse().unwrap();
    table.remove("train");
    let path = dir.join("probes.toml");
    fs::write(&path, table.to_string()).unwrap();
    path
}

#[test]
fn a_file_that_fits_in_part_is_refused_by_every_loop_unless_a_part_is_allowed() {
    let dir = tempfile::tempdir().unwrap();
    let set = drawn(&dir.path().join("data"));
    let whole = dir.path().join("whole.safetensors");
    weights(&whole, 1000, |_| {});
    let part = dir.path().join("part.safetensors");
    weights(&part, 0, |all| {
        let t = all.remove("blocks.4.mlp.fc1.bias").unwrap();
        all.insert("blocks.4.mlp.gate.bias".into(), t);
    });
    let names_what_is_missing = |e: train::TrainError| {
        let e = e.to_string();
        let listed = e.contains("missing: blocks.4.mlp.fc1.bias")
            && e.contains("unexpected: blocks.4.mlp.gate.bias");
        assert!(listed, "{e}");
    };
    let p = finetune();
    let out = dir.path().join("run");
    names_what_is_missing(
        protocol::finetune(&p, &set, 0, &options(&out, &part, false)).unwrap_err(),
    );
    assert!(!fold_dir(&out, 0).join("run.json").exists());
    let more =
        ["train.epochs=1", "train.warmup_epochs=0.0", "train.batch=4", "augment=1", "average=1"];
    let probe = ProbePreset::load(&file("probe-ami-br-vit-tiny.toml"), &keys(&more)).unwrap();
    let probed = dir.path().join("probe");
    names_what_is_missing(
        protocol::probe(&probe, &set, Some(0), None, &options(&probed, &part, false)).unwrap_err(),
    );
    names_what_is_missing(
        Embedder::open(&part, Some(VIT), 32, false, "cpu").map(|_| ()).unwrap_err(),
    );

    // Allowed: run and model list what stayed random.
    protocol::finetune(&p, &set, 0, &options(&out, &part, true)).unwrap();
    let name = "blocks.4.mlp.fc1.bias";
    let run = fs::read_to_string(fold_dir(&out, 0).join("run.json")).unwrap();
    let run: serde_json::Value = serde_json::from_str(&run).unwrap();
    assert_eq!(run[RANDOM], serde_json::json!([name]));
    let spec = checkpoint::read_spec(&fold_dir(&out, 0).join(MODEL)).unwrap();
    assert_eq!(spec.notes[RANDOM], serde_json::json!([name]));
    protocol::probe(&probe, &set, Some(0), None, &options(&probed, &part, true)).unwrap();
    let spec = checkpoint::read_spec(&fold_dir(&probed, 0).join(MODEL)).unwrap();
    assert_eq!(spec.notes[RANDOM], serde_json::json!([name]));
    let embedder = Embedder::open(&part, Some(VIT), 32, true, "cpu").unwrap();
    assert_eq!(embedder.random(), [name]);

    // Complete: nothing to report, whatever the head.
    let good = dir.path().join("good");
    protocol::finetune(&p, &set, 0, &options(&good, &whole, false)).unwrap();
    let run = fs::read_to_string(fold_dir(&good, 0).join("run.json")).unwrap();
    assert!(!run.contains(RANDOM), "{run}");
    assert!(Embedder::open(&whole, Some(VIT), 32, false, "cpu").unwrap().random().is_empty());
}
