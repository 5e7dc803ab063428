//! Convolutional networks behind the trait: names, layers and groups as timm has them.

use encoders::encoder::{NetworkConfig, NetworkShape};
use tch::Tensor;

use super::port::{Encoder, Named, index_after};
use crate::efficientnet::EfficientNet;
use crate::resnet::{ResNet50, ResidualBlock};

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

impl<B: ResidualBlock> Encoder for ResNet50<B> {
    fn config(&self) -> NetworkConfig {
        B::network(Self::config(self).clone())
    }

    fn embed(&self, x: &Tensor, train: bool) -> Tensor {
        self.forward_features(x, train).mean_dim([2i64, 3].as_slice(), false, None)
    }

    fn forward(&self, x: &Tensor, train: bool) -> Tensor {
        let y = self.embed(x, train);
        let Some(head) = &self.fc else { return y };
        let dropout = Self::config(self).dropout;
        head.forward(&if dropout > 0.0 { y.dropout(dropout, train) } else { y })
    }

    fn layers(&self) -> usize {
        self.stages.iter().map(Vec::len).sum::<usize>() + 2
    }

    fn layer_index(&self, name: &str) -> usize {
        let first = name.split('.').next().unwrap_or_default();
        if first == "norm0" || first == B::STEM.0 || first == B::STEM.1 {
            return 0;
        }
        if let Some((stage, rest)) = index_after(name, B::PREFIX)
            && let Some((block, _)) = index_after(rest, "")
        {
            let before = self.stages.iter().take(stage.saturating_sub(B::FIRST));
            return before.map(Vec::len).sum::<usize>() + block + 1;
        }
        // The last norm goes with the last block.
        if first == "norm" { self.layers() - 2 } else { self.layers() - 1 }
    }
}
