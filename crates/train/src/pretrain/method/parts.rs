//! What the methods are made of.

use super::super::micro::Micro;
use super::super::preset::{Fault, PretrainPreset};
use std::collections::BTreeMap;

use crate::error::Result;
use net::layer::{LayerNorm, Linear};
use net::loss::mim::normalised_pixels;
use net::loss::{Objective, Term, mim};
use net::mae::{Mae, MaeConfig, Masking};
use tch::nn::{Init, Path, VarStore};
use tch::{Kind as Dtype, Tensor};

/// Embeddings to be contrasted over the whole batch: rows, and their labels.
#[derive(Debug)]
pub struct Embedding {
    /// `[rows, D]`, f32, unit length.
    pub z: Tensor,
    /// `[rows]`, i64.
    pub labels: Tensor,
}

/// A term of the objective.
#[derive(Debug)]
pub struct Valued {
    /// Its name in `terms.csv`.
    pub name: &'static str,
    /// Its factor in the sum.
    pub weight: f64,
    /// Its value, a scalar.
    pub value: Tensor,
}

/// What one micro-batch gives.
#[derive(Debug)]
pub struct Forward {
    /// To be contrasted.
    pub embeddings: Vec<Embedding>,
    /// Means over the micro-batch's images.
    pub local: Vec<Valued>,
}

/// Contrast over everything gathered.
#[derive(Debug, Default)]
pub struct Contrast {
    /// The terms.
    pub terms: Vec<Valued>,
    /// Weighted gradient with respect to each embedding; `None` where it has none.
    pub grads: Vec<Option<Tensor>>,
}

/// A network that pretrains an encoder, with its losses.
pub trait Pretraining: std::fmt::Debug {
    /// The masked autoencoder whose encoder is handed on.
    fn mae(&self) -> &Mae;

    /// Whether there is a reconstruction to show.
    fn reconstructs(&self) -> bool {
        true
    }

    /// Whether anything is contrasted over the whole batch.
    fn contrasts(&self) -> bool {
        false
    }

    /// One micro-batch forward; with `embed_only` the local terms may be left out.
    fn forward(&self, micro: &Micro, embed_only: bool) -> Forward;

    /// The contrast of everything gathered, embeddings in the order of [`Forward::embeddings`].
    fn contrast(&self, _gathered: &[Embedding]) -> Contrast {
        Contrast::default()
    }

    /// The objective's value from all of a step's terms.
    fn total(&self, terms: &[WeightedTerm]) -> f64 {
        terms.iter().map(|t| t.weight * t.value).sum()
    }

    /// After the optimiser's step.
    fn after_update(&self) {}
}

/// A term of the objective over a whole step.
pub struct WeightedTerm {
    /// Its name.
    pub name: &'static str,
    /// Its weight in the sum.
    pub weight: f64,
    /// Its value, without the weight.
    pub value: f64,
}

/// What is known of a method before its network is built.
pub(in crate::pretrain) struct Method {
    /// The word in presets.
    pub name: &'static str,
    /// Whether crops need labels.
    pub needs_labels: fn(&PretrainPreset) -> bool,
    /// What its preset must and must not hold.
    pub check: fn(&PretrainPreset) -> std::result::Result<(), Fault>,
    pub(in crate::pretrain) build: fn(&VarStore, &PretrainPreset) -> Result<Box<dyn Pretraining>>,
}

/// Masked reconstruction of views from their latent tokens, Eq. 4.
pub(super) fn reconstruction(
    mae: &Mae,
    weight: f64,
    latent: &Tensor,
    masking: &Masking,
    x: &Tensor,
) -> Valued {
    let prediction = mae.decode(latent, masking, true);
    let target = normalised_pixels(x, mae.config().patch);
    Valued { name: "mim", weight, value: mim(&prediction, &target, &masking.mask) }
}

pub(super) fn masking(mae: &Mae, noise: &Tensor) -> Masking {
    Masking::from_noise(noise, mae.config().visible())
}

/// Mean of the patch tokens.
pub(super) fn mean_token(latent: &Tensor) -> Tensor {
    latent.slice(1, 1, None, 1).mean_dim([1i64].as_slice(), false, None)
}

/// Of a method other than `mithras`: no objective, and constants where it has some.
pub(super) fn check_baseline(p: &PretrainPreset, wanted: bool) -> std::result::Result<(), Fault> {
    if p.objective.is_some() {
        return Err(Fault::new("objective", "is for method = \"mithras\" alone"));
    }
    match (&p.baseline, wanted) {
        (None, true) => Err(Fault::new("baseline", "is missing")),
        (Some(_), false) => {
            Err(Fault::new("baseline", format!("`{}` has no constants", p.method.method().name)))
        }
        _ => Ok(()),
    }
}

/// The encoder's tensors among a pretraining network's, by timm's names.
#[must_use]
pub fn encoder_tensors(all: &BTreeMap<String, Tensor>) -> BTreeMap<String, Tensor> {
    let is_own = |n: &str| {
        ["patch_embed.", "blocks.", "norm."].iter().any(|p| n.starts_with(p))
            || n == "cls_token"
            || n == "pos_embed"
    };
    let kept = all.iter().filter(|(n, _)| is_own(n));
    kept.map(|(n, t)| (n.clone(), t.shallow_clone())).collect()
}

pub(super) fn unit(x: &Tensor) -> Tensor {
    let x = x.to_kind(Dtype::Float);
    let squared = x.square().sum_dim_intlist([-1i64].as_slice(), true, None);
    &x * squared.clamp_min(1e-24).rsqrt()
}

/// Every tile seen, in order.
pub(super) fn all_seen(config: &MaeConfig, n: i64, like: &Tensor) -> Masking {
    let order = Tensor::arange(config.tiles(), (Dtype::Float, like.device()));
    Masking::from_noise(&order.expand([n, -1], false), config.tiles())
}

/// Linear, norm, GELU, linear. The norm is over an image's own values, so that a batch may be cut.
#[derive(Debug)]
pub(super) struct Mlp {
    pub(super) first: Linear,
    pub(super) norm: LayerNorm,
    pub(super) second: Linear,
}

impl Mlp {
    pub(super) fn new(p: &Path, input: i64, hidden: i64, output: i64) -> Self {
        let init = Init::Randn { mean: 0.0, stdev: 0.02 };
        Self {
            first: Linear::new(&(p / "fc1"), input, hidden, true, init),
            norm: LayerNorm::new(&(p / "norm"), hidden, 1e-6),
            second: Linear::new(&(p / "fc2"), hidden, output, true, init),
        }
    }

    pub(super) fn forward(&self, x: &Tensor) -> Tensor {
        self.second.forward(&self.norm.forward(&self.first.forward(x)).gelu("none"))
    }
}

/// The objective's value from its terms by name, Eq. 5.
pub(super) fn total(objective: &Objective, terms: &[WeightedTerm]) -> f64 {
    let value = |term: Term| {
        let found = terms.iter().find(|t| t.name == term.name());
        found.map_or(f64::NAN, |t| t.value)
    };
    objective.total(value).0
}
