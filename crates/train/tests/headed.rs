//! CONCH's images and texts as a classifier.

use std::collections::BTreeMap;
use std::path::Path;

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

/// Words alone: the token that pads 0, start 1, end 2, then the vocabulary.
fn tokenizer(path: &Path, words: &[&str], pad: &str) {
    let special = [pad, "<start_of_text>", "<end_of_text>", "<unk>"];
    let all = special.iter().chain(words).enumerate();
    let vocab: serde_json::Map<String, serde_json::Value> =
        all.map(|(i, w)| ((*w).to_owned(), i.into())).collect();
    let token = |i: usize| {
        serde_json::json!({"id": i, "content": special[i], "single_word": false, "lstrip": false,
            "rstrip": false, "normalized": false, "special": true})
    };
    let of = |i: usize| {
        let named = serde_json::json!({"id": special[i], "ids": [i], "tokens": [special[i]]});
        (special[i].to_owned(), named)
    };
    let file = serde_json::json!({
        "version": "1.0", "truncation": null, "padding": null,
        "added_tokens": [token(0), token(1), token(2)],
        "normalizer": {"type": "Lowercase"},
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": {"type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": special[1], "type_id": 0}},
                {"Sequence": {"id": "A", "type_id": 0}},
                {"SpecialToken": {"id": special[2], "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": serde_json::Map::from_iter([of(1), of(2)])},
        "decoder": null,
        "model": {"type": "WordLevel", "vocab": vocab, "unk_token": "<unk>"}
    });
    std::fs::write(path, file.to_string()).unwrap();
}

/// A text tower one block deep beside the images' encoder.
fn with_texts(mut tensors: BTreeMap<String, Tensor>) -> BTreeMap<String, Tensor> {
    tch::manual_seed(7);
    let mut add = |name: &str, shape: &[i64]| {
        let t = Tensor::randn(shape, (Kind::Float, Device::Cpu)) * 0.2;
        tensors.insert(format!("text.{name}"), t);
    };
    let (width, context, vocabulary) = (64, 9, 20);
    add("token_embedding.weight", &[vocabulary, width]);
    add("positional_embedding", &[context, width]);
    add("cls_emb", &[width]);
    add("text_projection", &[width, 512]);
    for norm in ["transformer.resblocks.0.ln_1", "transformer.resblocks.0.ln_2", "ln_final"] {
        add(&format!("{norm}.weight"), &[width]);
        add(&format!("{norm}.bias"), &[width]);
    }
    let layers = [
        ("attn.in_proj_", 3, 1),
        ("attn.out_proj.", 1, 1),
        ("mlp.c_fc.", 4, 1),
        ("mlp.c_proj.", 1, 4),
    ];
    for (name, rows, columns) in layers {
        let name = format!("transformer.resblocks.0.{name}");
        add(&format!("{name}weight"), &[rows * width, columns * width]);
        add(&format!("{name}bias"), &[rows * width]);
    }
    tensors.insert("logit_scale".into(), Tensor::from_slice(&[3.0f32]).view([]));
    tensors
}

const PROMPTS: &str = r#"
schema = 1
positive = "tumour_epithelium"
templates = ["CLASSNAME.", "an image of CLASSNAME"]

[[classes]]
name = "stroma"
words = ["stroma", "connective tissue"]

[[classes]]
name = "tumour_epithelium"
words = ["tumor", "carcinoma"]
"#;

#[test]
fn texts_stand_for_classes() {
    const ENCODER: &str = "conch_v1_projected";
    // Images of 32 px: the network is whole, its tokens are few.
    let images = weights(ENCODER, 32);
    let dir = tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let file = at("conch.safetensors");
    save(&file, &with_texts(images.iter().map(|(n, t)| (n.clone(), t.shallow_clone())).collect()));
    let words = ["an", "image", "of", ".", "stroma", "connective", "tissue", "tumor", "carcinoma"];
    tokenizer(&at("tokenizer.json"), &words, "<pad>");
    let prompts = Prompts::parse(PROMPTS, &[]).unwrap();
    let make = |file: &str, encoder: &str, tokens: &str| {
        let tokens = Tokens::open(&at(tokens))?;
        Headed::zero_shot(&at(file), encoder, 32, (&prompts, &tokens))
    };
    let made = make("conch.safetensors", ENCODER, "tokenizer.json").unwrap();
    let given = made.probabilities(&tiles());

    // By hand: likeness of the image's vector to the mean of each class's texts, times the scale.
    let alone = at("images.safetensors");
    save(&alone, &images);
    let embedder = train::embed::Embedder::open(&alone, Some(ENCODER), (32, false), "cpu").unwrap();
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
