//! The networks of pretraining and their losses: the paper's objective and the baselines (P3-P6, P8).

use net::layer::{LayerNorm, Linear};
use net::loss::mim::normalised_pixels;
use net::loss::scl::scl_with_grad;
use net::loss::{CrossEntropy, Term, mim};
use net::mae::{Mae, MaeConfig, Masking, sincos_positions};
use net::vit::{Block, BlockShape};
use tch::nn::{Init, Path, VarStore};
use tch::{Kind, Tensor};

use super::has;
use super::preset::{Baseline, Kind as MethodKind, PretrainPreset};
use super::step::Micro;
use crate::error::Result;

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
    /// Its weight.
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
#[derive(Debug)]
pub struct Contrast {
    /// The terms.
    pub terms: Vec<Valued>,
    /// Weighted gradient with respect to each embedding; `None` where it has none.
    pub grads: Vec<Option<Tensor>>,
}

/// A network and its losses.
#[derive(Debug)]
pub struct Method {
    mae: Mae,
    preset: PretrainPreset,
    extra: Extra,
}

#[derive(Debug)]
enum Extra {
    None,
    /// A linear head on the class token.
    Supervised(Linear),
    /// Two layers on the mean of the visible tokens.
    Supmae(Mlp),
    Cmae(Box<Cmae>),
}

/// Linear, norm, GELU, linear. The norm is over an image's own values, so that a batch may be cut.
#[derive(Debug)]
struct Mlp {
    first: Linear,
    norm: LayerNorm,
    second: Linear,
}

impl Mlp {
    fn new(p: &Path, input: i64, hidden: i64, output: i64) -> Self {
        let init = Init::Randn { mean: 0.0, stdev: 0.02 };
        Self {
            first: Linear::new(&(p / "fc1"), input, hidden, true, init),
            norm: LayerNorm::new(&(p / "norm"), hidden, 1e-6),
            second: Linear::new(&(p / "fc2"), hidden, output, true, init),
        }
    }

    fn forward(&self, x: &Tensor) -> Tensor {
        self.second.forward(&self.norm.forward(&self.first.forward(x)).gelu("none"))
    }
}

#[derive(Debug)]
struct Cmae {
    mask_token: Tensor,
    positions: Tensor,
    blocks: Vec<Block>,
    norm: LayerNorm,
    projector: Mlp,
    predictor: Mlp,
    target: Mae,
    target_projector: Mlp,
    constants: Baseline,
    /// (average, weights) of every averaged parameter.
    pairs: Vec<(Tensor, Tensor)>,
}

/// Prefix of the averaged encoder's names.
const TARGET: &str = "target";

/// The encoder's tensors among a pretraining network's, by timm's names.
#[must_use]
pub fn encoder_tensors(all: &[(String, Tensor)]) -> Vec<(String, Tensor)> {
    let of_encoder = |n: &str| {
        ["patch_embed.", "blocks.", "norm."].iter().any(|p| n.starts_with(p))
            || n == "cls_token"
            || n == "pos_embed"
    };
    let kept = all.iter().filter(|(n, _)| of_encoder(n));
    kept.map(|(n, t)| (n.clone(), t.shallow_clone())).collect()
}

fn unit(x: &Tensor) -> Tensor {
    let x = x.to_kind(Kind::Float);
    let squared = x.square().sum_dim_intlist([-1i64].as_slice(), true, None);
    &x * squared.clamp_min(1e-24).rsqrt()
}

/// Every tile seen, in order.
fn all_seen(config: &MaeConfig, n: i64, like: &Tensor) -> Masking {
    let order = Tensor::arange(config.tiles(), (Kind::Float, like.device()));
    Masking::from_noise(&order.expand([n, -1], false), config.tiles())
}

impl Cmae {
    fn new(vs: &VarStore, config: &MaeConfig, b: &Baseline) -> Result<Self> {
        let root = vs.root();
        let (p, d) = (&root / "feature", config.dim);
        let shape = BlockShape {
            dim: d,
            heads: config.heads,
            hidden: 4 * d,
            qkv_bias: true,
            drop_path: 0.0,
            init: Init::Randn { mean: 0.0, stdev: 0.02 },
        };
        let positions = sincos_positions(d, config.grid(), true).to_device(vs.device());
        let target_root = &root / TARGET;
        let small =
            MaeConfig { decoder_depth: 1, decoder_dim: 4, decoder_heads: 1, ..config.clone() };
        let (hidden, width) = (2 * d, config.projection);
        let made = Self {
            mask_token: p.var("mask_token", &[1, 1, d], Init::Randn { mean: 0.0, stdev: 0.02 }),
            positions,
            blocks: (0..b.feature_depth).map(|i| Block::new(&(&p / "blocks" / i), shape)).collect(),
            norm: LayerNorm::new(&(&p / "norm"), d, 1e-6),
            projector: Mlp::new(&(&root / "projector"), d, hidden, width),
            predictor: Mlp::new(&(&root / "predictor"), width, hidden, width),
            target: Mae::new(&target_root, &small)?,
            target_projector: Mlp::new(&(&target_root / "projector"), d, hidden, width),
            constants: b.clone(),
            pairs: vec![],
        };
        let all = vs.variables();
        let mut pairs = vec![];
        let mut names: Vec<_> = all.keys().cloned().collect();
        names.sort();
        for name in names {
            let Some(online) = name.strip_prefix("target.") else { continue };
            let average = all[&name].set_requires_grad(false);
            let averaged = online.starts_with("projector.")
                || !encoder_tensors(&[(online.to_string(), average.shallow_clone())]).is_empty();
            if averaged {
                tch::no_grad(|| average.shallow_clone().copy_(&all[online]));
                pairs.push((average, all[online].shallow_clone()));
            }
        }
        Ok(Self { pairs, ..made })
    }

    /// Online features of masked images: feature decoder over all tiles, mean, projected, predicted.
    fn online(&self, latent: &Tensor, masking: &Masking) -> Tensor {
        let (n, seen, d) = latent.size3().expect("[N, 1 + V, D]");
        let hidden = masking.restore.size()[1] + 1 - seen;
        let blanks = self.mask_token.to_kind(latent.kind()).expand([n, hidden, -1], false);
        let tokens = Tensor::cat(&[&latent.slice(1, 1, None, 1), &blanks], 1);
        let index = masking.restore.unsqueeze(-1).expand([-1, -1, d], false);
        let mut y = tokens.gather(1, &index, false) + self.positions.slice(1, 1, None, 1);
        for block in &self.blocks {
            y = block.forward(&y, true);
        }
        let mean = self.norm.forward(&y).mean_dim([1i64].as_slice(), false, None);
        unit(&self.predictor.forward(&self.projector.forward(&mean)))
    }

    /// Target features of whole images, without a graph.
    fn target(&self, x: &Tensor) -> Tensor {
        tch::no_grad(|| {
            let masking = all_seen(self.target.config(), x.size()[0], x);
            let latent = self.target.encode(x, &masking, false);
            let mean = latent.slice(1, 1, None, 1).mean_dim([1i64].as_slice(), false, None);
            unit(&self.target_projector.forward(&mean))
        })
    }
}

impl Method {
    /// Builds the network under the root of `vs`.
    ///
    /// # Errors
    /// Settings out of range.
    pub fn new(vs: &VarStore, preset: &PretrainPreset) -> Result<Self> {
        let config = preset.model.mae();
        let root = vs.root();
        let mae = Mae::new(&root, &config)?;
        let extra = match (preset.method, &preset.baseline) {
            (MethodKind::Supervised, _) => {
                Extra::Supervised(Linear::head(&(&root / "classifier"), config.dim, 2, 0.0))
            }
            (MethodKind::Supmae, _) => {
                Extra::Supmae(Mlp::new(&(&root / "classifier"), config.dim, config.dim, 2))
            }
            (MethodKind::Cmae, Some(b)) => Extra::Cmae(Box::new(Cmae::new(vs, &config, b)?)),
            _ => Extra::None,
        };
        Ok(Self { mae, preset: preset.clone(), extra })
    }

    /// Whether there is a reconstruction to show.
    #[must_use]
    pub fn reconstructs(&self) -> bool {
        match self.preset.method {
            MethodKind::Mithras => has(&self.preset, Term::Mim),
            MethodKind::Supervised => false,
            MethodKind::Supmae | MethodKind::Cmae => true,
        }
    }

    /// Whether anything is contrasted over the whole batch.
    #[must_use]
    pub fn contrasts(&self) -> bool {
        has(&self.preset, Term::Image)
            || has(&self.preset, Term::Token)
            || self.preset.method == MethodKind::Cmae
    }

    /// The masked autoencoder.
    #[must_use]
    pub fn mae(&self) -> &Mae {
        &self.mae
    }

    fn masking(&self, noise: &Tensor) -> Masking {
        Masking::from_noise(noise, self.mae.config().visible())
    }

    fn reconstruction(&self, latent: &Tensor, masking: &Masking, x: &Tensor) -> Valued {
        let weight = self.preset.objective.map_or(1.0, |o| o.mim);
        let prediction = self.mae.decode(latent, masking, true);
        let target = normalised_pixels(x, self.mae.config().patch);
        Valued { name: "mim", weight, value: mim(&prediction, &target, &masking.mask) }
    }

    /// One micro-batch forward; with `embed_only` the local terms are left out.
    pub fn forward(&self, micro: &Micro, embed_only: bool) -> Forward {
        match &self.extra {
            Extra::None => self.mithras(micro, embed_only),
            Extra::Supervised(head) => {
                let x = &micro.views;
                let masking = all_seen(self.mae.config(), x.size()[0], x);
                let latent = self.mae.encode(x, &masking, true);
                let logits = head.forward(&latent.select(1, 0));
                let value = CrossEntropy::default().forward(&logits, &micro.view_labels());
                let local = vec![Valued { name: "cross_entropy", weight: 1.0, value }];
                Forward { embeddings: vec![], local }
            }
            Extra::Supmae(head) => {
                let masking = self.masking(&micro.noise);
                let latent = self.mae.encode(&micro.views, &masking, true);
                let mean = latent.slice(1, 1, None, 1).mean_dim([1i64].as_slice(), false, None);
                let logits = head.forward(&mean);
                let value = CrossEntropy::default().forward(&logits, &micro.view_labels());
                let weight = self.preset.baseline.as_ref().map_or(0.0, |b| b.weight);
                let local = vec![
                    self.reconstruction(&latent, &masking, &micro.views),
                    Valued { name: "cross_entropy", weight, value },
                ];
                Forward { embeddings: vec![], local }
            }
            Extra::Cmae(cmae) => {
                let first = |t: &Tensor| t.slice(0, 0, None, 2);
                let x = first(&micro.views);
                let masking = self.masking(&first(&micro.noise));
                let latent = self.mae.encode(&x, &masking, true);
                let local = if embed_only {
                    vec![]
                } else {
                    vec![self.reconstruction(&latent, &masking, &x)]
                };
                let labels = micro.labels.shallow_clone();
                let second = micro.views.slice(0, 1, None, 2);
                let embeddings = vec![
                    Embedding { z: cmae.online(&latent, &masking), labels: labels.shallow_clone() },
                    Embedding { z: cmae.target(&second), labels },
                ];
                Forward { embeddings, local }
            }
        }
    }

    fn mithras(&self, micro: &Micro, embed_only: bool) -> Forward {
        let masking = self.masking(&micro.noise);
        let latent = self.mae.encode(&micro.views, &masking, true);
        let mut embeddings = vec![];
        if has(&self.preset, Term::Image) {
            let z = self.mae.project_image(&latent);
            embeddings.push(Embedding { z, labels: micro.view_labels() });
        }
        if has(&self.preset, Term::Token) {
            let z = self.mae.project_tokens(&latent);
            let labels = masking.visible_of(&micro.cells).reshape([-1]);
            let d = *z.size().last().expect("[2n, V, D]");
            embeddings.push(Embedding { z: z.reshape([-1, d]), labels });
        }
        let mut local = vec![];
        if has(&self.preset, Term::Mim) && !embed_only {
            local.push(self.reconstruction(&latent, &masking, &micro.views));
        }
        Forward { embeddings, local }
    }

    /// The contrast of everything gathered, embeddings in the order of `Forward::embeddings`.
    #[must_use]
    pub fn contrast(&self, gathered: &[Embedding]) -> Contrast {
        if let Extra::Cmae(cmae) = &self.extra {
            return info_nce(&gathered[0].z, &gathered[1].z, &cmae.constants);
        }
        let o = self.preset.objective.unwrap_or(net::loss::Objective {
            mim: 0.0,
            image: 0.0,
            token: 0.0,
        });
        let named = [("image", Term::Image, o.image), ("token", Term::Token, o.token)];
        let kept = named.into_iter().filter(|(_, term, _)| has(&self.preset, *term));
        let (mut terms, mut grads) = (vec![], vec![]);
        for ((name, _, weight), e) in kept.zip(gathered) {
            let (value, grad) = scl_with_grad(&e.z, &e.labels, &self.preset.scl);
            terms.push(Valued { name, weight, value });
            grads.push(Some(grad * weight));
        }
        Contrast { terms, grads }
    }

    /// After the optimiser's step: the averaged encoder follows.
    pub fn after_update(&self) {
        if let Extra::Cmae(cmae) = &self.extra {
            let m = cmae.constants.momentum;
            tch::no_grad(|| {
                for (average, weight) in &cmae.pairs {
                    let next = average * m + weight * (1.0 - m);
                    average.shallow_clone().copy_(&next);
                }
            });
        }
    }
}

/// InfoNCE of the online features `[N, D]` against the target's, each image its own class.
fn info_nce(online: &Tensor, target: &Tensor, b: &Baseline) -> Contrast {
    let leaf = online.detach().set_requires_grad(true);
    let own = Tensor::arange(leaf.size()[0], (Kind::Int64, leaf.device()));
    let logits = leaf.matmul(&target.detach().transpose(0, 1)) / b.temperature;
    let value = CrossEntropy::default().forward(&logits, &own);
    value.backward();
    let grads = vec![Some(leaf.grad() * b.weight), None];
    let terms = vec![Valued { name: "contrast", weight: b.weight, value: value.detach() }];
    Contrast { terms, grads }
}
