//! Optimisers whose state can be saved and restored exactly, parameter groups equal to timm's.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tch::nn::VarStore;
use tch::{Kind, Tensor};

use crate::error::{NetError, Result};
use crate::shim;

/// Parameters that share a rate scale and a weight decay.
#[derive(Clone, Debug, PartialEq)]
pub struct ParamGroup {
    /// Names in the variable store, sorted.
    pub names: Vec<String>,
    /// Multiplies the learning rate.
    pub lr_scale: f64,
    /// Decoupled weight decay.
    pub weight_decay: f64,
}

/// All trainable variables by name.
fn trainable(vs: &VarStore) -> BTreeMap<String, Tensor> {
    vs.variables().into_iter().filter(|(_, t)| t.requires_grad()).collect()
}

/// Two groups, as timm's `param_groups_weight_decay`: no decay for biases, norms, everything
/// one-dimensional, and the names `keep` states (e.g. `pos_embed`).
#[must_use]
pub fn groups_weight_decay(
    vs: &VarStore,
    weight_decay: f64,
    keep: impl Fn(&str) -> bool,
) -> Vec<ParamGroup> {
    groups_scaled(vs, weight_decay, keep, |_| 1.0)
}

/// Groups with layer-wise rate decay, as timm's `param_groups_layer_decay`: the rate of layer `l`
/// of `layers` is scaled by `decay^(layers - 1 - l)`.
#[must_use]
pub fn groups_layer_decay(
    vs: &VarStore,
    weight_decay: f64,
    decay: f64,
    layers: usize,
    keep: impl Fn(&str) -> bool,
    layer: impl Fn(&str) -> usize,
) -> Vec<ParamGroup> {
    groups_scaled(vs, weight_decay, keep, |name| {
        decay.powi(i32::try_from(layers - 1 - layer(name).min(layers - 1)).unwrap_or(i32::MAX))
    })
}

/// Groups by any rule: `lr_scale` per name, decay as in [`groups_weight_decay`]. A scale of zero
/// leaves the parameter out.
#[must_use]
pub fn groups_scaled(
    vs: &VarStore,
    weight_decay: f64,
    keep: impl Fn(&str) -> bool,
    lr_scale: impl Fn(&str) -> f64,
) -> Vec<ParamGroup> {
    let mut groups: Vec<ParamGroup> = Vec::new();
    for (name, tensor) in trainable(vs) {
        let plain = tensor.dim() <= 1 || keep(&name);
        let decay = if plain { 0.0 } else { weight_decay };
        let scale = lr_scale(&name);
        if scale == 0.0 {
            continue;
        }
        match groups.iter_mut().find(|g| g.lr_scale == scale && g.weight_decay == decay) {
            Some(g) => g.names.push(name),
            None => {
                groups.push(ParamGroup { names: vec![name], lr_scale: scale, weight_decay: decay });
            }
        }
    }
    groups
}

/// AdamW's constants.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdamWConfig {
    /// Decay of the first moment.
    pub beta1: f64,
    /// Decay of the second moment.
    pub beta2: f64,
    /// Added to the root of the second moment.
    pub eps: f64,
}

impl Default for AdamWConfig {
    /// 0.9, 0.999, 1e-8: torch's. Pretraining takes 0.9, 0.95.
    fn default() -> Self {
        Self { beta1: 0.9, beta2: 0.999, eps: 1e-8 }
    }
}

#[derive(Debug)]
struct Slot {
    group: ParamGroup,
    params: Vec<Tensor>,
    exp_avg: Vec<Tensor>,
    exp_avg_sq: Vec<Tensor>,
}

/// AdamW (Loshchilov and Hutter) through libtorch's fused kernel, equal to
/// `torch.optim.AdamW(fused=True)`. Moments are f32, on the parameters' device.
#[derive(Debug)]
pub struct AdamW {
    config: AdamWConfig,
    slots: Vec<Slot>,
    step: Tensor,
}

fn gather(vs: &VarStore, groups: &[ParamGroup]) -> Result<Vec<Vec<Tensor>>> {
    let all = vs.variables();
    groups
        .iter()
        .map(|g| {
            g.names
                .iter()
                .map(|n| {
                    all.get(n).map(Tensor::shallow_clone).ok_or_else(|| {
                        NetError::config(n, "this parameter group names no variable of the model")
                    })
                })
                .collect()
        })
        .collect()
}

fn defined_grads(params: &[Tensor]) -> (Vec<usize>, Vec<Tensor>) {
    params
        .iter()
        .enumerate()
        .filter_map(|(i, p)| {
            let g = p.grad();
            g.defined().then_some((i, g))
        })
        .unzip()
}

fn pick(tensors: &[Tensor], at: &[usize]) -> Vec<Tensor> {
    at.iter().map(|&i| tensors[i].shallow_clone()).collect()
}

impl AdamW {
    /// Make it after the weights are loaded, moved and laid out.
    ///
    /// # Errors
    /// [`NetError::Encoder`] when a group names no variable.
    pub fn new(vs: &VarStore, groups: Vec<ParamGroup>, config: AdamWConfig) -> Result<Self> {
        let params = gather(vs, &groups)?;
        let zeros = |ps: &[Tensor]| ps.iter().map(|p| p.detach().zeros_like()).collect::<Vec<_>>();
        let slots = groups
            .into_iter()
            .zip(params)
            .map(|(group, params)| Slot {
                exp_avg: zeros(&params),
                exp_avg_sq: zeros(&params),
                params,
                group,
            })
            .collect();
        Ok(Self { config, slots, step: Tensor::zeros([], (Kind::Float, vs.device())) })
    }

    /// The groups.
    pub fn groups(&self) -> impl Iterator<Item = &ParamGroup> {
        self.slots.iter().map(|s| &s.group)
    }

    /// Forgets all gradients.
    pub fn zero_grad(&mut self) {
        for p in self.slots.iter_mut().flat_map(|s| &mut s.params) {
            p.zero_grad();
        }
    }

    /// Scales all gradients so that their common L2 norm is at most `max` (torch's
    /// `clip_grad_norm_`) and returns the norm before. NaN or infinite norms are returned and
    /// leave the gradients alone: stop there.
    ///
    /// # Errors
    /// libtorch's own.
    pub fn clip_grad_norm(&mut self, max: f64) -> Result<f64> {
        let grads: Vec<Tensor> =
            self.slots.iter().flat_map(|s| defined_grads(&s.params).1).collect();
        let norm = shim::total_norm(&grads)?;
        let factor = max / (norm + 1e-6);
        if norm.is_finite() && factor < 1.0 {
            shim::scale(&grads, factor)?;
        }
        Ok(norm)
    }

    /// One step with this learning rate (times each group's scale). Parameters without a gradient
    /// stay.
    ///
    /// # Errors
    /// libtorch's own.
    pub fn step(&mut self, lr: f64) -> Result<()> {
        let _ = tch::no_grad(|| self.step.g_add_scalar_(1.0));
        for slot in &self.slots {
            let (at, grads) = defined_grads(&slot.params);
            let call = shim::AdamwCall {
                lr: lr * slot.group.lr_scale,
                betas: (self.config.beta1, self.config.beta2),
                weight_decay: slot.group.weight_decay,
                eps: self.config.eps,
            };
            shim::fused_adamw(
                &pick(&slot.params, &at),
                &grads,
                &pick(&slot.exp_avg, &at),
                &pick(&slot.exp_avg_sq, &at),
                &self.step,
                &call,
            )?;
        }
        Ok(())
    }

    /// Everything needed to continue, by name: `step`, `exp_avg.<name>`, `exp_avg_sq.<name>`.
    #[must_use]
    pub fn state(&self) -> BTreeMap<String, Tensor> {
        let mut out = BTreeMap::from([("step".to_string(), self.step.shallow_clone())]);
        for s in &self.slots {
            for (i, name) in s.group.names.iter().enumerate() {
                out.insert(format!("exp_avg.{name}"), s.exp_avg[i].shallow_clone());
                out.insert(format!("exp_avg_sq.{name}"), s.exp_avg_sq[i].shallow_clone());
            }
        }
        out
    }

    /// Restores what [`Self::state`] gave, exactly.
    ///
    /// # Errors
    /// [`NetError::Encoder`] with the name that is missing or has another shape.
    pub fn load_state(&mut self, state: &BTreeMap<String, Tensor>) -> Result<()> {
        restore_state(&mut self.step, "step", state)?;
        for s in &mut self.slots {
            for (i, name) in s.group.names.iter().enumerate() {
                restore_state(&mut s.exp_avg[i], &format!("exp_avg.{name}"), state)?;
                restore_state(&mut s.exp_avg_sq[i], &format!("exp_avg_sq.{name}"), state)?;
            }
        }
        Ok(())
    }
}

/// Copies the tensor called `name` into `into`.
pub(crate) fn restore_state(
    into: &mut Tensor,
    name: &str,
    state: &BTreeMap<String, Tensor>,
) -> Result<()> {
    let Some(from) = state.get(name) else {
        return Err(NetError::config(name, "missing in the saved optimiser state"));
    };
    if from.size() != into.size() {
        return Err(NetError::config(
            name,
            format!("saved with shape {:?}, the model has {:?}", from.size(), into.size()),
        ));
    }
    tch::no_grad(|| into.copy_(from));
    Ok(())
}

/// LARS as in the MAE reference: for matrices, weight decay joins the gradient and the trust
/// ratio `trust |p| / |g|` scales it; then momentum; then `p -= lr m`. One-dimensional parameters
/// have neither decay nor ratio.
#[derive(Debug)]
pub struct Lars {
    /// Momentum, 0.9.
    momentum: f64,
    /// Trust coefficient, 0.001.
    trust: f64,
    weight_decay: f64,
    names: Vec<String>,
    params: Vec<Tensor>,
    velocity: Vec<Tensor>,
}

impl Lars {
    /// Over all trainable variables; momentum 0.9, trust coefficient 0.001.
    #[must_use]
    pub fn new(vs: &VarStore, weight_decay: f64) -> Self {
        let (names, params): (Vec<_>, Vec<_>) = trainable(vs).into_iter().unzip();
        let velocity = params.iter().map(|p| p.detach().zeros_like()).collect();
        Self { momentum: 0.9, trust: 0.001, weight_decay, names, params, velocity }
    }

    /// The largest change of a matrix's norm, as a share of it, that steps with these learning rates
    /// can bring: a step moves it by at most `trust` times the rate, and momentum adds steps up.
    #[must_use]
    pub fn reach(&self, rates: impl Iterator<Item = f64>) -> f64 {
        self.trust / (1.0 - self.momentum) * rates.sum::<f64>()
    }

    /// Forgets all gradients.
    pub fn zero_grad(&mut self) {
        for p in &mut self.params {
            p.zero_grad();
        }
    }

    /// One step with this learning rate.
    pub fn step(&mut self, lr: f64) {
        tch::no_grad(|| {
            for (p, mu) in self.params.iter_mut().zip(&mut self.velocity) {
                let raw = p.grad();
                if !raw.defined() {
                    continue;
                }
                let g = if p.dim() > 1 {
                    let decayed = raw + &*p * self.weight_decay;
                    let (pn, gn) = (p.norm(), decayed.norm());
                    let ratio = &pn * self.trust / &gn;
                    // A zero weight or gradient (the head at its start) takes the plain step.
                    let usable = pn.gt(0.0).logical_and(&gn.gt(0.0));
                    decayed * ratio.where_self(&usable, &ratio.ones_like())
                } else {
                    raw
                };
                let next = &*mu * self.momentum + g;
                mu.copy_(&next);
                let moved = &*p - next * lr;
                p.copy_(&moved);
            }
        });
    }

    /// `velocity.<name>`.
    #[must_use]
    pub fn state(&self) -> BTreeMap<String, Tensor> {
        let named = self.names.iter().zip(&self.velocity);
        named.map(|(n, v)| (format!("velocity.{n}"), v.shallow_clone())).collect()
    }

    /// Restores what [`Self::state`] gave.
    ///
    /// # Errors
    /// [`NetError::Encoder`] with the name that is missing or has another shape.
    pub fn load_state(&mut self, state: &BTreeMap<String, Tensor>) -> Result<()> {
        for (name, v) in self.names.iter().zip(&mut self.velocity) {
            restore_state(v, &format!("velocity.{name}"), state)?;
        }
        Ok(())
    }
}
