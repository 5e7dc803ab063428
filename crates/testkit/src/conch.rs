//! A small text tower and its tokenizer, next to the image encoder of CONCH.

use std::collections::BTreeMap;
use std::path::Path;

/// The words of [`PROMPTS`]: tokens 4 to 12.
pub const WORDS: [&str; 9] =
    ["an", "image", "of", ".", "stroma", "connective", "tissue", "tumor", "carcinoma"];

/// Classes of a texture classifier.
pub const NINE: [&str; 9] = [
    "adipose",
    "background",
    "debris",
    "lymphocytes",
    "mucus",
    "smooth_muscle",
    "normal_mucosa",
    "stroma",
    "tumour_epithelium",
];

/// Writes a tokenizer of words alone: the token that pads 0, start 1, end 2, unknown 3, then the vocabulary.
///
/// # Panics
/// When the file cannot be written.
pub fn tokenizer(path: &Path, words: &[&str], pad: &str) {
    let special = [pad, "<start_of_text>", "<end_of_text>", "<unk>"];
    let special_token = |i: usize| special[i];
    let vocabulary: Vec<String> =
        special.iter().chain(words).enumerate().map(|(i, w)| format!("{w:?}: {i}")).collect();
    let token = |i: usize| {
        format!(
            r#"{{"id": {i}, "content": {:?}, "single_word": false, "lstrip": false, "rstrip": false,
            "normalized": false, "special": true}}"#,
            special_token(i)
        )
    };
    let named = |i: usize| {
        format!(r#"{0:?}: {{"id": {0:?}, "ids": [{i}], "tokens": [{0:?}]}}"#, special_token(i))
    };
    let file = format!(
        r#"{{"version": "1.0", "truncation": null, "padding": null,
        "added_tokens": [{}, {}, {}],
        "normalizer": {{"type": "Lowercase"}},
        "pre_tokenizer": {{"type": "Whitespace"}},
        "post_processor": {{"type": "TemplateProcessing",
            "single": [{{"SpecialToken": {{"id": {:?}, "type_id": 0}}}},
                {{"Sequence": {{"id": "A", "type_id": 0}}}},
                {{"SpecialToken": {{"id": {:?}, "type_id": 0}}}}],
            "pair": [{{"Sequence": {{"id": "A", "type_id": 0}}}}, {{"Sequence": {{"id": "B", "type_id": 1}}}}],
            "special_tokens": {{{}, {}}}}},
        "decoder": null,
        "model": {{"type": "WordLevel", "vocab": {{{}}}, "unk_token": "<unk>"}}}}"#,
        token(0),
        token(1),
        token(2),
        special_token(1),
        special_token(2),
        named(1),
        named(2),
        vocabulary.join(", ")
    );
    std::fs::write(path, file).unwrap();
}

/// Tensors of a text tower one block deep over texts of eight tokens, and the scale of likenesses, by a file's names.
#[must_use]
pub fn text_tower() -> BTreeMap<String, Vec<i64>> {
    let (width, places, vocabulary) = (64, 9, 20);
    let block = "transformer.resblocks.0";
    let mut all = BTreeMap::from([("logit_scale".to_owned(), vec![])]);
    let mut add = |name: String, dims: &[i64]| all.insert(format!("text.{name}"), dims.to_vec());
    add("token_embedding.weight".into(), &[vocabulary, width]);
    add("positional_embedding".into(), &[places, width]);
    add("cls_emb".into(), &[width]);
    add("text_projection".into(), &[width, 512]);
    for norm in [format!("{block}.ln_1"), format!("{block}.ln_2"), "ln_final".into()] {
        add(format!("{norm}.weight"), &[width]);
        add(format!("{norm}.bias"), &[width]);
    }
    for (name, rows, columns) in [
        ("attn.in_proj_", 3, 1),
        ("attn.out_proj.", 1, 1),
        ("mlp.c_fc.", 4, 1),
        ("mlp.c_proj.", 1, 4),
    ] {
        add(format!("{block}.{name}weight"), &[rows * width, columns * width]);
        add(format!("{block}.{name}bias"), &[rows * width]);
    }
    all
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
