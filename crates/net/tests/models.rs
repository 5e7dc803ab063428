//! Forward and backward equal timm's on shared weights (issue: encoders).

use crate::common;
use crate::common::{Sample, fill, golden, signed};
use net::efficientnet::{EfficientNet, EfficientNetConfig, Variant};
use net::encoder::{self, EncoderConfig};
use net::unet::{EfficientUnet, UnetConfig};
use net::vit::{Pool, Size, Vit, VitConfig};
use serde::Deserialize;
use tch::{Device, nn::VarStore};

#[derive(Deserialize)]
struct Case {
    name: String,
    image: i64,
    depth: Option<i64>,
    pool: Pool,
    parameters: usize,
    features: Sample,
    embed: Sample,
    logits: Sample,
}

fn parameters(vs: &VarStore) -> usize {
    vs.trainable_variables().iter().map(tch::Tensor::numel).sum()
}

/// f32 on another order of operations.
const FORWARD: f64 = 1e-5;

#[test]
fn encoders_equal_timm() {
    for case in golden::<Vec<Case>>("encoders") {
        let vs = VarStore::new(Device::Cpu);
        let x = signed("input", &[2, 3, case.image, case.image], 1.5);
        let what = format!("{} ({:?})", case.name, case.pool);
        let size = Size::ALL.into_iter().find(|s| s.name() == case.name);
        let variant = Variant::ALL.into_iter().find(|v| v.name() == case.name);
        let (features, embed, logits) = match (size, variant) {
            (Some(size), None) => {
                let plain = VitConfig::new(size, 10);
                let depth = case.depth.unwrap_or(plain.depth);
                let config = VitConfig { depth, pool: case.pool, ..plain };
                let net = Vit::new(&vs.root(), &config).expect("valid settings");
                fill(&vs);
                tch::no_grad(|| {
                    (net.forward_features(&x, false), net.embed(&x, false), net.forward(&x, false))
                })
            }
            (None, Some(variant)) => {
                let net = EfficientNet::new(&vs.root(), &EfficientNetConfig::new(variant, 10))
                    .expect("valid settings");
                fill(&vs);
                tch::no_grad(|| {
                    (net.forward_features(&x, false), net.embed(&x, false), net.forward(&x, false))
                })
            }
            _ => panic!("{what}: no such model here"),
        };
        assert_eq!(parameters(&vs), case.parameters, "{what}: parameters");
        case.features.check(&format!("{what} features"), &features, FORWARD);
        case.embed.check(&format!("{what} embed"), &embed, FORWARD);
        case.logits.check(&format!("{what} logits"), &logits, FORWARD);
    }
}

#[test]
fn a_training_step_of_b0_equals_timm() {
    #[derive(Deserialize)]
    struct Step {
        logits: Sample,
        grads: std::collections::BTreeMap<String, Sample>,
        buffers: std::collections::BTreeMap<String, Sample>,
    }
    let golden: Step = golden("train_step");
    let vs = VarStore::new(Device::Cpu);
    let net =
        EfficientNet::new(&vs.root(), &EfficientNetConfig::new(Variant::B0, 10)).expect("valid");
    fill(&vs);
    let out = net.forward(&signed("input", &[2, 3, 128, 128], 1.5), true);
    (&out * signed("weights", &[2, 10], 1.0)).sum(tch::Kind::Float).backward();
    golden.logits.check("logits", &out, 2e-5);
    let all = vs.variables();
    for (name, want) in &golden.grads {
        // Rounded otherwise on other processors.
        want.check(name, &all[name].grad(), 5e-4);
    }
    for (name, want) in &golden.buffers {
        want.check(name, &all[name], 2e-5);
    }
}

#[test]
fn the_unet_equals_its_reference() {
    #[derive(Deserialize)]
    struct Golden {
        parameters: usize,
        logits: Sample,
    }
    let golden: Golden = golden("unet");
    let vs = VarStore::new(Device::Cpu);
    let net = EfficientUnet::new(&vs.root(), &UnetConfig::default()).expect("valid");
    fill(&vs);
    assert_eq!(parameters(&vs), golden.parameters);
    let x = signed("input", &[1, 3, 96, 128], 1.5);
    golden.logits.check("logits", &tch::no_grad(|| net.forward(&x, false)), FORWARD);
}

#[test]
fn every_encoder_of_the_table_has_the_width_it_states() {
    for entry in encoder::ENCODERS {
        // Large ones take gigabytes, and their shapes are checked against timm; published ones are
        // these shapes again.
        let small = entry.dim < 1024 || entry.name.starts_with("efficientnet");
        if !small || entry.published.is_some() {
            continue;
        }
        let vs = VarStore::new(Device::Cpu);
        let net = encoder::build(&vs.root(), &EncoderConfig::new(entry.name, 3)).expect("valid");
        assert_eq!(net.architecture(), entry.name);
        assert_eq!(net.dim(), entry.dim);
        let side = net.image().unwrap_or(64);
        let x = signed("x", &[2, 3, side, side], 1.0);
        assert_eq!(tch::no_grad(|| net.embed(&x, false)).size(), [2, entry.dim]);
        // Zero weights, constant bias.
        let logits = tch::no_grad(|| net.forward(&x, false));
        assert_eq!(f64::try_from(logits.abs().max()).expect("a scalar"), 0.0);
    }
}

#[test]
fn an_encoder_is_fed_as_its_row_states_unless_the_preset_does() {
    let read = |text: &str| serde_json::from_str::<EncoderConfig>(text).expect("a config");
    let kaiko = read(r#"{"name": "kaiko-vitb16", "classes": 2}"#);
    assert_eq!((kaiko.mean, kaiko.std, kaiko.image), ([0.5; 3], [0.5; 3], 224));
    let conch = read(r#"{"name": "conch_v1", "classes": 2}"#);
    assert_eq!((conch.image, conch.pool), (448, Pool::Attention));
    let plain = read(r#"{"name": "vit_base_patch16_224", "classes": 2}"#);
    assert_eq!(plain.mean, [0.485, 0.456, 0.406]);
    let own = read(r#"{"name": "kaiko-vitb16", "classes": 2, "mean": [0.485, 0.456, 0.406]}"#);
    assert_eq!((own.mean, own.std), ([0.485, 0.456, 0.406], [0.5; 3]));
    // What is written down is read back, and what was written before there was a word for it stays.
    let imagenet = EncoderConfig { std: plain.std, ..own.clone() };
    for config in [&kaiko, &conch, &plain, &own, &imagenet] {
        let text = serde_json::to_string(config).expect("JSON");
        assert_eq!(read(&text), *config);
        assert_eq!(text.contains("mean"), config.name != plain.name, "{text}");
    }
    let vs = VarStore::new(Device::Cpu);
    for (key, bad) in [
        ("model.mean", EncoderConfig { mean: [f32::NAN; 3], ..plain.clone() }),
        ("model.std", EncoderConfig { std: [0.2, 0.0, 0.2], ..plain }),
    ] {
        let why = encoder::build(&vs.root(), &bad).err().expect("refused").to_string();
        assert!(why.contains(&format!("`{key}`")), "{why}");
    }
}

#[test]
fn settings_out_of_range_are_named() {
    let vs = VarStore::new(Device::Cpu);
    let refusal =
        |c: &EncoderConfig| encoder::build(&vs.root(), c).err().expect("refused").to_string();
    assert!(refusal(&EncoderConfig::new("vit_giant", 2)).contains("vit_tiny_patch16_224"));
    let bad = EncoderConfig { image: 225, ..EncoderConfig::new("vit_tiny_patch16_224", 2) };
    assert!(refusal(&bad).contains("`image`: 225"));
    let bad = EncoderConfig { drop_path: 1.0, ..EncoderConfig::new("efficientnet_b0", 2) };
    assert!(refusal(&bad).contains("drop_path"));
    for decoder in [vec![], vec![8; 6]] {
        let bad = UnetConfig { decoder, ..UnetConfig::default() };
        assert!(EfficientUnet::new(&vs.root(), &bad).is_err());
    }
    let bad = UnetConfig { decoder: vec![256, 0, 64, 32, 16], ..UnetConfig::default() };
    assert!(EfficientUnet::new(&vs.root(), &bad).is_err());
    let stride = |output_stride, stages| {
        let config =
            UnetConfig { output_stride, decoder: vec![8; stages], ..UnetConfig::default() };
        EfficientUnet::new(&VarStore::new(Device::Cpu).root(), &config)
            .map(|n| n.config().coarseness())
    };
    assert!(stride(8, 2).is_err() && stride(16, 5).is_err());
    assert_eq!(
        (stride(16, 2).ok(), stride(16, 4).ok(), stride(32, 3).ok()),
        (Some(4), Some(1), Some(4))
    );
}

#[test]
fn stochastic_depth_keeps_the_mean_and_drops_whole_samples() {
    tch::manual_seed(5);
    let x = tch::Tensor::ones([4000, 3], tch::kind::FLOAT_CPU);
    let y = net::layer::drop_path(x.shallow_clone(), 0.25, true);
    let rows: Vec<f64> = common::to_vec(&y)
        .chunks(3)
        .map(|r| {
            assert!(
                r.iter().all(|v| *v == r[0]) && (r[0] == 0.0 || (r[0] - 4.0 / 3.0).abs() < 1e-6)
            );
            r[0]
        })
        .collect();
    let mean = rows.iter().sum::<f64>() / 4000.0;
    assert!((mean - 1.0).abs() < 0.05, "{mean}");
    assert_eq!(net::layer::drop_path(x.shallow_clone(), 0.25, false), x);
}
