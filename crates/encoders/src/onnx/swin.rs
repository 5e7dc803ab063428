//! The Swin transformer's part of the export.

use super::graph::{Graph, dense, int, ints, matrix, under};
use super::model::Value;
use super::source::Values;
use super::vit::scaled_query;
use crate::swin::{EPS, SwinConfig, Windows};

/// A block: its path, where it attends, its width and heads.
struct Block<'a> {
    path: &'a str,
    windows: Windows,
    dim: i64,
    heads: i64,
}

impl Graph<'_> {
    /// `image [N, 3, S, S]` to the mean of the last tokens, `[N, D]`.
    pub(super) fn swin_embed(&mut self, x: &str, config: &SwinConfig) -> Value {
        let mut y = self.patch_embed(x, config);
        for (i, stage) in config.stages().iter().enumerate() {
            let path = format!("layers.{i}");
            if let Some(merged) = stage.merged {
                y = self.patch_merging(&y, &under(&path, "downsample"), merged);
            }
            let (dim, heads) = (stage.dim, stage.heads);
            for (j, windows) in stage.blocks.iter().enumerate() {
                let path = format!("{path}.blocks.{j}");
                y = self.swin_block(&y, &Block { path: &path, windows: *windows, dim, heads });
            }
        }
        let y = self.layer_norm(&y, "norm", config.width(), EPS);
        self.op("ReduceMean", &[&y], vec![ints("axes", &[1, 2]), int("keepdims", 0)])
    }

    fn patch_embed(&mut self, x: &str, config: &SwinConfig) -> Value {
        let (convs, last, shape) = config.patch_embed();
        let mut y = x.to_string();
        for conv in &convs {
            y = self.conv_norm_act(&y, "patch_embed.proj", conv);
        }
        let y = self.conv_valid(&y, last, shape);
        let y = self.transpose(&y, &[0, 2, 3, 1]);
        self.layer_norm(&y, "patch_embed.norm", config.dim, EPS)
    }

    /// Zeros below and to the right of `[N, H, W, D]`.
    fn pad_end(&mut self, x: &str, by: i64) -> Value {
        if by == 0 {
            return x.to_string();
        }
        let pads = self.shape(&[0, 0, 0, 0, 0, by, by, 0]);
        self.op("Pad", &[x, &pads], vec![])
    }

    fn patch_merging(&mut self, x: &str, path: &str, (side, dim): (i64, i64)) -> Value {
        let x = self.pad_end(x, side % 2);
        let half = (side + 1) / 2;
        let x = self.reshape(&x, &[0, half, 2, half, 2, dim]);
        let x = self.transpose(&x, &[0, 1, 3, 4, 2, 5]);
        let x = self.reshape(&x, &[0, half, half, 4 * dim]);
        let x = self.layer_norm(&x, &under(path, "norm"), 4 * dim, EPS);
        self.linear(&x, &under(path, "reduction"), matrix(4 * dim, 2 * dim))
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

    fn swin_block(&mut self, x: &str, b: &Block<'_>) -> Value {
        let (path, dim) = (b.path, b.dim);
        let normed = self.layer_norm(x, &under(path, "norm1"), dim, EPS);
        let attended = self.window_attention(&normed, b);
        let x = self.op("Add", &[x, &attended], vec![]);
        let normed = self.layer_norm(&x, &under(path, "norm2"), dim, EPS);
        let hidden = self.linear(&normed, &under(path, "mlp.fc1"), dense(dim, 4 * dim));
        let hidden = self.gelu(&hidden);
        let out = self.linear(&hidden, &under(path, "mlp.fc2"), dense(4 * dim, dim));
        self.op("Add", &[&x, &out], vec![])
    }

    /// `[1, heads, area, area]`, added to the scores.
    fn position_bias(&mut self, b: &Block<'_>) -> Values {
        let (windows, heads) = (b.windows, b.heads);
        let side = 2 * windows.window - 1;
        let name = under(b.path, "attn.relative_position_bias_table");
        let table = self.tensor(&name, &[side * side, heads]);
        let rows = windows.index();
        let value = |head: i64, row: i64| table.data.get((row * heads + head) as usize);
        let data = (0..heads).flat_map(|h| rows.iter().filter_map(move |r| value(h, *r).copied()));
        Values { dims: vec![1, heads, windows.area(), windows.area()], data: data.collect() }
    }

    fn window_attention(&mut self, x: &str, b: &Block<'_>) -> Value {
        let Block { path, windows, dim, heads } = *b;
        let (side, window, padded) = (windows.side, windows.window, windows.padded());
        let (rows, area) = (padded / window, windows.area());
        let mut y = x.to_string();
        if windows.shift > 0 {
            y = self.roll(&y, side, windows.shift);
        }
        y = self.pad_end(&y, padded - side);
        y = self.reshape(&y, &[0, rows, window, rows, window, dim]);
        y = self.transpose(&y, &[0, 1, 3, 2, 4, 5]);
        y = self.reshape(&y, &[-1, area, dim]);
        let qkv = self.linear_tensors(&under(path, "attn.qkv"), dense(dim, 3 * dim));
        let qkv = self.linear_raw(&y, &scaled_query(qkv, dim, heads));
        let parts = self.split(&qkv, -1, &[dim, dim, dim]);
        let mut shaped = Vec::new();
        for (part, perm) in parts.iter().zip([[0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]]) {
            let part = self.reshape(part, &[0, area, heads, dim / heads]);
            shaped.push(self.transpose(&part, &perm));
        }
        let scores = self.op("MatMul", &[&shaped[0], &shaped[1]], vec![]);
        let bias = self.position_bias(b);
        let bias = self.weight(&bias);
        let mut scores = self.op("Add", &[&scores, &bias], vec![]);
        if let Some(data) = windows.mask() {
            let dims = vec![1, windows.count(), 1, area, area];
            let apart = self.weight(&Values { dims, data });
            scores = self.reshape(&scores, &[-1, windows.count(), heads, area, area]);
            scores = self.op("Add", &[&scores, &apart], vec![]);
            scores = self.reshape(&scores, &[-1, heads, area, area]);
        }
        let shares = self.op("Softmax", &[&scores], vec![int("axis", -1)]);
        let mixed = self.op("MatMul", &[&shares, &shaped[2]], vec![]);
        let joined = self.transpose(&mixed, &[0, 2, 1, 3]);
        let joined = self.reshape(&joined, &[0, area, dim]);
        y = self.linear(&joined, &under(path, "attn.proj"), dense(dim, dim));
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
