//! A small text tower and its tokenizer, next to the image encoder of CONCH; `crates/cli/tests` uses it, too,
//! and names no libtorch.

use std::path::Path;

use net::checkpoint::Tensors;

/// Words alone: the token that pads 0, start 1, end 2, then the vocabulary.
pub fn tokenizer(path: &Path, words: &[&str], pad: &str) {
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

/// Adds a text tower one block deep, of values that the images' encoder has.
pub fn add_texts(file: &mut Tensors) {
    let drawn = file.tensors["patch_embed.proj.weight"].detach().reshape([-1]);
    let drawn = &drawn / drawn.std(false);
    let mut from = 0;
    let mut add = |name: &str, shape: &[i64]| {
        let values: i64 = shape.iter().product();
        let t = drawn.narrow(0, from, values).reshape(shape) * 0.2;
        from += values;
        file.tensors.insert(format!("text.{name}"), t);
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
    let scale = drawn.narrow(0, 0, 1).zeros_like().reshape([0_i64; 0]) + 3.0;
    file.tensors.insert("logit_scale".into(), scale);
}

/// Prompts of two classes.
pub const PROMPTS: &str = r#"
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
