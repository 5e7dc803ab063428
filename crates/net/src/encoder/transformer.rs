//! Transformers behind the trait: names, layers and groups as timm has them.

use encoders::encoder::NetworkConfig;
use tch::Tensor;

use super::port::{Encoder, Named, index_after};
use crate::layer::Linear;
use crate::swin::Swin;
use crate::vit::Vit;

/// The linear layers of a block in timm's names: query, key and value; projection; the MLP's two.
fn named_linears(block: String, linears: [&mut Linear; 4]) -> Vec<(String, &mut Linear)> {
    let names = ["attn.qkv", "attn.proj", "mlp.fc1", "mlp.fc2"];
    names.iter().map(|n| format!("{block}.{n}")).zip(linears).collect()
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
        blocks.flat_map(|(i, b)| named_linears(format!("blocks.{i}"), b.linears())).collect()
    }
}

impl Encoder for Swin {
    fn config(&self) -> NetworkConfig {
        NetworkConfig::swin(Self::config(self).clone())
    }

    fn embed(&self, x: &Tensor, train: bool) -> Tensor {
        self.forward_features(x, train).mean_dim([1i64, 2].as_slice(), false, None)
    }

    fn forward(&self, x: &Tensor, train: bool) -> Tensor {
        let y = self.embed(x, train);
        self.fc.as_ref().map_or_else(|| y.shallow_clone(), |fc| fc.forward(&y))
    }

    fn layers(&self) -> usize {
        self.blocks() + 2
    }

    fn layer_index(&self, name: &str) -> usize {
        if name.starts_with("patch_embed") {
            return 0;
        }
        if let Some(rest) = name.strip_prefix("layers.") {
            let number = |i| rest.split('.').nth(i).and_then(|s| s.parse::<usize>().ok());
            if let Some(stage) = number(0) {
                let before: usize = Self::config(self).depths.iter().take(stage).sum();
                // `blocks.j`; the merging of patches goes with the stage's first block.
                return before + number(2).unwrap_or(0) + 1;
            }
        }
        if name.starts_with("norm") { self.blocks() } else { self.blocks() + 1 }
    }

    fn no_decay(&self, name: &str) -> bool {
        name.ends_with("relative_position_bias_table")
    }

    fn linears(&mut self) -> Vec<(String, &mut Linear)> {
        let stages = self.stages.iter_mut().enumerate();
        let blocks = stages.flat_map(|(i, s)| {
            s.blocks.iter_mut().enumerate().map(move |(j, b)| (format!("layers.{i}.blocks.{j}"), b))
        });
        blocks.flat_map(|(name, b)| named_linears(name, b.linears())).collect()
    }
}
