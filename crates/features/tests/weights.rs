//! Packages from files of weights, without a training framework.

use encoders::EncoderError;
use encoders::encoder::EncoderConfig;
use encoders::onnx::outline;
use features::package::Package;
use features::weights::{Conversion, convert};
use features::{FeatureError, Frozen};
use infer::EngineOptions;
use infer::convert::{Draft, probes};
use std::path::{Path, PathBuf};

const NAME: &str = "vit_tiny_patch16_224";
const SIDE: usize = 32;

fn draft(half: bool) -> Draft {
    let (name, license) = ("drawn".into(), "none: seeded weights".into());
    Draft { name, license, image: SIDE, half, ..Draft::default() }
}

fn network() -> encoders::encoder::NetworkConfig {
    EncoderConfig { image: SIDE as i64, ..EncoderConfig::new(NAME, 0) }.network().unwrap()
}

fn drawn(dir: &Path) -> PathBuf {
    let path = dir.join("drawn.safetensors");
    testkit::weights::drawn(&path, &outline(&network()));
    path
}

fn one_thread() -> EngineOptions {
    EngineOptions { threads: 1, ..EngineOptions::default() }
}

#[test]
fn a_file_of_weights_becomes_a_package_that_engines_agree_on() {
    let dir = tempfile::tempdir().unwrap();
    let weights = drawn(dir.path());
    let made = |half: bool, most: Option<u64>, name: &str| -> (Package, Vec<f32>) {
        let out = dir.path().join(name);
        let conversion = Conversion::new(NAME);
        let conversion = Conversion { most: most.unwrap_or(conversion.most), ..conversion };
        let package = convert(&weights, conversion, &out, draft(half), &one_thread()).unwrap();
        let mut frozen = Frozen::open(&out, &one_thread()).unwrap();
        (package, frozen.network.features(&probes(SIDE)).unwrap())
    };
    let (whole, features) = made(false, None, "whole");
    let card = whole.card.encoder().unwrap();
    assert_eq!((card.width, card.input, &*card.pooling), (192, SIDE, "class token"));
    assert_eq!(card.source.sha256, features::package::digest(&weights).unwrap());
    let parity = card.parity.as_ref().unwrap();
    assert!(parity.engines.len() > 1, "{parity:?}");
    assert!(parity.engines.iter().all(|ran| !ran.engine.contains("libtorch")), "{parity:?}");

    // f16 is held against the same weights in f32, and stored in half of the bytes.
    let (half, rounded) = made(true, None, "half");
    let parity = half.card.encoder().unwrap().parity.as_ref().unwrap();
    let rounding = parity.rounding.unwrap();
    assert!(rounding > 0.0 && half.bytes < whole.bytes * 6 / 10, "{parity:?}");
    let off = features.iter().zip(&rounded).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(off > 0.0 && off < 0.05 * parity.largest, "{off}");

    // Several files give what one does.
    let (parts, again) = made(false, Some(10 << 20), "parts");
    assert!(parts.card.encoder().unwrap().rest.len() > 1);
    let off = features.iter().zip(&again).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(off < 1e-4 * parity.largest, "{off}");
}

#[test]
fn what_is_not_the_encoders_is_refused_and_nothing_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let (out, weights) = (dir.path().join("out"), drawn(dir.path()));
    let refused = |weights: &Path, name: &str, image: usize| {
        let draft = Draft { image, ..draft(false) };
        let e = convert(weights, Conversion::new(name), &out, draft, &one_thread()).unwrap_err();
        assert!(!out.exists(), "{e}");
        e
    };
    let e = refused(&weights, "vit_small_patch16_224", SIDE);
    let text = e.to_string();
    assert!(text.contains("drawn.safetensors") && text.contains("of another shape"), "{text}");
    let FeatureError::Weights(e) = e else { panic!("{e}") };
    assert!(matches!(*e, EncoderError::Weights { .. }));
    assert!(
        refused(&weights, "vit_minute", SIDE).to_string().contains("known: vit_tiny_patch16_224")
    );
    assert!(refused(&weights, NAME, 33).to_string().contains("not a multiple of 16"));
    let none = dir.path().join("none.pth");
    assert!(refused(&none, NAME, SIDE).to_string().contains("none.pth"));

    let mut cut = outline(&network());
    cut.remove("blocks.7.mlp.fc2.bias");
    testkit::weights::drawn(&weights, &cut);
    let text = refused(&weights, NAME, SIDE).to_string();
    assert!(text.contains("missing: blocks.7.mlp.fc2.bias"), "{text}");
    cut.insert("blocks.7.mlp.fc2.bias".into(), vec![192]);
    cut.insert("blocks.12.norm1.weight".into(), vec![192]);
    testkit::weights::drawn(&weights, &cut);
    let text = refused(&weights, NAME, SIDE).to_string();
    assert!(text.contains("unexpected: blocks.12.norm1.weight"), "{text}");

    // A package that is there stays.
    std::fs::create_dir(&out).unwrap();
    std::fs::write(out.join("card.toml"), "").unwrap();
    let e =
        convert(&weights, Conversion::new(NAME), &out, draft(false), &one_thread()).unwrap_err();
    assert!(matches!(e, FeatureError::Exists(_)), "{e}");
}
