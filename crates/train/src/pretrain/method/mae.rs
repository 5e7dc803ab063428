//! Masked autoencoder: reconstruction alone.

use net::loss::Objective;
use net::mae::Mae;
use tch::nn::VarStore;

use super::parts::{masking, reconstruction, total};
use super::{Forward, Pretraining, WeightedTerm};
use crate::error::Result;
use crate::pretrain::micro::Micro;
use crate::pretrain::preset::PretrainPreset;

/// The network and the weight of its one term.
#[derive(Debug)]
pub(super) struct Network {
    mae: Mae,
    objective: Objective,
}

impl Network {
    pub(super) fn new(vs: &VarStore, p: &PretrainPreset, objective: Objective) -> Result<Self> {
        Ok(Self { mae: Mae::new(&vs.root(), &p.model.mae())?, objective })
    }
}

impl Pretraining for Network {
    fn mae(&self) -> &Mae {
        &self.mae
    }

    fn forward(&self, micro: &Micro, _embed_only: bool) -> Forward {
        let masking = masking(&self.mae, &micro.noise);
        let latent = self.mae.encode(&micro.views, &masking, true);
        let weight = self.objective.mim;
        let local = vec![reconstruction(&self.mae, weight, &latent, &masking, &micro.views)];
        Forward { embeddings: vec![], local }
    }

    fn total(&self, terms: &[WeightedTerm]) -> f64 {
        total(&self.objective, terms)
    }
}
