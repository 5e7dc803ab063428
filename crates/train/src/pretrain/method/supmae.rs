//! Supervised masked autoencoder: reconstruction, and cross-entropy on the visible tokens' mean.

use net::loss::CrossEntropy;
use net::mae::Mae;

use super::{
    Forward, Method, Mlp, Pretraining, Valued, check_baseline, masking, mean_token, reconstruction,
};
use crate::pretrain::step::Micro;

pub(super) const METHOD: Method = Method {
    name: "supmae",
    needs_labels: |_| true,
    check: |p| check_baseline(p, true),
    build: |vs, p| {
        let (config, root) = (p.model.mae(), vs.root());
        let mae = Mae::new(&root, &config)?;
        let head = Mlp::new(&(&root / "classifier"), config.dim, config.dim, 2);
        let weight = p.baseline.as_ref().map_or(0.0, |b| b.weight);
        Ok(Box::new(Network { mae, head, weight }))
    },
};

#[derive(Debug)]
struct Network {
    mae: Mae,
    /// Two layers.
    head: Mlp,
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
        let logits = self.head.forward(&mean_token(&latent));
        let value = CrossEntropy::default().forward(&logits, &micro.view_labels());
        let local = vec![
            reconstruction(&self.mae, 1.0, &latent, &masking, &micro.views),
            Valued { name: "cross_entropy", weight: self.weight, value },
        ];
        Forward { embeddings: vec![], local }
    }
}
