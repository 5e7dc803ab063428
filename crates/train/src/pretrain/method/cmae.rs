//! Contrastive masked autoencoder: reconstruction, and InfoNCE against an averaged encoder.

use net::layer::LayerNorm;
use net::loss::CrossEntropy;
use net::mae::{Mae, MaeConfig, Masking, sincos_positions};
use net::vit::{Block, BlockShape};
use tch::nn::{Init, VarStore};
use tch::{Kind, Tensor};

use super::parts::{Mlp, all_seen, check_baseline, masking, mean_token, reconstruction, unit};
use super::{Contrast, Embedding, Forward, Method, Pretraining, Valued, encoder_tensors};
use crate::error::{Result, TrainError};
use crate::pretrain::micro::Micro;
use crate::pretrain::preset::{Baseline, PretrainPreset};

pub(super) const METHOD: Method = Method {
    name: "cmae",
    needs_labels: |_| false,
    check: |p| check_baseline(p, true),
    build: |vs, p| Ok(Box::new(Network::new(vs, p)?)),
};

/// The online network and what is around it.
#[derive(Debug)]
struct Network {
    mae: Mae,
    cmae: Cmae,
}

impl Network {
    fn new(vs: &VarStore, p: &PretrainPreset) -> Result<Self> {
        let config = p.model.mae();
        let mae = Mae::new(&vs.root(), &config)?;
        let constants = p.baseline.as_ref().ok_or_else(|| TrainError::Preset {
            path: "baseline".into(),
            reason: "is missing".into(),
        })?;
        let cmae = Cmae::new(vs, &config, constants)?;
        Ok(Self { mae, cmae })
    }
}

impl Pretraining for Network {
    fn mae(&self) -> &Mae {
        &self.mae
    }

    fn contrasts(&self) -> bool {
        true
    }

    fn forward(&self, micro: &Micro, embed_only: bool) -> Forward {
        let first = |t: &Tensor| t.slice(0, 0, None, 2);
        let x = first(&micro.views);
        let masking = masking(&self.mae, &first(&micro.noise));
        let latent = self.mae.encode(&x, &masking, true);
        let local = if embed_only {
            vec![]
        } else {
            vec![reconstruction(&self.mae, 1.0, &latent, &masking, &x)]
        };
        let labels = micro.labels.shallow_clone();
        let second = micro.views.slice(0, 1, None, 2);
        let embeddings = vec![
            Embedding { z: self.cmae.online(&latent, &masking), labels: labels.shallow_clone() },
            Embedding { z: self.cmae.target(&second), labels },
        ];
        Forward { embeddings, local }
    }

    fn contrast(&self, gathered: &[Embedding]) -> Contrast {
        info_nce(&gathered[0].z, &gathered[1].z, &self.cmae.constants)
    }

    /// The averaged encoder follows.
    fn after_update(&self) {
        let m = self.cmae.constants.momentum;
        tch::no_grad(|| {
            for (average, weight) in &self.cmae.pairs {
                let next = average * m + weight * (1.0 - m);
                average.shallow_clone().copy_(&next);
            }
        });
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

impl Cmae {
    fn new(vs: &VarStore, config: &MaeConfig, b: &Baseline) -> Result<Self> {
        let root = vs.root();
        let (p, d) = (&root / "feature", config.dim);
        let init = Init::Randn { mean: 0.0, stdev: 0.02 };
        let shape = BlockShape::plain(d, config.heads, init);
        let positions = sincos_positions(d, config.grid(), true).to_device(vs.device());
        let target_root = &root / TARGET;
        let small =
            MaeConfig { decoder_depth: 1, decoder_dim: 4, decoder_heads: 1, ..config.clone() };
        let (hidden, width) = (2 * d, config.projection);
        let made = Self {
            mask_token: p.var("mask_token", &[1, 1, d], init),
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
                || !encoder_tensors(&[(online.to_string(), average.shallow_clone())].into())
                    .is_empty();
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
            let mean = mean_token(&latent);
            unit(&self.target_projector.forward(&mean))
        })
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
