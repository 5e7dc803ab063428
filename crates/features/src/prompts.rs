//! Texts that describe classes, and their vectors.

use crate::error::FeatureError;
use base::panics::catch_panic;
use base::preset::{Fault, Preset};
use encoders::onnx::{self, TEXT, VECTOR};
use encoders::text::{PADDING, TextTower};
use infer::convert::{self, ConvertError};
use infer::{Bytes, EngineOptions, Network, Symbol};
use serde::{Deserialize, Serialize};
use std::path::Path;
use tokenizers::{Tokenizer, TruncationParams};

/// The placeholder for a class's name in a template.
const PLACE: &str = "CLASSNAME";
/// The token that fills texts up.
const PAD: &str = "<pad>";
/// Texts of a run of the text tower.
const BATCH: usize = 32;

/// A file of prompts: every template is filled with every wording of a class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prompts {
    /// Version of this format, 1.
    schema: u32,
    /// The class that counts.
    pub positive: String,
    /// Sentences with `CLASSNAME` in them.
    pub templates: Vec<String>,
    /// The classes, in the order of the outputs.
    pub classes: Vec<Worded>,
}

/// The texts of a class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Worded {
    /// Its name in the package.
    pub name: String,
    /// The words that replace the placeholder in a template.
    pub words: Vec<String>,
}

fn need(holds: bool, key: &str, reason: &str) -> Result<(), Fault> {
    holds.then_some(()).ok_or_else(|| Fault::new(key, reason))
}

impl Preset for Prompts {
    fn check(&self) -> Result<(), Fault> {
        need(self.schema == 1, "schema", "this program reads 1")?;
        let templates =
            !self.templates.is_empty() && self.templates.iter().all(|t| t.contains(PLACE));
        need(templates, "templates", "each needs CLASSNAME in it, and there has to be one")?;
        need(self.classes.len() >= 2, "classes", "needs two or more")?;
        for c in &self.classes {
            let some = !c.words.is_empty() && c.words.iter().all(|w| !w.trim().is_empty());
            need(some, &format!("classes.{}.words", c.name), "needs a word")?;
        }
        let there = self.classes.iter().any(|c| c.name == self.positive);
        need(there, "positive", "is not the name of a class")
    }
}

/// A file that names the outputs of a linear layer, in its order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outputs {
    /// Version of this format, 1.
    schema: u32,
    /// The class that counts.
    pub positive: String,
    /// All of them.
    pub classes: Vec<String>,
}

impl Preset for Outputs {
    fn check(&self) -> Result<(), Fault> {
        need(self.schema == 1, "schema", "this program reads 1")?;
        need(self.classes.len() >= 2, "classes", "needs two or more")?;
        need(self.classes.contains(&self.positive), "positive", "is not the name of a class")
    }
}

impl Worded {
    /// Its sentences.
    fn texts<'a>(&'a self, templates: &'a [String]) -> impl Iterator<Item = String> + 'a {
        let filled = move |word: &'a String| templates.iter().map(move |t| t.replace(PLACE, word));
        self.words.iter().flat_map(filled)
    }
}

/// A tokenizer as Hugging Face writes it, `tokenizer.json`.
pub struct Tokens(Tokenizer);

impl Tokens {
    /// Reads it.
    ///
    /// # Errors
    /// [`FeatureError::Head`] when the file is not a tokenizer, or its padding token differs from that of
    /// the networks here.
    pub fn open(path: &Path) -> Result<Self, FeatureError> {
        let bad = |reason: String| FeatureError::head(path, reason);
        let bytes = base::file::read_whole(path)
            .map_err(|source| FeatureError::Io { path: path.to_owned(), source })?;
        let tokenizer = catch_panic(|| Tokenizer::from_bytes(bytes).map_err(|e| e.to_string()))
            .map_err(|e| bad(format!("not a tokenizer as Hugging Face writes it ({e})")))?;
        match tokenizer.token_to_id(PAD) {
            Some(id) if i64::from(id) == PADDING => Ok(Self(tokenizer)),
            Some(id) => Err(bad(format!("`{PAD}` is token {id}, not token {PADDING}"))),
            None => Err(bad(format!("has no token `{PAD}`"))),
        }
    }

    /// Tokens of a text with those before and after it, at most `most` of them.
    fn tokenise(&self, text: &str, most: usize) -> Result<Vec<i64>, String> {
        let mut tokenizer = self.0.clone();
        let cut = TruncationParams { max_length: most, ..Default::default() };
        tokenizer.with_truncation(Some(cut)).map_err(|e| e.to_string())?;
        tokenizer.with_padding(None);
        let encoded = catch_panic(|| tokenizer.encode(text, true).map_err(|e| e.to_string()))
            .map_err(|e| format!("`{text}`: {e}"))?;
        Ok(encoded.get_ids().iter().take(most).map(|&id| i64::from(id)).collect())
    }
}

/// One vector of length one per class, one after the other: the mean of its texts' vectors. Every engine that is found
/// has to give the same ones.
///
/// # Errors
/// [`FeatureError`] when the tokenizer has another vocabulary than the tower, or no engine runs it. `path` is the
/// weights'.
pub fn vectors(
    path: &Path,
    tower: &TextTower,
    prompts: &Prompts,
    tokens: &Tokens,
    options: &EngineOptions,
) -> Result<Vec<f32>, FeatureError> {
    let (context, known) = (tower.context(), tower.shape().vocabulary);
    let mut texts = Vec::new();
    for text in prompts.classes.iter().flat_map(|c| c.texts(&prompts.templates)) {
        let ids = tokens.tokenise(&text, context).map_err(|e| FeatureError::head(path, e))?;
        if let Some(id) = ids.iter().find(|&&id| !(0..known).contains(&id)) {
            let reason = format!(
                "the tokenizer has a token {id}, the text tower {known} tokens: they do not belong together"
            );
            return Err(FeatureError::head(path, reason));
        }
        texts.push(ids);
    }
    let failed =
        |e: ConvertError| FeatureError::Convert { path: path.to_owned(), source: Box::new(e) };
    let input = tower.input(&texts);
    let file = Bytes::from(onnx::text(tower, input.tokens)?);
    let network = Network {
        onnx: &file,
        input: TEXT,
        shape: &[texts.len().min(BATCH), input.tokens, input.width],
        output: VECTOR,
        bf16_from: None,
        symbols: &[Symbol { name: "N".into(), size: 0 }],
    };
    let all = convert::vectors(&network, &input.values, options).map_err(failed)?;
    let width = tower.shape().output as usize;
    let mut rows = all.chunks_exact(width);
    let means = prompts.classes.iter().flat_map(|class| {
        let count = class.words.len() * prompts.templates.len();
        let mut sum = vec![0.0_f64; width];
        for row in rows.by_ref().take(count) {
            sum.iter_mut().zip(row).for_each(|(s, v)| *s += f64::from(*v));
        }
        let length = sum.iter().map(|v| v * v).sum::<f64>().sqrt();
        sum.into_iter().map(move |v| (v / length) as f32)
    });
    Ok(means.collect())
}
