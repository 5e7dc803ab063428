//! ResNets and Swin transformers behind the trait: names, layers and groups as timm has them.

use encoders::encoder::{NetworkConfig, NetworkShape};
use encoders::resnet;
use tch::Tensor;

use super::named::named;
use super::port::Encoder;
use crate::layer::Linear;
use crate::resnet::{ResNet, ResNetV2, blocks_before, logits, mean_over_image, stage_and_block};
use crate::swin::Swin;

impl Encoder for ResNet {
    fn config(&self) -> NetworkConfig {
        let shape = NetworkShape::ResNet(Self::config(self).clone());
        NetworkConfig { architecture: resnet::NAME, shape }
    }

    fn embed(&self, x: &Tensor, train: bool) -> Tensor {
        mean_over_image(&self.forward_features(x, train))
    }

    fn forward(&self, x: &Tensor, train: bool) -> Tensor {
        logits(Self::config(self), self.embed(x, train), self.fc.as_ref(), train)
    }

    fn layers(&self) -> usize {
        self.layers.iter().map(Vec::len).sum::<usize>() + 2
    }

    fn layer_index(&self, name: &str) -> usize {
        if name.starts_with("conv1") || name.starts_with("bn1") {
            return 0;
        }
        let blocks: Vec<usize> = self.layers.iter().map(Vec::len).collect();
        match name.strip_prefix("layer").and_then(stage_and_block) {
            Some((stage, block)) => blocks_before(&blocks, stage.saturating_sub(1), block) + 1,
            None => self.layers() - 1,
        }
    }
}

impl Encoder for ResNetV2 {
    fn config(&self) -> NetworkConfig {
        let shape = NetworkShape::ResNetV2(Self::config(self).clone());
        NetworkConfig { architecture: resnet::V2_NAME, shape }
    }

    fn embed(&self, x: &Tensor, train: bool) -> Tensor {
        mean_over_image(&self.forward_features(x, train))
    }

    fn forward(&self, x: &Tensor, train: bool) -> Tensor {
        logits(Self::config(self), self.embed(x, train), self.fc.as_ref(), train)
    }

    fn layers(&self) -> usize {
        self.stages.iter().map(Vec::len).sum::<usize>() + 2
    }

    fn layer_index(&self, name: &str) -> usize {
        if ["norm0.", "conv.", "norm1."].iter().any(|s| name.starts_with(s)) {
            return 0;
        }
        let blocks: Vec<usize> = self.stages.iter().map(Vec::len).collect();
        match name.strip_prefix("stages.").and_then(stage_and_block) {
            Some((stage, block)) => blocks_before(&blocks, stage, block) + 1,
            // The last norm goes with the last unit.
            None if name.starts_with("norm.") => self.layers() - 2,
            None => self.layers() - 1,
        }
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
        blocks.flat_map(|(name, b)| named(name, b.linears())).collect()
    }
}
