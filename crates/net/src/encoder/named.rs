//! The networks behind the trait: names, layers and groups as timm has them.

use tch::Tensor;

use encoders::encoder::{NetworkConfig, NetworkShape};

use super::port::Encoder;
use crate::efficientnet::EfficientNet;
use crate::layer::Linear;
use crate::vit::Vit;

/// A network and its name in the table.
pub(super) struct Named<T> {
    pub(super) net: T,
    pub(super) name: &'static str,
}

/// The linear layers of a block in timm's names: query, key and value; projection; the MLP's two.
pub(super) fn named(block: String, linears: [&mut Linear; 4]) -> Vec<(String, &mut Linear)> {
    let names = ["attn.qkv", "attn.proj", "mlp.fc1", "mlp.fc2"];
    names.iter().map(|n| format!("{block}.{n}")).zip(linears).collect()
}

/// `blocks.<i>` of a name.
fn index_after<'a>(name: &'a str, prefix: &str) -> Option<(usize, &'a str)> {
    let (digits, rest) = name.strip_prefix(prefix)?.split_once('.')?;
    Some((digits.parse().ok()?, rest))
}

impl Encoder for Named<Vit> {
    fn config(&self) -> NetworkConfig {
        NetworkConfig::vit(self.name, *self.net.config())
    }

    fn embed(&self, x: &Tensor, train: bool) -> Tensor {
        self.net.embed(x, train)
    }

    fn forward(&self, x: &Tensor, train: bool) -> Tensor {
        self.net.forward(x, train)
    }

    fn layers(&self) -> usize {
        self.net.blocks.len() + 2
    }

    fn layer_index(&self, name: &str) -> usize {
        let stem = ["cls_token", "reg_token", "pos_embed", "patch_embed", "norm_pre"];
        if stem.iter().any(|s| name.starts_with(s)) {
            0
        } else if let Some((i, _)) = index_after(name, "blocks.") {
            i + 1
        } else if name.starts_with("norm") {
            self.net.blocks.len()
        } else {
            self.net.blocks.len() + 1
        }
    }

    fn no_decay(&self, name: &str) -> bool {
        ["pos_embed", "cls_token", "reg_token"].contains(&name)
    }

    fn linears(&mut self) -> Vec<(String, &mut Linear)> {
        let blocks = self.net.blocks.iter_mut().enumerate();
        blocks.flat_map(|(i, b)| named(format!("blocks.{i}"), b.linears())).collect()
    }
}

impl Named<EfficientNet> {
    fn blocks(&self) -> usize {
        self.net.trunk.blocks.iter().map(Vec::len).sum()
    }
}

impl Encoder for Named<EfficientNet> {
    fn config(&self) -> NetworkConfig {
        let shape = NetworkShape::EfficientNet(self.net.config().clone());
        NetworkConfig { architecture: self.name, shape }
    }

    fn embed(&self, x: &Tensor, train: bool) -> Tensor {
        self.net.embed(x, train)
    }

    fn forward(&self, x: &Tensor, train: bool) -> Tensor {
        self.net.forward(x, train)
    }

    fn layers(&self) -> usize {
        self.blocks() + 2
    }

    fn layer_index(&self, name: &str) -> usize {
        if name.starts_with("conv_stem") || name.starts_with("bn1") {
            return 0;
        }
        if let Some((stage, rest)) = index_after(name, "blocks.")
            && let Some((block, _)) = index_after(rest, "")
        {
            let before: usize = self.net.trunk.blocks[..stage].iter().map(Vec::len).sum();
            return before + block + 1;
        }
        if name.starts_with("conv_head") || name.starts_with("bn2") {
            return self.blocks();
        }
        self.blocks() + 1
    }
}
