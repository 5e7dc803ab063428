//! Exponential moving average of a model's weights.

use std::collections::BTreeMap;

use tch::Tensor;
use tch::nn::VarStore;

use crate::error::Result;
use crate::optim::restore_state;
use crate::shim;

/// A shadow copy of every variable: parameters are averaged, batch-norm statistics are copied.
#[derive(Debug)]
pub struct Ema {
    decay: f64,
    names: Vec<String>,
    shadow: Vec<Tensor>,
}

impl Ema {
    /// Starts at the present weights. `decay` in [0, 1), e.g. 0.999.
    #[must_use]
    pub fn new(vs: &VarStore, decay: f64) -> Self {
        let all: BTreeMap<String, Tensor> = vs.variables().into_iter().collect();
        let shadow = all.values().map(|t| t.detach().copy()).collect();
        Self { decay, names: all.into_keys().collect(), shadow }
    }

    /// `shadow <- decay shadow + (1 - decay) weights`; call after each optimiser step.
    ///
    /// # Errors
    /// libtorch's own.
    pub fn update(&mut self, vs: &VarStore) -> Result<()> {
        let all = vs.variables();
        let (mut shadows, mut weights) = (Vec::new(), Vec::new());
        for (name, shadow) in self.names.iter().zip(&mut self.shadow) {
            let now = &all[name];
            if now.requires_grad() {
                shadows.push(shadow.shallow_clone());
                weights.push(now.detach());
            } else {
                tch::no_grad(|| shadow.copy_(now));
            }
        }
        shim::lerp(&shadows, &weights, 1.0 - self.decay)
    }

    /// Exchanges shadow and weights; call twice to evaluate with the average.
    pub fn swap(&mut self, vs: &VarStore) {
        let all = vs.variables();
        tch::no_grad(|| {
            for (name, shadow) in self.names.iter().zip(&mut self.shadow) {
                let mut weight = all[name].shallow_clone();
                let kept = weight.detach().copy();
                weight.copy_(shadow);
                shadow.copy_(&kept);
            }
        });
    }

    /// The shadow by name, for saving.
    #[must_use]
    pub fn state(&self) -> BTreeMap<String, Tensor> {
        self.names.iter().cloned().zip(self.shadow.iter().map(Tensor::shallow_clone)).collect()
    }

    /// Restores what [`Self::state`] gave.
    ///
    /// # Errors
    /// [`crate::NetError::Encoder`] with the name that is missing or has another shape.
    pub fn load_state(&mut self, state: &BTreeMap<String, Tensor>) -> Result<()> {
        for (name, shadow) in self.names.iter().zip(&mut self.shadow) {
            restore_state(shadow, name, state)?;
        }
        Ok(())
    }
}
