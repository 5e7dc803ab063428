//! CoCa's text tower, as CONCH has it: texts to vectors in the space of its images.
//!
//! Lu et al., "A visual-language foundation model for computational pathology", 2024. A class token
//! is behind the text. Every token attends to those before it and to itself, the class token to
//! those of the text that are not padding: one place to the left of where they are, as published.

use std::path::Path;

use crate::array::Array;
use crate::error::{EncoderError, Result};
use crate::foreign::{LoadReport, Matched, match_names, unsound};
use crate::onnx::text_outline;
use crate::tower::HEAD;
pub use crate::tower::{TextShape, TextTower};
use crate::weights::Arrays;

/// Names of the tower in a file begin so.
pub const TOWER: &str = "text.";
/// The token that fills a text up.
pub const PADDING: i64 = 0;
/// What attention adds where it does not look: the exponential of this is zero in f32.
const HIDDEN: f32 = -1e9;
/// The file's words, and ours.
const WORDS: [(&str, &str); 8] = [
    ("transformer.resblocks.", "blocks."),
    ("attn.in_proj_", "attn.qkv."),
    ("attn.out_proj.", "attn.proj."),
    ("ln_1.", "norm1."),
    ("ln_2.", "norm2."),
    ("mlp.c_fc.", "mlp.fc1."),
    ("mlp.c_proj.", "mlp.fc2."),
    ("ln_final.", "norm."),
];

/// Texts as the network takes them.
#[derive(Clone, Debug, PartialEq)]
pub struct TextInput {
    /// Text by text, row-major.
    pub values: Vec<f32>,
    /// Tokens of a text, the class token with them.
    pub tokens: usize,
    /// Values per token.
    pub width: usize,
}

impl TextTower {
    /// The tower in a file that holds images' and texts' side by side; its size is what the tensors state.
    ///
    /// # Errors
    /// [`EncoderError::Weights`] with the list when a tensor is missing, unexpected or of another shape,
    /// or when the file has no text tower.
    pub fn open(path: &Path, tensors: &Arrays) -> Result<Self> {
        let refuse = |reason: &str, problems: Vec<String>| {
            let (path, reason) = (path.to_path_buf(), reason.to_owned());
            EncoderError::Weights { path, reason, problems, fits_in_part: false }
        };
        let own =
            |(name, t): (&String, &Array)| Some((name.strip_prefix(TOWER)?.to_owned(), t.clone()));
        let own: Arrays = tensors.iter().filter_map(own).collect();
        let sides = |name: &str| match own.get(name).map(Array::dims) {
            Some(&[rows, columns]) => Ok((rows, columns)),
            _ => Err(refuse(&format!("has no text tower: no matrix `{TOWER}{name}`"), vec![])),
        };
        let (vocabulary, width) = sides("token_embedding.weight")?;
        let (places, _) = sides("positional_embedding")?;
        let (_, output) = sides("text_projection")?;
        if width < HEAD || width % HEAD != 0 || places < 2 || vocabulary < 1 || output < 1 {
            let reason =
                format!("a text tower {width} wide over {places} tokens is not one of CONCH's");
            return Err(refuse(&reason, vec![]));
        }
        let depth = own.keys().filter(|n| n.ends_with(".ln_1.weight")).count() as i64;
        let shape = TextShape { vocabulary, width, places, output, depth };
        let dims = own.iter().map(|(name, t)| (name.as_str(), t.dims()));
        let ours = |name: &str| {
            Some(WORDS.iter().fold(name.to_owned(), |n, (from, to)| n.replace(from, to)))
        };
        let Matched { report, pairs } = match_names(dims, &text_outline(&shape), ours);
        let LoadReport { missing, unexpected, reshaped, .. } = report;
        let problems: Vec<String> = (missing.iter().map(|n| format!("missing: {n}")))
            .chain(unexpected.iter().map(|n| format!("unexpected: {TOWER}{n}")))
            .chain(reshaped.iter().map(|l| format!("of another shape (file, model): {l}")))
            .collect();
        if !problems.is_empty() {
            return Err(refuse("its text tower is not one of CONCH's", problems));
        }
        let unsound: Vec<String> =
            pairs.iter().filter_map(|(name, from)| unsound(name, &own[from])).collect();
        if !unsound.is_empty() {
            return Err(refuse("holds values that are not weights", unsound));
        }
        let tensors = pairs.into_iter().map(|(name, from)| (name, own[&from].float())).collect();
        Ok(Self { shape, tensors })
    }

    /// Most tokens of a text.
    #[must_use]
    pub fn context(&self) -> usize {
        self.shape.places as usize - 1
    }

    /// Texts as tokens to the input of the network ([`crate::onnx::text`]). Padding behind the longest text is left
    /// out but for one token, as nothing attends to the rest. The class token comes first, which attention does not
    /// see: places are added here.
    ///
    /// # Panics
    /// When a text is longer than [`Self::context`], or has a token that the vocabulary has not.
    #[must_use]
    pub fn input(&self, texts: &[Vec<i64>]) -> TextInput {
        let (context, wide) = (self.context(), self.shape.width as usize);
        let longest = texts.iter().map(Vec::len).max().unwrap_or_default();
        assert!(longest <= context, "a text of {longest} tokens");
        let used = (longest + 1).min(context);
        let tokens = used + 1;
        let values = |name: &str| self.tensors[name].to_f32();
        let (words, places, class) =
            (values("token_embedding.weight"), values("positional_embedding"), values("cls_emb"));
        let row = |table: &'_ [f32], i: usize| table[i * wide..][..wide].to_vec();
        let placed = |mut word: Vec<f32>, place: usize| {
            word.iter_mut().zip(&places[place * wide..]).for_each(|(v, p)| *v += p);
            word
        };
        let shown = |sees: bool| if sees { 0.0 } else { HIDDEN };
        let mut all = Vec::with_capacity(texts.len() * tokens * (wide + tokens));
        for text in texts {
            let at = |i: usize| text.get(i).copied().unwrap_or(PADDING);
            all.extend(placed(class.clone(), context));
            // Itself where the last place of all has a word; of the tokens those behind a word, and the first.
            all.push(shown(at(context - 1) != PADDING));
            all.extend((0..used).map(|i| shown(i == 0 || at(i - 1) != PADDING)));
            for i in 0..used {
                all.extend(placed(row(&words, at(i) as usize), i));
                all.push(HIDDEN);
                all.extend((0..used).map(|j| shown(j <= i)));
            }
        }
        TextInput { values: all, tokens, width: wide + tokens }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tower(places: i64) -> TextTower {
        let shape = TextShape { vocabulary: 5, width: 64, places, output: 3, depth: 1 };
        let drawn = |(name, dims): (String, Vec<i64>)| {
            let count = dims.iter().product::<i64>() as usize;
            let values: Vec<f32> = (0..count).map(|i| (i % 7) as f32 - 3.0).collect();
            let theirs = WORDS.iter().fold(name, |n, (to, from)| n.replace(from, to));
            (format!("{TOWER}{theirs}"), Array::from_f32(dims, &values))
        };
        let file: Arrays = text_outline(&shape).into_iter().map(drawn).collect();
        let tower = TextTower::open(Path::new("f"), &file).unwrap();
        assert_eq!(tower.shape(), &shape);
        tower
    }

    /// What the tokens of a text see of the class token and of one another, as letters.
    fn seen(input: &TextInput, text: usize) -> Vec<String> {
        let TextInput { values, tokens, width } = input;
        let rows = values.chunks(*width).skip(text * tokens).take(*tokens);
        let letter = |v: &f32| if *v == 0.0 { 'x' } else { '.' };
        rows.map(|row| row[width - tokens..].iter().map(letter).collect()).collect()
    }

    #[test]
    fn tokens_see_what_is_before_them_and_the_class_token_the_text() {
        let tower = tower(9);
        // One of two words, padded to the longer one of three and one more.
        let input = tower.input(&[vec![1, 2], vec![1, 3, 2]]);
        assert_eq!((input.tokens, input.width), (5, 64 + 5));
        assert_eq!(input.values.len(), 2 * 5 * 69);
        let before = [".x...", ".xx..", ".xxx.", ".xxxx"];
        assert_eq!(seen(&input, 0), [&[".xxx."], &before[..]].concat());
        assert_eq!(seen(&input, 1), [&[".xxxx"], &before[..]].concat());
        // A text that fills all places: the class token sees itself.
        let full = tower.input(&[vec![1; 8]]);
        assert_eq!((full.tokens, seen(&full, 0)[0].as_str()), (9, "xxxxxxxxx"));
    }
}
