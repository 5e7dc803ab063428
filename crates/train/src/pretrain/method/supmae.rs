//! Supervised masked autoencoder: reconstruction, and cross-entropy on the visible tokens' mean.

use net::loss::CrossEntropy;
use net::mae::{ClassHead, Mae};

use super::parts::{check_baseline, masking, reconstruction};
use super::{Forward, Method, Pretraining, Valued};
use crate::pretrain::micro::Micro;

pub(super) const METHOD: Method = Method {
    name: "supmae",
    needs_labels: |_| true,
    check: |p| check_baseline(p, true),
    build: |vs, p| {
        let (config, root) = (p.model.mae(), vs.root());
        let mae = Mae::new(&root, &config)?;
        let head = ClassHead::new(&(&root / "classifier"), config.dim, 2);
        let weight = p.baseline.as_ref().map_or(0.0, |b| b.weight);
        Ok(Box::new(Network { mae, head, weight }))
    },
};

#[derive(Debug)]
struct Network {
    mae: Mae,
    /// Its batch norm goes by the views of one micro-batch, as the published one by those of a GPU.
    head: ClassHead,
    /// Of the cross-entropy.
    weight: f64,
}

impl Pretraining for Network {
    fn mae(&self) -> &Mae {
        &self.mae
    }

    fn forward(&self, micro: &Micro, _embed_only: bool) -> Forward {
        let masking = masking(&self.mae, &micro.noise);
        let latent = self.mae.encode(&micro.views, &masking, true);
        let logits = self.head.forward(&latent, true);
        let value = CrossEntropy::default().forward(&logits, &micro.view_labels());
        let local = vec![
            reconstruction(&self.mae, 1.0, &latent, &masking, &micro.views),
            Valued { name: "cross_entropy", weight: self.weight, value },
        ];
        Forward { embeddings: vec![], local }
    }
}
