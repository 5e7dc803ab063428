//! Weights of others: taken whole or refused with the list.

use std::collections::BTreeMap;
use std::path::Path;

use crate::common::{self, fill, to_vec};
use encoders::EncoderError;
use net::encoder::{self, Encoder, EncoderConfig};
use net::foreign::{self, Allowed, Loaded};
use net::{NetError, checkpoint, read_weights};
use tch::{Device, Kind, Tensor, nn::VarStore};

type Tensors = BTreeMap<String, Tensor>;

fn model(name: &str, classes: i64) -> (VarStore, Box<dyn Encoder>) {
    let vs = VarStore::new(Device::Cpu);
    let config = EncoderConfig { image: 32, ..EncoderConfig::new(name, classes) };
    let net = encoder::build(&vs.root(), &config).expect("valid");
    (vs, net)
}

/// All tensors of a filled model, as a file of others would hold them.
fn file(name: &str, classes: i64) -> Tensors {
    let (vs, _) = model(name, classes);
    fill(&vs);
    vs.variables().into_iter().collect()
}

const VIT: &str = "vit_tiny_patch16_224";

fn load_at(path: &str, tensors: &Tensors, name: &str, partial: bool) -> Result<Loaded, NetError> {
    let (vs, net) = model(name, 2);
    let before: BTreeMap<_, _> =
        vs.variables().iter().map(|(n, t)| (n.clone(), to_vec(t))).collect();
    let free = |n: &str| n.starts_with(net.head());
    let allowed = Allowed { free: &free, partial };
    let found = foreign::load(
        Path::new(path),
        &common::arrays(tensors),
        &vs,
        |n| Some(n.to_string()),
        &allowed,
    );
    if found.is_err() {
        let same = vs.variables().iter().all(|(n, t)| to_vec(t) == before[n]);
        assert!(same, "a refused file changed the model");
    }
    found
}

fn load(tensors: &Tensors, partial: bool) -> Result<Loaded, NetError> {
    load_at("weights.safetensors", tensors, VIT, partial)
}

fn refused(tensors: &Tensors, words: &[&str]) {
    let why = load(tensors, false).expect_err("refused").to_string();
    for word in words {
        assert!(why.contains(word), "`{word}` not in: {why}");
    }
}

#[test]
fn a_whole_file_is_taken_whatever_its_head() {
    for classes in [0, 2, 1000] {
        let found = load(&file(VIT, classes), false).expect("fits");
        assert!(found.random.is_empty());
        assert_eq!(found.report.taken.len(), 150 + usize::from(classes == 2) * 2, "{classes}");
    }
    // timm counts batches in batch norms; nothing here does.
    let mut b0 = file("efficientnet_b0", 1000);
    b0.insert("bn1.num_batches_tracked".into(), Tensor::from_slice(&[7i64]));
    load_at("b0.pth", &b0, "efficientnet_b0", false).expect("fits");
}

#[test]
fn one_tensor_dropped_renamed_or_reshaped_is_named() {
    let whole = || file(VIT, 2);
    let mut dropped = whole();
    dropped.remove("blocks.3.norm1.weight");
    refused(&dropped, &["weights.safetensors", "missing: blocks.3.norm1.weight"]);

    let mut renamed = whole();
    let t = renamed.remove("blocks.3.norm1.weight").expect("there");
    renamed.insert("blocks.3.ln_1.weight".into(), t);
    refused(&renamed, &["missing: blocks.3.norm1.weight", "unexpected: blocks.3.ln_1.weight"]);

    // No table of a square image, so nothing that could be resized.
    let mut reshaped = whole();
    let wide = Tensor::zeros([1, 196, 192], tch::kind::FLOAT_CPU);
    reshaped.insert("pos_embed".into(), wide);
    refused(&reshaped, &["of another shape (file, model): pos_embed: [1, 196, 192], [1, 5, 192]"]);

    let mut more = whole();
    more.insert("mask_token".into(), Tensor::zeros([1, 1, 192], tch::kind::FLOAT_CPU));
    refused(&more, &["unexpected: mask_token"]);

    // Allowed in part: what stays as drawn comes back by name, the head does not count.
    assert_eq!(load(&dropped, true).expect("in part").random, ["blocks.3.norm1.weight"]);
    assert_eq!(load(&renamed, true).expect("in part").random, ["blocks.3.norm1.weight"]);
    assert_eq!(load(&reshaped, true).expect("in part").random, ["pos_embed"]);
    assert!(load(&more, true).expect("in part").random.is_empty());
    let none: Tensors = [("a".to_string(), Tensor::zeros([2], tch::kind::FLOAT_CPU))].into();
    let why = load(&none, true).expect_err("refused").to_string();
    assert!(why.contains("none of its tensors fits"), "{why}");
    assert!(matches!(
        load(&none, false),
        Err(NetError::Encoder(EncoderError::Weights { fits_in_part: false, .. }))
    ));
    assert!(matches!(
        load(&dropped, false),
        Err(NetError::Encoder(EncoderError::Weights { fits_in_part: true, .. }))
    ));
}

#[test]
fn a_list_of_hundreds_states_how_many_more() {
    let why = load(&file("efficientnet_b0", 2), false).expect_err("refused").to_string();
    let lines = why.lines().count();
    assert!(lines == 42 && why.contains("... and "), "{lines}: {why}");
}

#[test]
fn other_architectures_are_refused_by_name_even_in_part() {
    let block = |name: &str| format!("blocks.0.{name}");
    let small = || Tensor::zeros([192], tch::kind::FLOAT_CPU);
    for (name, word) in [
        (block("ls1.gamma"), "LayerScale"),
        ("reg_token".to_string(), "register tokens"),
        ("norm_pre.weight".to_string(), "a norm before the blocks"),
        ("attn_pool.query".to_string(), "attentional pooling"),
        (block("mlp.norm.weight"), "SwiGLU"),
        (block("attn.q_norm.weight"), "normalised queries and keys"),
        ("layers.0.blocks.0.attn.relative_position_bias_table".into(), "Swin"),
        ("layer1.0.conv1.weight".into(), "ResNet"),
    ] {
        let mut tensors = file(VIT, 2);
        tensors.insert(name.clone(), small());
        for partial in [false, true] {
            let why = load(&tensors, partial).expect_err(&name).to_string();
            assert!(why.contains(word) && why.contains("which the model has not"), "{name}: {why}");
        }
    }
    // timm's packed SwiGLU has the plain names; its shapes show.
    let mut packed = file(VIT, 2);
    for i in 0..12 {
        packed.insert(
            format!("blocks.{i}.mlp.fc1.weight"),
            Tensor::zeros([1536, 192], tch::kind::FLOAT_CPU),
        );
        packed.insert(
            format!("blocks.{i}.mlp.fc1.bias"),
            Tensor::zeros([1536], tch::kind::FLOAT_CPU),
        );
    }
    refused(&packed, &["SwiGLU", "blocks.0.mlp.fc1.weight: [1536, 192], [768, 192]"]);
    // Same names and shapes as timm's own, another network: only the path can show.
    let b0 = file("efficientnet_b0", 1000);
    let tf =
        load_at("tf_efficientnet_b0.ns_jft_in1k/model.safetensors", &b0, "efficientnet_b0", true);
    assert!(tf.expect_err("refused").to_string().contains("TensorFlow"));
}

#[test]
fn f16_is_converted_and_anything_else_but_f32_refused() {
    let as_kind =
        |kind| -> Tensors { file(VIT, 2).into_iter().map(|(n, t)| (n, t.to_kind(kind))).collect() };
    let tensors = as_kind(Kind::Half);
    let (vs, _) = model(VIT, 2);
    let allowed = Allowed { free: &|_| false, partial: false };
    foreign::load(
        Path::new("w"),
        &common::arrays(&tensors),
        &vs,
        |n| Some(n.to_string()),
        &allowed,
    )
    .expect("fits");
    for (name, t) in vs.variables() {
        assert_eq!(t.kind(), Kind::Float);
        assert_eq!(to_vec(&t), to_vec(&tensors[&name].to_kind(Kind::Float)), "{name}");
    }
    for (kind, word) in [(Kind::Double, "Double"), (Kind::BFloat16, "BFloat16")] {
        refused(&as_kind(kind), &[&format!("{word}, not f32 or f16; save it as f32")]);
        load(&as_kind(kind), true).expect_err("refused in part, too");
    }
    load(&as_kind(Kind::Float), false).expect("saved as f32");
    let mut whole_numbers = file(VIT, 2);
    let t = whole_numbers["norm.weight"].to_kind(Kind::Int64);
    whole_numbers.insert("norm.weight".into(), t);
    refused(&whole_numbers, &["norm.weight: Int64, not floating point"]);
}

#[test]
fn values_that_are_not_numbers_are_refused_even_in_part() {
    for bad in [f64::NAN, f64::INFINITY] {
        let mut tensors = file(VIT, 2);
        let t = tensors["blocks.7.attn.proj.bias"].copy();
        let _ = t.get(3).fill_(bad);
        tensors.insert("blocks.7.attn.proj.bias".into(), t);
        refused(&tensors, &["blocks.7.attn.proj.bias: not finite"]);
        load(&tensors, true).expect_err("refused");
    }
}

#[test]
fn a_file_cut_short_is_refused() {
    let dir = tempfile::tempdir().expect("folder");
    let path = dir.path().join("w.safetensors");
    let all = file(VIT, 0);
    checkpoint::save_tensors(&path, &all, BTreeMap::new()).expect("saved");
    assert_eq!(read_weights(&path, None).expect("whole").len(), all.len());
    let whole = std::fs::read(&path).expect("bytes");
    for part in [1, 9, whole.len() / 3, whole.len() - 1] {
        std::fs::write(&path, &whole[..part]).expect("written");
        let why = read_weights(&path, None).expect_err("refused").to_string();
        assert!(why.contains("w.safetensors"), "{why}");
    }
}

#[test]
fn a_pickle_that_would_run_code_is_refused() {
    let dir = tempfile::tempdir().expect("folder");
    let marker = dir.path().join("ran");
    for (module, call) in [("posix", "system"), ("builtins", "eval"), ("subprocess", "Popen")] {
        let path = dir.path().join("code.pth");
        // The legacy file's magic number, protocol and facts, then `call("touch ...")`.
        let mut bytes = vec![0x80, 2, 0x8a, 10];
        bytes.extend(0x1950_a86a_20f9_469c_fc6c_u128.to_le_bytes()[..10].iter());
        bytes.extend(b".\x80\x02M\xe9\x03.\x80\x02}.\x80\x02c");
        bytes.extend(format!("{module}\n{call}\n").bytes());
        let command = format!("touch {}", marker.display());
        bytes.push(b'X');
        bytes.extend((command.len() as u32).to_le_bytes());
        bytes.extend(command.bytes());
        bytes.extend(b"\x85R.");
        std::fs::write(&path, bytes).expect("written");
        let why = read_weights(&path, None).expect_err("refused").to_string();
        assert!(why.contains(&format!("asks to run `{module}.{call}`")), "{why}");
    }
    assert!(!marker.exists());
}
