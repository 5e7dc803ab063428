//! The transformer's part of the export.

use tch::Tensor;

use super::graph::{Graph, Value, int, ints};
use crate::layer::{Conv2d, Linear};
use crate::vit::{Block, Pool, Vit};

/// Weight and bias of query, key and value, with the scale of the scores in the query's.
pub(super) fn scaled_query(qkv: &Linear, dim: i64, heads: i64) -> (Tensor, Option<Tensor>) {
    let scale = 1.0 / ((dim / heads) as f64).sqrt();
    let scaled = |t: &Tensor| {
        let t = t.detach();
        let (q, rest) = (t.narrow(0, 0, dim) * scale, t.narrow(0, dim, 2 * dim));
        Tensor::cat(&[q, rest], 0)
    };
    (scaled(&qkv.weight), qkv.bias.as_ref().map(scaled))
}

impl Graph {
    /// `image [N, 3, S, S]` to the vector the head sees, `[N, D]`.
    pub(super) fn vit_embed(&mut self, x: &str, vit: &Vit) -> Value {
        let config = vit.config();
        let (dim, patches) = (config.dim, config.grid() * config.grid());
        let conv = Conv2d {
            weight: vit.patch_weight.shallow_clone(),
            bias: Some(vit.patch_bias.shallow_clone()),
            stride: config.patch,
            padding: 0,
            groups: 1,
        };
        let maps = self.conv(x, &conv);
        let flat = self.reshape(&maps, &[0, dim, patches]);
        let mut y = self.transpose(&flat, &[0, 2, 1]);
        if let Some(cls) = &vit.cls_token {
            // The class token once per image: [1, 1, D] expanded to [N, 1, D].
            let shape = self.op("Shape", &[x], vec![int("start", 0), int("end", 1)]);
            let rest = self.shape(&[1, dim]);
            let target = self.op("Concat", &[&shape, &rest], vec![int("axis", 0)]);
            let cls = self.weight(cls);
            let cls = self.op("Expand", &[&cls, &target], vec![]);
            y = self.op("Concat", &[&cls, &y], vec![int("axis", 1)]);
        }
        let pos = self.weight(&vit.pos_embed);
        y = self.op("Add", &[&y, &pos], vec![]);
        for block in &vit.blocks {
            y = self.block(&y, block, dim);
        }
        match config.pool {
            Pool::Cls => {
                // Only the class token goes on, so only it is normed.
                let zero = self.shape(&[0]);
                let token = self.op("Gather", &[&y, &zero], vec![int("axis", 1)]);
                let token = self.reshape(&token, &[-1, dim]);
                match &vit.norm {
                    Some(norm) => self.layer_norm(&token, norm),
                    None => token,
                }
            }
            Pool::Mean => {
                let first = i64::from(config.class_token);
                let (start, end) = (self.shape(&[first]), self.shape(&[i64::MAX]));
                let axis = self.shape(&[1]);
                let tokens = self.op("Slice", &[&y, &start, &end, &axis], vec![]);
                let attributes = vec![ints("axes", &[1]), int("keepdims", 0)];
                let mean = self.op("ReduceMean", &[&tokens], attributes);
                match &vit.fc_norm {
                    Some(norm) => self.layer_norm(&mean, norm),
                    None => mean,
                }
            }
        }
    }

    fn block(&mut self, x: &str, b: &Block, dim: i64) -> Value {
        let normed = self.layer_norm(x, &b.norm1);
        let attended = self.attention(&normed, b, dim);
        let x = self.op("Add", &[x, &attended], vec![]);
        let normed = self.layer_norm(&x, &b.norm2);
        let hidden = self.linear(&normed, &b.fc1);
        let hidden = self.gelu(&hidden);
        let out = self.linear(&hidden, &b.fc2);
        self.op("Add", &[&x, &out], vec![])
    }

    fn attention(&mut self, x: &str, b: &Block, dim: i64) -> Value {
        let width = dim / b.heads;
        let (weight, bias) = scaled_query(&b.qkv, dim, b.heads);
        let qkv = self.linear_raw(x, &weight, bias.as_ref());
        let parts = self.split(&qkv, -1, &[dim, dim, dim]);
        let mut heads = Vec::new();
        for (part, perm) in parts.iter().zip([[0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]]) {
            let shaped = self.reshape(part, &[0, -1, b.heads, width]);
            heads.push(self.transpose(&shaped, &perm));
        }
        let scores = self.op("MatMul", &[&heads[0], &heads[1]], vec![]);
        let shares = self.op("Softmax", &[&scores], vec![int("axis", -1)]);
        let mixed = self.op("MatMul", &[&shares, &heads[2]], vec![]);
        let joined = self.transpose(&mixed, &[0, 2, 1, 3]);
        let joined = self.reshape(&joined, &[0, -1, dim]);
        self.linear(&joined, &b.proj)
    }
}
