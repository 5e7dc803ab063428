//! Classifiers from files of weights, without a training framework.

use base::preset::Preset as _;
use encoders::encoder::EncoderConfig;
use encoders::onnx::{self, TEXT, VECTOR, outline};
use encoders::text::TextTower;
use encoders::weights::Arrays;
use encoders::{Array, EncoderError};
use features::headed::{Draft, Head, Headed, classifier};
use features::prompts::Prompts;
use infer::convert::{probes, vectors};
use infer::{EngineOptions, ModelPackage, Network, Symbol};
use mitosis::Mpp;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;
use testkit::conch::{NINE, PROMPTS, WORDS, text_tower, tokenizer};
use testkit::weights::drawn;

const ENCODER: &str = "conch_v1_projected";
/// Images of 32 px: the network is whole, its tokens are few.
const SIDE: usize = 32;

fn one_thread() -> EngineOptions {
    EngineOptions { threads: 1, ..EngineOptions::default() }
}

fn draft(image: usize) -> Draft {
    let (name, license) = ("drawn".into(), "none: seeded weights".into());
    Draft { name, license, mpp: Mpp::new(0.5).unwrap(), crop: image, image, half: false }
}

fn parts(encoder: &str, image: usize, classes: i64) -> BTreeMap<String, Vec<i64>> {
    let config = EncoderConfig::new(encoder, classes);
    outline(&EncoderConfig { image: image as i64, ..config }.network().unwrap())
}

/// Probabilities of the probes by a package.
fn answers(package: &Path, side: usize) -> Vec<Vec<f32>> {
    let package = ModelPackage::open(package).unwrap();
    let mut models = infer::open(&package, &one_thread()).unwrap();
    let all = models.classifier.as_mut().unwrap().classes(&probes(side)).unwrap();
    all.into_iter().map(|p| p.0).collect()
}

#[test]
fn a_layer_in_the_file_makes_an_encoder_a_classifier() {
    let dir = tempfile::tempdir().unwrap();
    let weights = dir.path().join("impash.safetensors");
    // IMPaSh's names: the encoder below `encoder.`, the linear layer `classifier.`.
    let texture = |(n, dims): (String, Vec<i64>)| match n.strip_prefix("fc.") {
        Some(leaf) => (format!("classifier.{leaf}"), dims),
        None => (format!("encoder.{n}"), dims),
    };
    drawn(&weights, &parts("impash", 64, 3).into_iter().map(texture).collect());
    let classes = ["a", "b", "c"].map(str::to_owned);
    let head = |classes: &[String], positive: &str| Head::File {
        classes: classes.to_vec(),
        positive: positive.into(),
    };
    let make = |head: &Head, out: &Path| {
        classifier(&weights, "impash", head, out, &draft(64), &one_thread())
    };
    let out = dir.path().join("out");
    let made = make(&head(&classes, "b"), &out).unwrap();
    assert!(made.parity.engines.len() > 1, "native, too: {made}");
    assert!(made.difference <= 1e-4 && made.parity.rounding.is_none(), "{made}");
    let given = answers(&out, 64);
    assert!(given.iter().all(|p| (p.iter().sum::<f32>() - 1.0).abs() < 1e-4), "{given:?}");
    let card = made.card.classifier.as_ref().unwrap();
    assert_eq!((card.positive.as_str(), card.input, card.classes.len()), ("b", 64, 3));
    let training = made.card.training.as_ref().unwrap();
    let digest = features::package::digest(&weights).unwrap();
    assert_eq!(training["source_sha256"].as_str(), Some(digest.as_str()));

    // Another number of classes than the file's, an unknown class and an existing package.
    let no = dir.path().join("no");
    let refused = |head: Head, out: &Path, words: &[&str]| {
        let e = make(&head, out).unwrap_err().to_string();
        assert!(words.iter().all(|w| e.contains(w)) && !no.exists(), "{e}");
    };
    refused(head(&classes[1..], "b"), &no, &["impash.safetensors", "[3, 2048]"]);
    refused(head(&classes, "TUM"), &no, &["TUM"]);
    refused(head(&classes, "b"), &made.folder, &["there is a package already"]);
    let weights = dir.path().join("none.pth");
    let e = classifier(&weights, "impash", &head(&classes, "b"), &no, &draft(64), &one_thread());
    assert!(e.unwrap_err().to_string().contains("none.pth") && !no.exists());
}

/// Text by text, vectors of length one by a tower on every engine.
fn embed(tower: &TextTower, texts: &[Vec<i64>]) -> Result<Vec<f32>, EncoderError> {
    let input = tower.input(texts);
    let network = Network {
        onnx: &onnx::text(tower, input.tokens)?.into(),
        input: TEXT,
        shape: &[2, input.tokens, input.width],
        output: VECTOR,
        bf16_from: None,
        symbols: &[Symbol { name: "N".into(), size: 0 }],
    };
    Ok(vectors(&network, &input.values, &one_thread()).unwrap())
}

#[derive(Deserialize)]
struct Golden {
    tensors: BTreeMap<String, Vec<i64>>,
    texts: Vec<Vec<i64>>,
    embed: Sample,
}

#[derive(Deserialize)]
struct Sample {
    shape: Vec<usize>,
    values: Vec<f32>,
}

/// As `fill.py` next to the golden values draws a tensor by its name.
fn filled(name: &str, dims: &[i64]) -> Array {
    let seed = name
        .bytes()
        .fold(0xCBF2_9CE4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01B3));
    let scale = match dims {
        [_] => 0.1,
        _ if name.ends_with("pos_embed") || name.ends_with("_token") => 0.1,
        _ => (6.0 / dims[1..].iter().product::<i64>() as f64).sqrt(),
    };
    let about = f64::from(u8::from(dims.len() == 1 && name.ends_with("weight")));
    let value = |i: u64| {
        let mut z = seed.wrapping_add(i.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^= z >> 31;
        let unit = (z >> 40) as f64 / f64::from(1u32 << 24);
        (about + (2.0 * unit - 1.0) * scale) as f32
    };
    let count = dims.iter().product::<i64>() as u64;
    Array::from_f32(dims.to_vec(), &(1..=count).map(value).collect::<Vec<f32>>())
}

#[test]
fn texts_have_the_vectors_of_the_reference_on_every_engine() {
    let file = testkit::workspace().join("crates/net/tests/golden/text.json");
    let golden: Golden = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let file: Arrays =
        golden.tensors.iter().map(|(n, dims)| (n.clone(), filled(n, dims))).collect();
    let tower = TextTower::open(Path::new("conch.bin"), &file).unwrap();
    let given = embed(&tower, &golden.texts).unwrap();
    let Sample { shape, values } = &golden.embed;
    assert_eq!(given.len(), shape.iter().product::<usize>());
    let step = (given.len() / 32.max(values.len())).max(1);
    let off = given.iter().step_by(step).zip(values).map(|(a, b)| (a - b).abs());
    assert!(off.fold(0.0, f32::max) < 1e-5);
}

/// That such a head is what the package of a network has is tested against libtorch, in `crates/cli`.
#[test]
fn texts_make_the_head_of_an_encoder() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    drawn(
        &at("conch.safetensors"),
        &parts(ENCODER, SIDE, 0).into_iter().chain(text_tower()).collect(),
    );
    let texts = |(n, dims): (String, Vec<i64>)| n.starts_with("text.").then_some((n, dims));
    drawn(&at("texts.safetensors"), &text_tower().into_iter().filter_map(texts).collect());
    tokenizer(&at("tokenizer.json"), &WORDS, "<pad>");
    std::fs::write(at("prompts.toml"), PROMPTS).unwrap();
    let read = |file: &str, encoder: &str, tokens: &str| {
        let head = Head::Texts { prompts: at("prompts.toml"), tokenizer: at(tokens) };
        Headed::read(&at(file), encoder, &head, &draft(SIDE), &one_thread())
    };
    let made = read("conch.safetensors", ENCODER, "tokenizer.json").unwrap();
    let file = encoders::weights::read(&at("conch.safetensors"), None).unwrap();
    let tower = TextTower::open(Path::new("conch"), &file).unwrap();
    let scale = file["logit_scale"].to_f32()[0].exp();
    // By hand: the mean of each class's texts, of length one, times the scale.
    let class = |texts: [Vec<i64>; 4]| {
        let all = embed(&tower, &texts).unwrap();
        let sum: Vec<f32> = (0..512).map(|i| all.iter().skip(i).step_by(512).sum()).collect();
        let length = sum.iter().map(|v| v * v).sum::<f32>().sqrt();
        sum.into_iter().map(|v| v / length * scale).collect::<Vec<f32>>()
    };
    // 4 an, 5 image, 6 of, 7 ., 8 stroma, 9 connective, 10 tissue, 11 tumor, 12 carcinoma.
    let stroma = class([
        vec![1, 8, 7, 2],
        vec![1, 4, 5, 6, 8, 2],
        vec![1, 9, 10, 7, 2],
        vec![1, 4, 5, 6, 9, 10, 2],
    ]);
    let tumour = class([
        vec![1, 11, 7, 2],
        vec![1, 4, 5, 6, 11, 2],
        vec![1, 12, 7, 2],
        vec![1, 4, 5, 6, 12, 2],
    ]);
    let weight = made.tensors["head.weight"].to_f32();
    let off = weight.iter().zip(stroma.iter().chain(&tumour)).map(|(a, b)| (a - b).abs());
    assert_eq!((weight.len(), made.tensors["head.bias"].to_f32()), (1024, vec![0.0; 2]));
    assert!(off.fold(0.0, f32::max) < 1e-4 * scale);
    let apart = stroma.iter().zip(&tumour).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(apart > 1e-2 * scale, "both classes have one vector");

    // What cannot be: another encoder, no scale, a foreign tokenizer.
    let refused = |file: &str, encoder: &str, tokens: &str, words: &[&str]| {
        let e = read(file, encoder, tokens).unwrap_err().to_string();
        assert!(words.iter().all(|w| e.contains(w)), "{e}");
    };
    let (both, tokens) = ("conch.safetensors", "tokenizer.json");
    refused(both, "conch_v1", tokens, &[both, "no vectors to hold against texts"]);
    refused("texts.safetensors", ENCODER, tokens, &["texts.safetensors", "has no `logit_scale`"]);
    let more: Vec<String> = (0..20).map(|i| format!("word{i}")).collect();
    let more: Vec<&str> = more.iter().map(String::as_str).chain(WORDS).collect();
    tokenizer(&at("other.json"), &more, "<pad>");
    refused(both, ENCODER, "other.json", &[both, "do not belong together"]);
    tokenizer(&at("unpadded.json"), &WORDS, "<fill>");
    refused(both, ENCODER, "unpadded.json", &["unpadded.json", "has no token `<pad>`"]);
    std::fs::write(at("broken.json"), "{").unwrap();
    refused(both, ENCODER, "broken.json", &["broken.json", "not a tokenizer"]);
    refused(both, ENCODER, "none.json", &["none.json"]);
    std::fs::write(at("prompts.toml"), "schema = 1").unwrap();
    refused(both, ENCODER, tokens, &["prompts.toml", "positive"]);
}

#[test]
fn empty_prompts_are_refused() {
    let refused = |from: &str, to: &str, words: &str| {
        assert!(PROMPTS.contains(from));
        let e = Prompts::parse(&PROMPTS.replace(from, to), &[]).unwrap_err();
        assert!(e.contains(words), "{e}");
    };
    refused("an image of CLASSNAME", "an image", "templates");
    refused("positive = \"tumour_epithelium\"", "positive = \"TUM\"", "positive");
    refused("[\"tumor\", \"carcinoma\"]", "[]", "classes.tumour_epithelium.words");
    refused("schema = 1", "schema = 2", "schema");
    let path = testkit::workspace().join("presets/prompts/tumour.toml");
    let bundled = Prompts::load(&path, &[]).unwrap();
    assert_eq!((bundled.classes.len(), bundled.positive.as_str()), (9, "tumour_epithelium"));
}

#[test]
fn the_classes_of_a_head_are_in_a_file() {
    let bundled = testkit::workspace().join("presets/classes/impash.toml");
    let Head::File { classes, positive } = Head::named(&bundled).unwrap() else { panic!("texts") };
    assert_eq!((classes, positive.as_str()), (NINE.map(str::to_owned).into(), "tumour_epithelium"));
    let dir = tempfile::tempdir().unwrap();
    let other = dir.path().join("classes.toml");
    for (text, word) in [
        ("schema = 1\npositive = \"c\"\nclasses = [\"a\", \"b\"]", "positive"),
        ("schema = 1\npositive = \"a\"\nclasses = [\"a\"]", "classes"),
        ("schema = 2\npositive = \"a\"\nclasses = [\"a\", \"b\"]", "schema"),
    ] {
        std::fs::write(&other, text).unwrap();
        let e = Head::named(&other).unwrap_err().to_string();
        assert!(e.contains(word) && e.contains("classes.toml"), "{e}");
    }
}
