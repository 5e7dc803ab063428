//! Checkpoints: exact round trip, refusals with reasons, foreign weights with a report.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::common::{fill, to_vec};
use net::checkpoint::{self, Spec};
use net::encoder::{self, EncoderConfig};
use net::unet::{EfficientUnet, UnetConfig};
use tch::{Device, Kind, Tensor, nn::VarStore};

fn tiny(classes: i64) -> (VarStore, EncoderConfig) {
    let vs = VarStore::new(Device::Cpu);
    let config = EncoderConfig::new("vit_tiny_patch16_224", classes);
    encoder::build(&vs.root(), &config).expect("valid");
    fill(&vs);
    (vs, config)
}

fn spec(config: &EncoderConfig) -> Spec {
    let mut spec = Spec::new(&config.name, config, 224).expect("JSON");
    spec.classes = (0..config.classes).map(|i| format!("c{i}")).collect();
    spec
}

#[test]
fn a_model_comes_back_exactly() {
    let dir = tempfile::tempdir().expect("folder");
    let path = dir.path().join("best.safetensors");
    let (vs, config) = tiny(2);
    checkpoint::save(&path, &vs, &spec(&config)).expect("saved");
    let back = VarStore::new(Device::Cpu);
    encoder::build(&back.root(), &config).expect("valid");
    assert_eq!(checkpoint::load(&path, &back, &spec(&config)).expect("fits"), spec(&config));
    for (name, t) in vs.variables() {
        assert_eq!(to_vec(&t), to_vec(&back.variables()[&name]), "{name}");
    }
    assert_eq!(checkpoint::read_spec(&path).expect("described").architecture, config.name);
    // Nothing but the file itself stays behind.
    assert_eq!(std::fs::read_dir(dir.path()).expect("folder").count(), 1);
}

#[test]
fn several_trainings_of_one_network_are_loaded_as_the_mean_of_their_weights() {
    let dir = tempfile::tempdir().expect("folder");
    let (vs, config) = tiny(2);
    let good = spec(&config);
    let first = to_vec(&vs.variables()["pos_embed"]);
    let files: Vec<_> =
        [1.0, 3.0, -1.0].map(|f| (f, dir.path().join(format!("{f}.safetensors")))).into();
    for (factor, path) in &files {
        let times: BTreeMap<String, Tensor> =
            vs.variables().into_iter().map(|(n, t)| (n, t.detach() * *factor)).collect();
        checkpoint::save_described(path, &times, &good).expect("saved");
    }
    let paths: Vec<_> = files.iter().map(|(_, p)| p).collect();
    let mean_of = |first: &Path, others: &[&PathBuf]| {
        let back = VarStore::new(Device::Cpu);
        encoder::build(&back.root(), &config).expect("valid");
        checkpoint::load_mean(first, others, &back, &good).map(|_| back)
    };
    for (others, factor) in [(0, 1.0), (1, 2.0), (2, 1.0)] {
        let back = mean_of(paths[0], &paths[1..=others]).expect("of one network");
        for (a, b) in first.iter().zip(to_vec(&back.variables()["pos_embed"])) {
            assert!((a * factor - b).abs() <= 1e-6 * a.abs(), "{a} times {factor}, not {b}");
        }
    }
    let other = dir.path().join("other.safetensors");
    checkpoint::save(&other, &vs, &Spec { mpp: 0.5, ..good.clone() }).expect("saved");
    let why = mean_of(paths[0], &[&other]).map(|_| ()).expect_err("refused").to_string();
    assert!(why.contains("other.safetensors") && why.contains("um/px is 0.5"), "{why}");
}

#[test]
fn a_checkpoint_for_something_else_is_refused_and_changes_nothing() {
    let dir = tempfile::tempdir().expect("folder");
    let path = dir.path().join("best.safetensors");
    let (vs, config) = tiny(2);
    let good = spec(&config);
    let refuse = |saved: &Spec, words: &[&str]| {
        checkpoint::save(&path, &vs, saved).expect("saved");
        let target = VarStore::new(Device::Cpu);
        encoder::build(&target.root(), &config).expect("valid");
        let before = to_vec(&target.variables()["pos_embed"]);
        let why = checkpoint::load(&path, &target, &good).expect_err("refused").to_string();
        for word in words {
            assert!(why.contains(word), "`{word}` not in: {why}");
        }
        assert_eq!(before, to_vec(&target.variables()["pos_embed"]));
    };
    refuse(&Spec { mpp: 0.5, ..good.clone() }, &["um/px is 0.5, expected 0.25"]);
    refuse(&Spec { schema: 99, ..good.clone() }, &["schema is 99"]);
    refuse(&Spec { mean: [0.5; 3], input: 96, ..good.clone() }, &["mean", "input is 96"]);
    // Same names and shapes, another meaning; and a setting of training alone.
    let with = |key: &str, value: serde_json::Value| {
        let mut spec = good.clone();
        spec.config[key] = value;
        spec
    };
    refuse(&with("pool", "mean".into()), &["config.pool is \"mean\", expected \"cls\""]);
    checkpoint::save(&path, &vs, &with("drop_path", 0.3.into())).expect("saved");
    checkpoint::load(&path, &vs, &good).expect("the network is the same");
    let (other, _) = tiny(3);
    checkpoint::save(&path, &other, &good).expect("saved");
    let why = checkpoint::load(&path, &vs, &good).expect_err("refused").to_string();
    assert!(why.contains("head.weight: [3, 192], [2, 192]"), "{why}");
}

#[test]
fn broken_files_are_errors_with_the_path() {
    let dir = tempfile::tempdir().expect("folder");
    let path = dir.path().join("x.safetensors");
    let refusal = || checkpoint::read_tensors(&path).expect_err("refused").to_string();
    assert!(refusal().contains("x.safetensors"));
    let (vs, config) = tiny(2);
    checkpoint::save(&path, &vs, &spec(&config)).expect("saved");
    let whole = std::fs::read(&path).expect("bytes");
    for cut in [0, 4, 100, whole.len() / 2, whole.len() - 1] {
        std::fs::write(&path, &whole[..cut]).expect("written");
        assert!(refusal().contains("no readable safetensors"), "cut at {cut}");
    }
    let mut corrupt = whole.clone();
    corrupt[0] ^= 0xff;
    std::fs::write(&path, &corrupt).expect("written");
    refusal();
}

#[test]
fn every_kind_of_tensor_comes_back() {
    let dir = tempfile::tempdir().expect("folder");
    let path = dir.path().join("k.safetensors");
    let base = Tensor::from_slice(&[0.0f64, 1.0, 2.5, -3.0]);
    let kinds =
        [Kind::Float, Kind::Double, Kind::Half, Kind::BFloat16, Kind::Int64, Kind::Int, Kind::Bool];
    let tensors: BTreeMap<_, _> =
        kinds.iter().map(|k| (format!("{k:?}"), base.to_kind(*k).reshape([2, 2]))).collect();
    let meta = BTreeMap::from([("epoch".to_string(), "3".to_string())]);
    checkpoint::save_tensors(&path, &tensors, meta.clone()).expect("saved");
    let back = checkpoint::read_tensors(&path).expect("read");
    assert_eq!((back.metadata, back.spec), (meta, None));
    for (name, t) in tensors {
        assert_eq!(
            (back.tensors[&name].kind(), to_vec(&back.tensors[&name])),
            (t.kind(), to_vec(&t))
        );
    }
}

#[test]
fn an_encoder_goes_into_a_unet_with_a_report() {
    let source = VarStore::new(Device::Cpu);
    encoder::build(&source.root(), &EncoderConfig::new("efficientnet_b0", 7)).expect("valid");
    fill(&source);
    let tensors: BTreeMap<_, _> = source.variables().into_iter().collect();
    let vs = VarStore::new(Device::Cpu);
    let net = EfficientUnet::new(&vs.root(), &UnetConfig::default()).expect("valid");
    let report = checkpoint::load_matching(&tensors, &vs, |n| Some(format!("encoder.{n}")));
    let head = ["bn2.", "classifier.", "conv_head."];
    assert!(report.unexpected.iter().all(|n| head.iter().any(|h| n.starts_with(h))));
    assert_eq!(report.unexpected.len(), 7);
    assert!(report.missing.iter().all(|n| !n.starts_with("encoder.")));
    assert_eq!(report.taken.len() + 7, tensors.len());
    let name = "encoder.blocks.3.1.conv_dw.weight";
    assert_eq!(to_vec(&vs.variables()[name]), to_vec(&tensors["blocks.3.1.conv_dw.weight"]));
    net.encoder.open_gates(3.0);
    let bias = &vs.variables()["encoder.blocks.0.0.se.conv_expand.bias"];
    assert!(to_vec(bias).iter().all(|b| *b == 3.0));
}
