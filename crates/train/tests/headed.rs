//! CONCH's images and texts as a classifier.

use std::collections::BTreeMap;
use std::path::Path;

use crate::common::conch::{PROMPTS, add_texts, tokenizer};
use mitosis::RgbTile;
use net::checkpoint::save_tensors;
use net::encoder::{self, EncoderConfig};
use tch::nn::VarStore;
use tch::{Device, Kind, Tensor};
use tempfile::tempdir;
use train::headed::Headed;
use train::preset::Preset as _;
use train::prompts::{Prompts, Tokens};

/// Seeded weights of an encoder without a head.
fn weights(name: &str, image: i64) -> BTreeMap<String, Tensor> {
    tch::manual_seed(5);
    let vs = VarStore::new(Device::Cpu);
    let config = EncoderConfig { image, ..EncoderConfig::new(name, 0) };
    let _net = encoder::build(&vs.root(), &config).unwrap();
    vs.variables().into_iter().map(|(n, t)| (n, t.detach())).collect()
}

fn save(path: &Path, tensors: &BTreeMap<String, Tensor>) {
    let tensors: Vec<_> = tensors.iter().map(|(n, t)| (n.clone(), t.shallow_clone())).collect();
    save_tensors(path, &tensors, BTreeMap::new()).unwrap();
}

/// Two tiles of 32 px.
fn tiles() -> Vec<RgbTile> {
    let tile = |k: usize| {
        let value = |i: usize| (i * (k + 3) / 7 % 200) as u8;
        RgbTile::new(32, 32, (0..3 * 32 * 32).map(value).collect())
    };
    vec![tile(0), tile(1)]
}

#[test]
fn texts_stand_for_classes() {
    const ENCODER: &str = "conch_v1_projected";
    // Images of 32 px: the network is whole, its tokens are few.
    let images = weights(ENCODER, 32);
    let dir = tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let (file, alone) = (at("conch.safetensors"), at("images.safetensors"));
    save(&alone, &images);
    let mut both = net::checkpoint::read_tensors(&alone).unwrap();
    add_texts(&mut both);
    save(&file, &both.tensors);
    let words = ["an", "image", "of", ".", "stroma", "connective", "tissue", "tumor", "carcinoma"];
    tokenizer(&at("tokenizer.json"), &words, "<pad>");
    let prompts = Prompts::parse(PROMPTS, &[]).unwrap();
    let make = |file: &str, encoder: &str, tokens: &str| {
        let tokens = Tokens::open(&at(tokens))?;
        Headed::zero_shot(&at(file), encoder, 32, &prompts, &tokens)
    };
    let made = make("conch.safetensors", ENCODER, "tokenizer.json").unwrap();
    let given = made.probabilities(&tiles());

    // By hand: likeness of the image's vector to the mean of each class's texts, times the scale.
    let embedder = train::embed::Embedder::open(&alone, Some(ENCODER), 32, false, "cpu").unwrap();
    let image = Tensor::from_slice(&embedder.embed(&tiles())).view([2, 512]);
    let tensors = net::read_weights(&file, None).unwrap();
    let tower = net::text::TextTower::open(&file, &tensors).unwrap();
    let texts = |texts: &[[i64; 8]]| {
        let texts = Tensor::from_slice2(texts);
        let mean = tower.embed(&texts).mean_dim([0i64].as_slice(), false, Kind::Float);
        &mean / mean.norm()
    };
    // 4 an, 5 image, 6 of, 7 ., 8 stroma, 9 connective, 10 tissue, 11 tumor, 12 carcinoma.
    let stroma = texts(&[
        [1, 8, 7, 2, 0, 0, 0, 0],
        [1, 4, 5, 6, 8, 2, 0, 0],
        [1, 9, 10, 7, 2, 0, 0, 0],
        [1, 4, 5, 6, 9, 10, 2, 0],
    ]);
    let tumour = texts(&[
        [1, 11, 7, 2, 0, 0, 0, 0],
        [1, 4, 5, 6, 11, 2, 0, 0],
        [1, 12, 7, 2, 0, 0, 0, 0],
        [1, 4, 5, 6, 12, 2, 0, 0],
    ]);
    let logits = image.matmul(&Tensor::stack(&[stroma, tumour], 1)) * 3.0f64.exp();
    let wanted = logits.softmax(-1, Kind::Float).view(-1);
    for (i, p) in given.iter().enumerate() {
        let want = wanted.double_value(&[i as i64]) as f32;
        assert!((p - want).abs() < 1e-5, "{i}: {p}, by hand {want}");
    }
    assert!((given[0] - given[2]).abs() > 5e-4, "two images, one answer: {given:?}");

    // What cannot be: another encoder, no text tower, a foreign tokenizer.
    let refused = |file: &str, encoder: &str, tokens: &str, words: &str| {
        let e = make(file, encoder, tokens).err().expect("refused").to_string();
        assert!(e.contains(words), "{e}");
    };
    refused("conch.safetensors", "conch_v1", "tokenizer.json", "no vectors to hold against texts");
    refused("images.safetensors", ENCODER, "tokenizer.json", "has no `logit_scale`");
    let more: Vec<String> = (0..20).map(|i| format!("word{i}")).collect();
    let more: Vec<&str> = more.iter().map(String::as_str).chain(words).collect();
    tokenizer(&at("other.json"), &more, "<pad>");
    refused("conch.safetensors", ENCODER, "other.json", "do not belong together");
    tokenizer(&at("unpadded.json"), &words, "<fill>");
    refused("conch.safetensors", ENCODER, "unpadded.json", "`<pad>`");
    std::fs::write(at("broken.json"), "{").unwrap();
    refused("conch.safetensors", ENCODER, "broken.json", "broken.json");
}

#[test]
fn prompts_that_say_nothing_are_refused() {
    let refused = |from: &str, to: &str, words: &str| {
        assert!(PROMPTS.contains(from));
        let e = Prompts::parse(&PROMPTS.replace(from, to), &[]).unwrap_err();
        assert!(e.contains(words), "{e}");
    };
    refused("an image of CLASSNAME", "an image", "templates");
    refused("positive = \"tumour_epithelium\"", "positive = \"TUM\"", "positive");
    refused("[\"tumor\", \"carcinoma\"]", "[]", "classes.tumour_epithelium.words");
    refused("schema = 1", "schema = 2", "schema");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../presets/prompts/tumour.toml");
    let bundled = Prompts::load(&path, &[]).unwrap();
    assert_eq!((bundled.classes.len(), bundled.positive.as_str()), (9, "tumour_epithelium"));
}
