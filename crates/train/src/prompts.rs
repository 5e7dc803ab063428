//! Texts that describe classes, and their vectors.

use std::collections::BTreeMap;
use std::path::Path;

use base::preset::{Fault, Preset};
use net::text::{PADDING, TextTower};
use serde::{Deserialize, Serialize};
use tch::{Kind, Tensor};
use tokenizers::{Tokenizer, TruncationParams};

use crate::error::{Result, TrainError};

/// The placeholder for a class's name in a template.
const PLACE: &str = "CLASSNAME";
/// The token that fills texts up.
const PAD: &str = "<pad>";

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

impl Preset for Prompts {
    fn check(&self) -> std::result::Result<(), Fault> {
        let need = |holds: bool, key: &str, reason: &str| {
            holds.then_some(()).ok_or_else(|| Fault::new(key, reason))
        };
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
    fn check(&self) -> std::result::Result<(), Fault> {
        let need = |holds: bool, key: &str, reason: &str| {
            holds.then_some(()).ok_or_else(|| Fault::new(key, reason))
        };
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
    /// [`TrainError::Run`] when the file is not a tokenizer, or its padding token differs from that of
    /// the networks here.
    pub fn open(path: &Path) -> Result<Self> {
        let bad = |reason: String| TrainError::run(path, reason);
        let tokenizer = Tokenizer::from_file(path)
            .map_err(|e| bad(format!("no tokenizer as Hugging Face writes it ({e})")))?;
        match tokenizer.token_to_id(PAD) {
            Some(id) if i64::from(id) == PADDING => Ok(Self(tokenizer)),
            other => Err(bad(format!("`{PAD}` is {other:?}, not token {PADDING}"))),
        }
    }

    /// Tokens of a text with those before and after it, at most `most` of them.
    fn tokenise(&self, text: &str, most: usize) -> std::result::Result<Vec<i64>, String> {
        let mut tokenizer = self.0.clone();
        let cut = TruncationParams { max_length: most, ..Default::default() };
        tokenizer.with_truncation(Some(cut)).map_err(|e| e.to_string())?;
        tokenizer.with_padding(None);
        let encoded = tokenizer.encode(text, true).map_err(|e| format!("`{text}`: {e}"))?;
        Ok(encoded.get_ids().iter().map(|&id| i64::from(id)).collect())
    }
}

/// One vector of length one per class, `[C, D]`: the mean of its texts' vectors.
///
/// # Errors
/// [`TrainError`] when the file has no text tower, or another vocabulary than the tokenizer.
pub fn vectors(
    path: &Path,
    tensors: &BTreeMap<String, Tensor>,
    prompts: &Prompts,
    tokens: &Tokens,
) -> Result<Tensor> {
    let bad = |reason: String| TrainError::run(path, reason);
    let tower = TextTower::open(path, tensors)?;
    let (context, known) = (tower.context(), tower.vocabulary());
    let mut rows = Vec::new();
    for class in &prompts.classes {
        let mut all = Vec::new();
        let mut count = 0;
        for text in class.texts(&prompts.templates) {
            let mut ids = tokens.tokenise(&text, context).map_err(bad)?;
            if let Some(id) = ids.iter().find(|&&id| id < 0 || id as usize >= known) {
                let reason = format!(
                    "the tokenizer has a token {id}, the text tower {known} tokens: they do not belong together"
                );
                return Err(bad(reason));
            }
            ids.resize(context, PADDING);
            all.extend(ids);
            count += 1;
        }
        let texts = Tensor::from_slice(&all).view([count, context as i64]);
        let mean = tower.embed(&texts).mean_dim([0i64].as_slice(), false, Kind::Float);
        rows.push(&mean / mean.norm());
    }
    Ok(Tensor::stack(&rows, 0))
}
