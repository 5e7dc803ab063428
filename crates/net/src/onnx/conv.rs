//! The convolutional networks' part of the export.

use super::graph::{Graph, int, ints};
use super::model::Value;
use crate::efficientnet::{ConvNorm, EfficientNet, Residual, SqueezeExcite, Trunk};
use crate::resnet::{Bottleneck, ResNet, ResNetV2, Unit};

impl Graph {
    pub(super) fn conv_norm_act(&mut self, x: &str, c: &ConvNorm) -> Value {
        let y = if c.same {
            self.conv_norm_same(x, &c.conv, &c.norm)
        } else {
            self.conv_norm(x, &c.conv, &c.norm)
        };
        match c.act {
            Some(act) => self.act(&y, act),
            None => y,
        }
    }

    fn squeeze_excite(&mut self, x: &str, se: &SqueezeExcite) -> Value {
        let pooled = self.op("GlobalAveragePool", &[x], vec![]);
        let reduced = self.conv(&pooled, &se.reduce);
        let reduced = self.act(&reduced, se.act);
        let expanded = self.conv(&reduced, &se.expand);
        let gate = self.op("Sigmoid", &[&expanded], vec![]);
        self.op("Mul", &[x, &gate], vec![])
    }

    fn residual(&mut self, x: &str, block: &Residual) -> Value {
        let mut y = x.to_string();
        for (i, conv) in block.convs.iter().enumerate() {
            if i + 1 == block.convs.len()
                && let Some(se) = &block.se
            {
                y = self.squeeze_excite(&y, se);
            }
            y = self.conv_norm_act(&y, conv);
        }
        if block.skip { self.op("Add", &[&y, x], vec![]) } else { y }
    }

    /// The five features.
    pub(super) fn trunk(&mut self, x: &str, trunk: &Trunk) -> Vec<Value> {
        let mut y = self.conv_norm_act(x, &trunk.stem);
        let mut out = Vec::new();
        for (i, stage) in trunk.blocks.iter().enumerate() {
            for block in stage {
                y = self.residual(&y, block);
            }
            if trunk.taps.contains(&i) {
                out.push(y.clone());
            }
        }
        out
    }

    /// `[N, C, H, W]` to its mean over the image, `[N, C]`.
    fn pooled(&mut self, x: &str) -> Value {
        let pooled = self.op("GlobalAveragePool", &[x], vec![]);
        self.op("Flatten", &[&pooled], vec![int("axis", 1)])
    }

    pub(super) fn efficientnet_embed(&mut self, x: &str, net: &EfficientNet) -> Value {
        let maps = self.trunk(x, &net.trunk);
        let y = self.conv_norm_act(&maps[4], &net.head);
        self.pooled(&y)
    }

    /// The pooling after a ResNet's first convolution.
    fn max_pool(&mut self, x: &str) -> Value {
        let attributes = vec![
            ints("kernel_shape", &[3, 3]),
            ints("strides", &[2, 2]),
            ints("pads", &[1, 1, 1, 1]),
        ];
        self.op("MaxPool", &[x], attributes)
    }

    pub(super) fn resnet_embed(&mut self, x: &str, net: &ResNet) -> Value {
        let y = self.conv_norm_act(x, &net.stem);
        let mut y = self.max_pool(&y);
        for block in net.layers.iter().flatten() {
            y = self.bottleneck(&y, block);
        }
        self.pooled(&y)
    }

    fn bottleneck(&mut self, x: &str, block: &Bottleneck) -> Value {
        let mut y = x.to_string();
        for conv in &block.convs {
            y = self.conv_norm_act(&y, conv);
        }
        let shortcut = match &block.downsample {
            Some(conv) => self.conv_norm_act(x, conv),
            None => x.to_string(),
        };
        let sum = self.op("Add", &[&y, &shortcut], vec![]);
        self.op("Relu", &[&sum], vec![])
    }

    pub(super) fn resnet_v2_embed(&mut self, x: &str, net: &ResNetV2) -> Value {
        // Not folded into the convolution, which pads what is normalised already.
        let y = self.norm(x, &net.norm0);
        let y = self.conv_norm_act(&y, &net.stem);
        let mut y = self.max_pool(&y);
        for unit in net.stages.iter().flatten() {
            y = self.residual_unit(&y, unit);
        }
        let y = self.norm(&y, &net.norm);
        let y = self.op("Relu", &[&y], vec![]);
        self.pooled(&y)
    }

    fn residual_unit(&mut self, x: &str, unit: &Unit) -> Value {
        let active = self.norm(x, &unit.norms[0]);
        let active = self.op("Relu", &[&active], vec![]);
        let mut y = active.clone();
        // The first two convolutions take in the norm behind them.
        for (conv, norm) in unit.convs.iter().zip(&unit.norms[1..]) {
            y = self.conv_norm(&y, conv, norm);
            y = self.op("Relu", &[&y], vec![]);
        }
        let y = self.conv(&y, &unit.convs[2]);
        let shortcut = match &unit.downsample {
            Some(conv) => self.conv(&active, conv),
            None => x.to_string(),
        };
        self.op("Add", &[&y, &shortcut], vec![])
    }
}
