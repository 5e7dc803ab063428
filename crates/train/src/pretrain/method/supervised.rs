//! Cross-entropy on the class token of whole views.

use net::layer::Linear;
use net::loss::CrossEntropy;
use net::mae::Mae;

use super::parts::{all_seen, check_baseline};
use super::{Forward, Method, Pretraining, Valued};
use crate::pretrain::micro::Micro;

pub(super) const METHOD: Method = Method {
    name: "supervised",
    needs_labels: |_| true,
    check: |p| check_baseline(p, false),
    build: |vs, p| {
        let (config, root) = (p.model.mae(), vs.root());
        let mae = Mae::new(&root, &config)?;
        let head = Linear::head(&(&root / "classifier"), config.dim, 2, 0.0);
        Ok(Box::new(Network { mae, head }))
    },
};

#[derive(Debug)]
struct Network {
    mae: Mae,
    head: Linear,
}

impl Pretraining for Network {
    fn mae(&self) -> &Mae {
        &self.mae
    }

    fn reconstructs(&self) -> bool {
        false
    }

    fn forward(&self, micro: &Micro, _embed_only: bool) -> Forward {
        let x = &micro.views;
        let masking = all_seen(self.mae.config(), x.size()[0], x);
        let latent = self.mae.encode(x, &masking, true);
        let logits = self.head.forward(&latent.select(1, 0));
        let value = CrossEntropy::default().forward(&logits, &micro.view_labels());
        let local = vec![Valued { name: "cross_entropy", weight: 1.0, value }];
        Forward { embeddings: vec![], local }
    }
}
