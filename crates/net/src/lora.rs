//! Low-rank adaptation (Hu et al. 2021): a frozen weight `W` and next to it `alpha / rank * B A`,
//! which alone is trained. Equal to `peft`'s `LoraConfig` without dropout and with plain scaling.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tch::nn::{Init, VarStore};
use tch::{Kind, Tensor};

use crate::encoder::{Architecture, Encoder, entry};
use crate::error::{NetError, Result};
use crate::layer::Adapter;

/// Which linear layers of every block get an adapter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Target {
    /// Query, key and value, which are one layer.
    Qkv,
    /// The projection after attention.
    Proj,
    /// Both layers of the MLP.
    Mlp,
}

impl Target {
    fn has(self, name: &str) -> bool {
        match self {
            Self::Qkv => name.ends_with(".attn.qkv"),
            Self::Proj => name.ends_with(".attn.proj"),
            Self::Mlp => name.ends_with(".mlp.fc1") || name.ends_with(".mlp.fc2"),
        }
    }
}

/// Settings, as they are in a preset.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lora {
    /// Rank of what is learnt.
    pub rank: i64,
    /// The product of both matrices is scaled by `alpha / rank`.
    pub alpha: f64,
    /// Layers with an adapter.
    pub targets: Vec<Target>,
}

impl Lora {
    /// Checks ranges, and that the encoder of this name can be adapted.
    ///
    /// # Errors
    /// [`NetError::Encoder`] with the key.
    pub fn check(&self, encoder: &str) -> Result<()> {
        if self.rank < 1 {
            return Err(NetError::config("lora.rank", format!("{} is below 1", self.rank)));
        }
        if !(self.alpha.is_finite() && self.alpha > 0.0) {
            return Err(NetError::config("lora.alpha", format!("{} is not positive", self.alpha)));
        }
        if self.targets.is_empty() {
            return Err(NetError::config("lora.targets", "names none of qkv, proj, mlp"));
        }
        let transformer = |a| {
            use Architecture::{SwinTiny, SwinTinyConvStem, Vit};
            matches!(a, Vit(_) | SwinTiny | SwinTinyConvStem)
        };
        match entry(encoder) {
            Some(e) if !transformer(e.architecture) => {
                let why = format!("`{encoder}` has no attention to adapt; leave the table out");
                Err(NetError::config("lora", why))
            }
            _ => Ok(()),
        }
    }

    fn scaling(&self) -> f64 {
        self.alpha / self.rank as f64
    }

    /// Adds adapters to the layers meant of `net`, which is at the root of `vs`, and freezes all
    /// but them, the head, and the norm of a mean-pooling model, which no file of weights gives.
    /// Call it when the weights are loaded. As in `peft`, `A` is uniform within `1 / sqrt(in)` and `B` zero, so
    /// that the network gives what it gave. Returns the names that are trained.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub fn adapt(&self, vs: &VarStore, net: &mut dyn Encoder) -> Result<Vec<String>> {
        self.check(net.architecture())?;
        let head = net.head();
        for (name, linear) in net.linears() {
            if self.targets.iter().any(|t| t.has(&name)) {
                let path = name.split('.').fold(vs.root(), |p, part| p / part);
                let (output, input) = linear.weight.size2()?;
                let r = 1.0 / (input as f64).sqrt();
                linear.adapter = Some(Adapter {
                    a: path.var("lora_a", &[self.rank, input], Init::Uniform { lo: -r, up: r }),
                    b: path.var("lora_b", &[output, self.rank], Init::Const(0.0)),
                    scaling: self.scaling(),
                });
            }
        }
        let mut trained = vec![];
        for (name, t) in vs.variables() {
            let free = name.starts_with(head)
                || name.starts_with("fc_norm.")
                || name.ends_with(".lora_a")
                || name.ends_with(".lora_b");
            // Statistics and fixed tables take no gradient anyway.
            let learns = free && t.requires_grad();
            let _ = t.set_requires_grad(learns);
            if learns {
                trained.push(name);
            }
        }
        trained.sort();
        Ok(trained)
    }

    /// The tensors of an adapted network as those of a plain one: `W + alpha / rank * B A`, computed
    /// in f64.
    ///
    /// # Errors
    /// libtorch's own.
    pub fn merged(&self, mut all: BTreeMap<String, Tensor>) -> Result<BTreeMap<String, Tensor>> {
        let layers: Vec<String> =
            all.keys().filter_map(|n| Some(n.strip_suffix(".lora_a")?.to_owned())).collect();
        for layer in layers {
            let mut take = |part: &str| {
                let name = format!("{layer}.{part}");
                all.remove(&name).ok_or_else(|| NetError::config(name, "is missing"))
            };
            let (a, b, weight) = (take("lora_a")?, take("lora_b")?, take("weight")?);
            let double = |t: &Tensor| t.detach().to_kind(Kind::Double);
            let change = double(&b).f_matmul(&double(&a))? * self.scaling();
            let sum = (double(&weight) + change).to_kind(weight.kind());
            all.insert(format!("{layer}.weight"), sum);
        }
        Ok(all)
    }
}
