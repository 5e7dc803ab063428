//! The Swin transformer's part of the export.

use super::graph::{Graph, int, ints};
use super::model::Value;
use super::vit::scaled_query;
use crate::swin::{PatchEmbed, PatchMerging, Swin, SwinBlock};

impl Graph {
    /// `image [N, 3, S, S]` to the mean of the last tokens, `[N, D]`.
    pub(super) fn swin_embed(&mut self, x: &str, net: &Swin) -> Value {
        let mut y = self.patch_embed(x, &net.patch_embed);
        let mut side = net.config().image / 4;
        let mut dim = net.config().dim;
        for stage in &net.stages {
            if let Some(merging) = &stage.downsample {
                y = self.patch_merging(&y, merging, side, dim);
                (side, dim) = ((side + 1) / 2, 2 * dim);
            }
            for block in &stage.blocks {
                y = self.swin_block(&y, block, dim);
            }
        }
        let y = self.layer_norm(&y, &net.norm);
        self.op("ReduceMean", &[&y], vec![ints("axes", &[1, 2]), int("keepdims", 0)])
    }

    fn patch_embed(&mut self, x: &str, embed: &PatchEmbed) -> Value {
        let mut y = x.to_string();
        for conv in &embed.convs {
            y = self.conv_norm_act(&y, conv);
        }
        let y = self.conv(&y, &embed.proj);
        let y = self.transpose(&y, &[0, 2, 3, 1]);
        self.layer_norm(&y, &embed.norm)
    }

    /// Zeros below and to the right of `[N, H, W, D]`.
    fn pad_end(&mut self, x: &str, by: i64) -> Value {
        if by == 0 {
            return x.to_string();
        }
        let pads = self.shape(&[0, 0, 0, 0, 0, by, by, 0]);
        self.op("Pad", &[x, &pads], vec![])
    }

    fn patch_merging(&mut self, x: &str, merging: &PatchMerging, side: i64, dim: i64) -> Value {
        let x = self.pad_end(x, side % 2);
        let half = (side + 1) / 2;
        let x = self.reshape(&x, &[0, half, 2, half, 2, dim]);
        let x = self.transpose(&x, &[0, 1, 3, 4, 2, 5]);
        let x = self.reshape(&x, &[0, half, half, 4 * dim]);
        let x = self.layer_norm(&x, &merging.norm);
        self.linear(&x, &merging.reduction)
    }

    /// `[N, H, H, D]` moved cyclically up and to the left by `shift`.
    fn roll(&mut self, x: &str, side: i64, shift: i64) -> Value {
        let mut y = x.to_string();
        for axis in [1, 2] {
            let parts = self.split(&y, axis, &[shift, side - shift]);
            y = self.op("Concat", &[&parts[1], &parts[0]], vec![int("axis", axis)]);
        }
        y
    }

    fn swin_block(&mut self, x: &str, b: &SwinBlock, dim: i64) -> Value {
        let normed = self.layer_norm(x, &b.norm1);
        let attended = self.window_attention(&normed, b, dim);
        let x = self.op("Add", &[x, &attended], vec![]);
        let normed = self.layer_norm(&x, &b.norm2);
        let hidden = self.linear(&normed, &b.fc1);
        let hidden = self.gelu(&hidden);
        let out = self.linear(&hidden, &b.fc2);
        self.op("Add", &[&x, &out], vec![])
    }

    fn window_attention(&mut self, x: &str, b: &SwinBlock, dim: i64) -> Value {
        let windows = b.windows;
        let (side, window, padded) = (windows.side, windows.window, windows.padded());
        let (rows, area, heads) = (padded / window, windows.area(), b.heads);
        let mut y = x.to_string();
        if windows.shift > 0 {
            y = self.roll(&y, side, windows.shift);
        }
        y = self.pad_end(&y, padded - side);
        y = self.reshape(&y, &[0, rows, window, rows, window, dim]);
        y = self.transpose(&y, &[0, 1, 3, 2, 4, 5]);
        y = self.reshape(&y, &[-1, area, dim]);
        let (weight, bias) = scaled_query(&b.qkv, dim, heads);
        let qkv = self.linear_raw(&y, &weight, bias.as_ref());
        let parts = self.split(&qkv, -1, &[dim, dim, dim]);
        let mut shaped = Vec::new();
        for (part, perm) in parts.iter().zip([[0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]]) {
            let part = self.reshape(part, &[0, area, heads, dim / heads]);
            shaped.push(self.transpose(&part, &perm));
        }
        let scores = self.op("MatMul", &[&shaped[0], &shaped[1]], vec![]);
        let bias = self.weight(&b.bias());
        let mut scores = self.op("Add", &[&scores, &bias], vec![]);
        if let Some(mask) = &b.mask {
            let apart = self.weight(&mask.unsqueeze(1).unsqueeze(0));
            scores = self.reshape(&scores, &[-1, windows.count(), heads, area, area]);
            scores = self.op("Add", &[&scores, &apart], vec![]);
            scores = self.reshape(&scores, &[-1, heads, area, area]);
        }
        let shares = self.op("Softmax", &[&scores], vec![int("axis", -1)]);
        let mixed = self.op("MatMul", &[&shares, &shaped[2]], vec![]);
        let joined = self.transpose(&mixed, &[0, 2, 1, 3]);
        let joined = self.reshape(&joined, &[0, area, dim]);
        y = self.linear(&joined, &b.proj);
        y = self.reshape(&y, &[-1, rows, rows, window, window, dim]);
        y = self.transpose(&y, &[0, 1, 3, 2, 4, 5]);
        y = self.reshape(&y, &[0, padded, padded, dim]);
        for axis in [1, 2] {
            if padded > side {
                y = self.split(&y, axis, &[side, padded - side]).swap_remove(0);
            }
        }
        if windows.shift > 0 {
            // All the way round but the shift: back again.
            y = self.roll(&y, side, side - windows.shift);
        }
        y
    }
}
