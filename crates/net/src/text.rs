//! CoCa's text tower, as CONCH has it: texts to vectors in the space of its images.
//!
//! Lu et al., "A visual-language foundation model for computational pathology", 2024. A class token
//! is behind the text. Every token attends to those before it and to itself, the class token to
//! those of the text that are not padding: one place to the left of where they are, as published.

use std::collections::BTreeMap;
use std::path::Path;

use encoders::EncoderError;
use tch::nn::{Init, VarStore};
use tch::{Device, Kind, Tensor};

use crate::checkpoint::{self, LoadReport};
use crate::error::Result;
use crate::layer::LayerNorm;
use crate::vit::{Block, BlockShape};

/// Names of the tower in a file begin so.
pub const TOWER: &str = "text.";
/// Torch's default of a layer norm.
const EPS: f64 = 1e-5;
/// Width of an attention head.
const HEAD: i64 = 64;
/// The token that fills a text up.
pub const PADDING: i64 = 0;
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

/// A text tower with frozen weights.
#[derive(Debug)]
pub struct TextTower {
    _vs: VarStore,
    tokens: Tensor,
    positions: Tensor,
    class_token: Tensor,
    blocks: Vec<Block>,
    norm: LayerNorm,
    projection: Tensor,
}

impl TextTower {
    /// The tower in a file that holds images' and texts' side by side; its size is what the tensors state.
    ///
    /// # Errors
    /// [`EncoderError::Weights`] with the list when a tensor is missing, unexpected or of another shape,
    /// or when the file has no text tower.
    pub fn open(path: &Path, tensors: &BTreeMap<String, Tensor>) -> Result<Self> {
        let refuse = |reason: &str, problems: Vec<String>| {
            let (path, reason) = (path.to_path_buf(), reason.to_owned());
            EncoderError::Weights { path, reason, problems, fits_in_part: false }.into()
        };
        let own: BTreeMap<String, Tensor> = tensors
            .iter()
            .filter_map(|(name, t)| Some((name.strip_prefix(TOWER)?.to_owned(), t.shallow_clone())))
            .collect();
        let sides = |name: &str| match own.get(name).map(Tensor::size).as_deref() {
            Some(&[rows, columns]) => Ok((rows, columns)),
            _ => Err(refuse(&format!("has no text tower: no matrix `{TOWER}{name}`"), vec![])),
        };
        let (vocabulary, width) = sides("token_embedding.weight")?;
        let (context, _) = sides("positional_embedding")?;
        let (_, output) = sides("text_projection")?;
        if width < HEAD || width % HEAD != 0 || context < 2 {
            let reason =
                format!("a text tower {width} wide over {context} tokens is not one of CONCH's");
            return Err(refuse(&reason, vec![]));
        }
        let depth = own.keys().filter(|n| n.ends_with(".ln_1.weight")).count();
        let vs = VarStore::new(Device::Cpu);
        let p = vs.root();
        let zero = Init::Const(0.0);
        let shape = BlockShape { eps: EPS, ..BlockShape::plain(width, width / HEAD, zero) };
        let tower = Self {
            tokens: (&p / "token_embedding").var("weight", &[vocabulary, width], zero),
            positions: p.var("positional_embedding", &[context, width], zero),
            class_token: p.var("cls_emb", &[width], zero),
            blocks: (0..depth).map(|i| Block::new(&(&p / "blocks" / i), shape)).collect(),
            norm: LayerNorm::new(&(&p / "norm"), width, EPS),
            projection: p.var("text_projection", &[width, output], zero),
            _vs: vs,
        };
        let rename = |name: &str| {
            Some(WORDS.iter().fold(name.to_owned(), |n, (from, to)| n.replace(from, to)))
        };
        let plan = checkpoint::plan(&own, &tower._vs, rename);
        let LoadReport { missing, unexpected, reshaped, .. } = plan.report();
        let problems: Vec<String> = (missing.iter().map(|n| format!("missing: {n}")))
            .chain(unexpected.iter().map(|n| format!("unexpected: {TOWER}{n}")))
            .chain(reshaped.iter().map(|l| format!("of another shape (file, model): {l}")))
            .collect();
        if !problems.is_empty() {
            return Err(refuse("its text tower is not one of CONCH's", problems));
        }
        let unsound = |(name, t): (&str, &Tensor)| {
            let sound = t.is_floating_point() && t.isfinite().all().int64_value(&[]) == 1;
            (!sound).then(|| format!("{name}: not finite"))
        };
        let unsound: Vec<String> = plan.pairs().filter_map(unsound).collect();
        if !unsound.is_empty() {
            return Err(refuse("holds values that are not weights", unsound));
        }
        plan.apply();
        Ok(tower)
    }

    /// Tokens of a text, filled up with [`PADDING`].
    #[must_use]
    pub fn context(&self) -> usize {
        self.positions.size()[0] as usize - 1
    }

    /// Tokens there are.
    #[must_use]
    pub fn vocabulary(&self) -> usize {
        self.tokens.size()[0] as usize
    }

    /// Texts as tokens, i64 `[N, context]`, to vectors of length one, `[N, D]`.
    ///
    /// # Panics
    /// When a text has another length, or a token that the vocabulary has not.
    pub fn embed(&self, texts: &Tensor) -> Tensor {
        tch::no_grad(|| {
            let (n, length) = texts.size2().expect("[N, context]");
            let token = self.class_token.view([1, 1, -1]).expand([n, 1, -1], false);
            let mut x =
                Tensor::cat(&[Tensor::embedding(&self.tokens, texts, -1, false, false), token], 1);
            x += &self.positions;
            let mask = mask(texts, length + 1);
            for block in &self.blocks {
                x = block.masked(&x, &mask);
            }
            let y = self.norm.forward(&x.select(1, length)).matmul(&self.projection);
            &y / y.norm_scalaropt_dim(2.0, [-1i64].as_slice(), true).clamp_min(1e-12)
        })
    }
}

/// What attention adds: `[N, 1, T, T]`, 0 or minus infinity.
fn mask(texts: &Tensor, length: i64) -> Tensor {
    let (n, device) = (texts.size()[0], texts.device());
    let before = Tensor::ones([length, length], (Kind::Bool, device)).tril(0);
    let first = Tensor::ones([n, 1], (Kind::Bool, device));
    let last = Tensor::cat(&[first, texts.not_equal(PADDING)], 1);
    let seen = before.unsqueeze(0).repeat([n, 1, 1]);
    let row = seen.select(1, length - 1).logical_and(&last);
    seen.select(1, length - 1).copy_(&row);
    let mask = Tensor::zeros([n, length, length], (Kind::Float, device));
    mask.masked_fill(&seen.logical_not(), f64::NEG_INFINITY).unsqueeze(1)
}
