//! Masked reconstruction and contrast of images and tokens, as weighted by an objective (Eq. 1-5).

use net::loss::{Objective, Scl, Term, scl_image, scl_token};
use net::mae::Mae;

use super::parts::{masking, reconstruction, total};
use super::{Contrast, Embedding, Forward, Method, Pretraining, Valued, WeightedTerm, mae};
use crate::pretrain::micro::Micro;
use crate::pretrain::preset::{Fault, PretrainPreset};

pub(super) const METHOD: Method = Method {
    name: "mithras",
    needs_labels: |p| p.objective.is_some_and(|o| o.image > 0.0 || o.token > 0.0),
    check,
    build: |vs, p| {
        let objective = p.objective.unwrap_or(Objective { mim: 1.0, image: 0.0, token: 0.0 });
        if !(objective.has(Term::Image) || objective.has(Term::Token)) {
            return Ok(Box::new(mae::Network::new(vs, p, objective)?));
        }
        let mae = Mae::new(&vs.root(), &p.model.mae())?;
        Ok(Box::new(Network { mae, objective, scl: p.scl }))
    },
};

fn check(p: &PretrainPreset) -> Result<(), Fault> {
    match (&p.objective, &p.baseline) {
        (Some(o), None) => o.check().map_err(|e| Fault::new("objective", e)),
        _ => Err(Fault::new("objective", "`mithras` needs it, and no [baseline]")),
    }
}

#[derive(Debug)]
struct Network {
    mae: Mae,
    objective: Objective,
    scl: Scl,
}

impl Pretraining for Network {
    fn mae(&self) -> &Mae {
        &self.mae
    }

    fn reconstructs(&self) -> bool {
        self.objective.has(Term::Mim)
    }

    fn contrasts(&self) -> bool {
        true
    }

    fn forward(&self, micro: &Micro, embed_only: bool) -> Forward {
        let masking = masking(&self.mae, &micro.noise);
        let latent = self.mae.encode(&micro.views, &masking, true);
        let mut embeddings = vec![];
        if self.objective.has(Term::Image) {
            let z = self.mae.project_image(&latent);
            embeddings.push(Embedding { z, labels: micro.view_labels() });
        }
        if self.objective.has(Term::Token) {
            let z = self.mae.project_tokens(&latent);
            let labels = masking.select_visible(&micro.cells).reshape([-1]);
            let d = *z.size().last().expect("[2n, V, D]");
            embeddings.push(Embedding { z: z.reshape([-1, d]), labels });
        }
        let mut local = vec![];
        if self.objective.has(Term::Mim) && !embed_only {
            let weight = self.objective.mim;
            local.push(reconstruction(&self.mae, weight, &latent, &masking, &micro.views));
        }
        Forward { embeddings, local }
    }

    fn contrast(&self, gathered: &[Embedding]) -> Contrast {
        let leaves: Vec<_> =
            gathered.iter().map(|e| e.z.detach().set_requires_grad(true)).collect();
        // Reconstruction is a mean over images and is summed where they are.
        let objective = Objective { mim: 0.0, ..self.objective };
        let mut next = leaves.iter().zip(gathered);
        let (total, parts) = objective.total(|term| {
            let (z, e) = next.next().expect("one embedding for each term, in order");
            match term {
                Term::Token => scl_token(z, &e.labels, &self.scl),
                Term::Image | Term::Mim => scl_image(z, &e.labels, &self.scl),
            }
        });
        total.backward();
        let terms = parts.into_iter().zip(objective.terms()).map(|((term, value), (_, weight))| {
            Valued { name: term.name(), weight, value: value.detach() }
        });
        Contrast { terms: terms.collect(), grads: leaves.iter().map(|z| Some(z.grad())).collect() }
    }

    fn total(&self, terms: &[WeightedTerm]) -> f64 {
        total(&self.objective, terms)
    }
}
