//! The convolutional networks' part of the export.

use super::graph::{Graph, int, ints, under};
use super::model::Value;
use crate::efficientnet::{GateShape, Plan, ResidualShape, Variant};
use crate::layer::ConvShape;
use crate::resnet::{self, BottleneckShape};

impl Graph<'_> {
    fn gate(&mut self, x: &str, path: &str, gate: &GateShape) -> Value {
        let [reduce, expand] = gate.shapes();
        let pooled = self.op("GlobalAveragePool", &[x], vec![]);
        let reduced = self.conv(&pooled, &under(path, "conv_reduce"), reduce);
        let reduced = self.act(&reduced, gate.act);
        let expanded = self.conv(&reduced, &under(path, "conv_expand"), expand);
        let gate = self.op("Sigmoid", &[&expanded], vec![]);
        self.op("Mul", &[x, &gate], vec![])
    }

    fn residual(&mut self, x: &str, path: &str, block: &ResidualShape) -> Value {
        let mut y = x.to_string();
        for (i, conv) in block.convs.iter().enumerate() {
            if i + 1 == block.convs.len()
                && let Some(gate) = &block.gate
            {
                y = self.gate(&y, &under(path, "se"), gate);
            }
            y = self.conv_norm_act(&y, path, conv);
        }
        if block.skip { self.op("Add", &[&y, x], vec![]) } else { y }
    }

    /// The first `levels` features, each at half the resolution of the one before.
    pub(super) fn trunk(&mut self, x: &str, path: &str, plan: &Plan, levels: usize) -> Vec<Value> {
        let mut y = self.conv_norm_act(x, path, &plan.stem);
        let mut out = Vec::new();
        for (i, stage) in plan.blocks.iter().enumerate().take(plan.taps[levels - 1] + 1) {
            for (j, block) in stage.iter().enumerate() {
                y = self.residual(&y, &under(path, format!("blocks.{i}.{j}")), block);
            }
            if plan.taps.contains(&i) {
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

    pub(super) fn efficientnet_embed(&mut self, x: &str, variant: Variant) -> Value {
        let plan = variant.plan();
        let maps = self.trunk(x, "", &plan, plan.taps.len());
        let y = self.conv_norm_act(&maps[4], "", &plan.last);
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

    pub(super) fn resnet_embed(&mut self, x: &str) -> Value {
        let y = self.conv_norm_act(x, "", &resnet::stem(("conv1", "bn1")));
        let mut y = self.max_pool(&y);
        for block in resnet::stages(4).iter().flatten() {
            y = self.bottleneck(&y, block);
        }
        self.pooled(&y)
    }

    fn bottleneck(&mut self, x: &str, block: &BottleneckShape) -> Value {
        let path = format!("layer{}.{}", block.at.0 + 1, block.at.1);
        let mut y = x.to_string();
        for conv in &block.convs() {
            y = self.conv_norm_act(&y, &path, conv);
        }
        let shortcut = match block.shortcut_norm() {
            Some(conv) => self.conv_norm_act(x, &under(&path, "downsample"), &conv),
            None => x.to_string(),
        };
        let sum = self.op("Add", &[&y, &shortcut], vec![]);
        self.op("Relu", &[&sum], vec![])
    }

    pub(super) fn resnet_v2_embed(&mut self, x: &str) -> Value {
        // Not folded into the convolution, which pads what is normalised already.
        let y = self.norm(x, "norm0", 3);
        let y = self.conv_norm_act(&y, "", &resnet::stem(("conv", "norm1")));
        let mut y = self.max_pool(&y);
        for unit in resnet::stages(3).iter().flatten() {
            y = self.residual_unit(&y, unit);
        }
        let y = self.norm(&y, "norm", resnet::V2_DIM);
        let y = self.op("Relu", &[&y], vec![]);
        self.pooled(&y)
    }

    fn residual_unit(&mut self, x: &str, unit: &BottleneckShape) -> Value {
        let path = format!("stages.{}.{}", unit.at.0, unit.at.1);
        let active = self.norm(x, &under(&path, "norm1"), unit.input);
        let active = self.op("Relu", &[&active], vec![]);
        let mut y = active.clone();
        // The first two convolutions take in the norm behind them.
        for conv in &unit.convs_v2() {
            y = self.conv_norm_act(&y, &path, conv);
        }
        let [.., last] = unit.shapes();
        let y = self.conv(&y, &under(&path, "conv3"), last);
        let shortcut = match unit.shortcut() {
            Some(shape) => self.conv(&active, &under(&path, "downsample"), shape),
            None => x.to_string(),
        };
        self.op("Add", &[&y, &shortcut], vec![])
    }

    /// The U-Net's logits.
    pub(super) fn unet(&mut self, x: &str, config: &crate::unet::UnetConfig) -> Value {
        let maps = self.trunk(x, "encoder", &config.encoder.plan(), config.levels());
        let deepest = maps.len() - 1;
        let mut y = maps[deepest].clone();
        for (i, [first, second]) in config.stages().iter().enumerate() {
            y = self.upsample(&y);
            if i < deepest {
                y = self.op("Concat", &[&y, &maps[deepest - 1 - i]], vec![int("axis", 1)]);
            }
            let path = format!("decoder.{i}");
            y = self.conv_norm_act(&y, &path, first);
            y = self.conv_norm_act(&y, &path, second);
        }
        let head: ConvShape = config.head();
        let logits = self.conv(&y, "head", head);
        match config.coarseness() {
            1 => logits,
            coarseness => self.enlarge(&logits, coarseness as f32),
        }
    }
}
