//! What leaves an encoder's own weights alone: adapters of low rank, and probes of cached features.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::common::{drawn, options};
use mitosis::Classifier as _;
use net::checkpoint;
use net::encoder::{self, EncoderConfig};
use pixels::geometry::centred;
use pixels::input::{Normalisation, STD};
use regions::task::{Task, TestSet, TrainingSet};
use tch::{Device, Kind, Tensor, nn::VarStore};
use train::batch::normalised;
use train::port::TorchClassifier;
use train::preset::Preset as _;
use train::protocol::{self, About, CropsPreset, ProbePreset, fold_dir};
use train::run::{MODEL, RunOptions};

const VIT: &str = "vit_tiny_patch16_224";

/// Weights of a ViT-tiny at 32 px, and the same as tensors.
fn weights(path: &Path, seed: i64) -> BTreeMap<String, Tensor> {
    tch::manual_seed(seed);
    let vs = VarStore::new(Device::Cpu);
    let config = EncoderConfig { image: 32, ..EncoderConfig::new(VIT, 0) };
    encoder::build(&vs.root(), &config).unwrap();
    let all: BTreeMap<String, Tensor> = vs.variables().into_iter().collect();
    checkpoint::save_tensors(path, &all, BTreeMap::new()).unwrap();
    all
}

fn from(out: PathBuf, init: &Path) -> RunOptions {
    RunOptions { init: Some(init.into()), ..options(out, false, 0) }
}

/// Keys of a preset that learns from the drawn crops with a small transformer.
fn keys(more: &[&str]) -> Vec<String> {
    let all = [
        "task=\"folder\"",
        "positive=\"marked\"",
        "init=\"checkpoint\"",
        "model.name=\"vit_tiny_patch16_224\"",
        "model.image=32",
        "data.crop=32",
    ];
    all.iter().chain(more).map(|s| (*s).to_string()).collect()
}

fn file(name: &str) -> PathBuf {
    testkit::workspace().join("presets").join(name)
}

fn lora(more: &[&str]) -> CropsPreset {
    let short = [
        "train.epochs=2",
        "train.warmup_epochs=0.0",
        "train.batch=12",
        "train.precision=\"f32\"",
        "train.base_lr=0.2",
        "lora.rank=3",
        "model.mean=[0.5, 0.25, 0.75]",
    ];
    let all = keys(&[&short[..], more].concat());
    CropsPreset::load(&file("finetune-ami-br-lora-vit-base.toml"), &all).unwrap()
}

#[test]
fn adapters_are_trained_and_merged_into_a_plain_network() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    drawn(&data);
    let set = TrainingSet::open(Task::Folder, &data).unwrap();
    let init = dir.path().join("weights.safetensors");
    let before = weights(&init, 1);
    let p = lora(&[]);
    let whole = dir.path().join("whole");
    protocol::finetune(&p, &set, 0, &from(whole.clone(), &init)).unwrap();

    // The network handed on has the plain names; attention has moved, all else stayed.
    let after = checkpoint::read_tensors(&fold_dir(&whole, 0).join(MODEL)).unwrap().tensors;
    let moved: Vec<&String> = before.keys().filter(|n| after[*n] != before[*n]).collect();
    let adapted = |n: &String| n.ends_with("attn.qkv.weight") || n.ends_with("attn.proj.weight");
    assert_eq!(moved, before.keys().filter(|n| adapted(n)).collect::<Vec<_>>());
    let added: Vec<&String> = after.keys().filter(|n| !before.contains_key(*n)).collect();
    assert_eq!(added, ["head.bias", "head.weight"]);
    // What moved is of the rank asked for.
    let change = &after["blocks.3.attn.qkv.weight"] - &before["blocks.3.attn.qkv.weight"];
    let singular = change.svd(true, false).1;
    let at = |i: i64| singular.double_value(&[i]);
    assert!(at(2) > 1e-4 * at(0) && at(3) < 1e-5 * at(0), "{singular}");

    let text = fs::read_to_string(fold_dir(&whole, 0).join("run.json")).unwrap();
    let run: serde_json::Value = serde_json::from_str(&text).unwrap();
    let (width, rank, depth) = (192, 3, 12);
    let adapters = depth * rank * (width + 3 * width + width + width);
    assert_eq!(run["parameters"]["trained"], adapters + 2 * width + 2);
    let own: usize = before.values().map(Tensor::numel).sum();
    assert_eq!(run["parameters"]["total"], own + adapters + 2 * width + 2);

    // The normalisation that the preset states goes with the weights.
    let mut model = TorchClassifier::open(&fold_dir(&whole, 0).join(MODEL), "cpu").unwrap();
    let (mean, std) = ([0.5, 0.25, 0.75], STD);
    assert_eq!((model.spec.mean, model.spec.std), (mean, std));
    let tile = centred(&set.images()[0], 32, 32);
    let x = normalised(std::slice::from_ref(&tile), &Normalisation::new(mean, std), Device::Cpu);
    let vs = VarStore::new(Device::Cpu);
    let config: EncoderConfig = serde_json::from_value(model.spec.config.clone()).unwrap();
    let net = encoder::build(&vs.root(), &config).unwrap();
    checkpoint::load(&fold_dir(&whole, 0).join(MODEL), &vs, &model.spec).unwrap();
    let by_hand = tch::no_grad(|| net.forward(&x, false).softmax(-1, Kind::Double));
    let found = model.classes(&[tile]).unwrap();
    assert!((f64::from(found[0].0[1]) - by_hand.double_value(&[0, 1])).abs() < 1e-6, "{found:?}");

    let refused = |more: &[&str]| {
        let preset = file("finetune-ami-br-lora-vit-base.toml");
        CropsPreset::load(&preset, &keys(more)).unwrap_err().to_string()
    };
    assert!(refused(&["init=\"scratch\""]).contains("adapts the weights of a file"));
    assert!(refused(&["model.name=\"resnet50\""]).contains("no attention"));
    assert!(refused(&["lora.rank=0"]).contains("lora.rank"));
    assert!(refused(&["model.std=[0.5, 0.0, 0.5]"]).contains("model.std"));
}

fn several(more: &[&str]) -> ProbePreset {
    let short = [
        "probes.linear.batch=8",
        "probes.linear.epochs=15",
        "probes.linear.warmup_epochs=1.0",
        "probes.linear.base_lr=2000.0",
        "probes.knn.k=5",
        "probes.logistic.c=0.1",
    ];
    let all = keys(&[&short[..], more].concat());
    ProbePreset::load(&file("probe-ami-br-several-vit-base.toml"), &all).unwrap()
}

/// The parts of a cache with the time of their last change.
fn parts(cache: &Path) -> BTreeMap<PathBuf, SystemTime> {
    let folders = fs::read_dir(cache).unwrap().map(|f| f.unwrap().path());
    let files = folders.flat_map(|f| fs::read_dir(f).unwrap().map(|p| p.unwrap().path()));
    files
        .filter(|p| p.extension().is_some_and(|e| e == "safetensors"))
        .map(|p| (p.clone(), p.metadata().unwrap().modified().unwrap()))
        .collect()
}

/// The held-out items of fold 0.
fn rows(run: &Path) -> Vec<Vec<String>> {
    let text = fs::read_to_string(fold_dir(run, 0).join("predictions.csv")).unwrap();
    text.lines().skip(1).map(|l| l.split(',').map(String::from).collect()).collect()
}

#[test]
fn probes_share_features_that_are_computed_once() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    drawn(&data);
    let set = TrainingSet::open(Task::Folder, &data).unwrap();
    let init = dir.path().join("weights.safetensors");
    weights(&init, 1);
    let (out, shared) = (dir.path().join("run"), dir.path().join("shared"));
    let cache = Some(shared.as_path());
    let p = several(&[]);
    let runs = protocol::probe(&p, &set, Some(0), cache, &from(out.clone(), &init)).unwrap();
    assert!(runs.iter().all(|r| r.warnings.is_empty()), "{runs:?}");
    let runs: Vec<PathBuf> = runs.into_iter().map(|r| r.run).collect();
    assert_eq!(runs, ["knn", "linear", "logistic"].map(|n| out.join(n)));
    let first = parts(&shared);
    assert_eq!(first.len(), 4, "a part for each symmetric copy: {first:?}");
    for run in &runs {
        let right = rows(run).iter().filter(|r| r[4] == r[5]).count();
        assert!(right >= 11, "{}: {right} of 12", run.display());
    }

    // Another probe of the same features computes none; a damaged file is computed again.
    let damaged = first.keys().next().unwrap();
    let kept = fs::read(damaged).unwrap();
    fs::write(damaged, b"half a file").unwrap();
    let more = several(&["probes.knn.k=3", "augment=1"]);
    let other = dir.path().join("other");
    protocol::probe(&more, &set, Some(0), cache, &from(other, &init)).unwrap();
    let second = parts(&shared);
    assert_eq!(second.len(), 4);
    assert!(fs::read(damaged).unwrap() == kept, "the same bytes again");
    let renewed: Vec<_> = first.keys().filter(|p| first[*p] != second[*p]).collect();
    assert_eq!(renewed, [damaged]);

    // Other weights, another crop and another normalisation have features of their own; a run that was
    // made with others cannot be resumed.
    let changed = dir.path().join("changed.safetensors");
    weights(&changed, 2);
    let resumed = RunOptions { resume: true, ..from(out.clone(), &changed) };
    let refused = protocol::probe(&p, &set, Some(0), cache, &resumed).unwrap_err().to_string();
    assert!(refused.contains("other weights; give the same ones, or another folder"), "{refused}");
    let same = RunOptions { resume: true, ..from(out.clone(), &init) };
    protocol::probe(&p, &set, Some(0), cache, &same).unwrap();
    for (n, (more, init)) in [
        (vec![], &changed),
        (vec!["data.crop=30"], &init),
        (vec!["model.mean=[0.5, 0.5, 0.5]"], &init),
    ]
    .into_iter()
    .enumerate()
    {
        let mut p = several(&[vec!["augment=1"], more].concat());
        p.probes.retain(|name, _| name == "knn");
        let out = dir.path().join(format!("changed{n}"));
        protocol::probe(&p, &set, Some(0), cache, &from(out, init)).unwrap();
        assert_eq!(parts(&shared).len(), 5 + n);
    }

    // An encoder for each fold, as one that was pretrained without its slides: fold 0 has that of before.
    for k in 0..3 {
        weights(&dir.path().join(format!("w{k}.safetensors")), 1 + k);
    }
    let by_fold = dir.path().join("w{fold}.safetensors");
    let each = dir.path().join("each");
    let runs = protocol::probe(&p, &set, None, None, &from(each.clone(), &by_fold)).unwrap();
    assert_eq!(runs.len(), 3, "{runs:?}");
    assert_eq!(rows(&each.join("knn")), rows(&out.join("knn")));
    for k in 0..3 {
        assert!(fold_dir(&each.join("knn"), k).join("predictions.csv").is_file(), "{k}");
    }

    // A regression is a classifier, neighbours are not.
    let run = out.join("logistic");
    let mut model = TorchClassifier::open(&fold_dir(&run, 0).join(MODEL), "cpu").unwrap();
    for row in rows(&run) {
        let i = set.items().iter().position(|i| i.file == row[0]).unwrap();
        let p = &model.classes(&[centred(&set.images()[i], 32, 32)]).unwrap()[0];
        let written: f32 = row[6].parse().unwrap();
        assert!((p.0[0] - written).abs() < 1e-4, "{row:?}: {p:?}");
    }
    let test = TestSet::open(Task::Folder, &data).unwrap();
    let about = About::read(&out.join("knn")).unwrap();
    assert_eq!((about.probe.as_deref(), about.symmetries), (Some("knn"), 1));
    let none = protocol::test(&out.join("knn"), &test, "cpu").unwrap_err().to_string();
    assert!(none.contains("hand on no classifier"), "{none}");
}

#[test]
fn probes_that_cannot_be_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    drawn(&data);
    let set = TrainingSet::open(Task::Folder, &data).unwrap();
    let init = dir.path().join("weights.safetensors");
    weights(&init, 1);
    let many = several(&["probes.knn.k=500"]);
    let out = dir.path().join("run");
    let why = protocol::probe(&many, &set, None, None, &from(out.clone(), &init)).unwrap_err();
    assert!(why.to_string().contains("probes.knn.k"), "{why}");
    assert!(!out.join("knn").exists() && !out.join("features").exists());

    let refused = |name: &str, more: &[&str]| {
        ProbePreset::load(&file(name), &keys(more)).unwrap_err().to_string()
    };
    let all = "probe-ami-br-several-vit-base.toml";
    for (more, word) in [
        ("augment=3", "augment"),
        ("average=2", "average"),
        ("probes.knn.temperature=-1.0", "probes.knn.temperature"),
        ("probes.logistic.c=0.0", "probes.logistic.c"),
        ("probes.linear.epochs=0", "probes.linear.epochs"),
        ("probes.fold-1.kind=\"knn\"", "probes"),
        ("probes.knn.neighbours=3", "neighbours"),
        ("symmetries=4", "symmetries"),
    ] {
        let why = refused(all, &[more]);
        assert!(why.contains(word), "{more}: {why}");
    }
    let both = refused("probe-ami-br-vit-base.toml", &["probes.k.kind=\"knn\"", "probes.k.k=3"]);
    assert!(both.contains("call it `[probes.linear]`"), "{both}");
    let named = fs::read_to_string(file("probe-ami-br-vit-base.toml")).unwrap();
    let named = named.replace("[train]", "[probes.linear]\nkind = \"linear\"");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("named.toml");
    fs::write(&path, named).unwrap();
    ProbePreset::load(&path, &keys(&["probes.k.kind=\"knn\"", "probes.k.k=3"])).unwrap();
}
