//! The transformer's part of the export.

use tch::Tensor;

use super::graph::{Graph, int, ints};
use super::model::{Axis, Value};
use crate::efficientnet::Act;
use crate::layer::{Conv2d, Linear};
use crate::vit::{Block, LayerScale, Mlp, Pool, Pooler, Vit};

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
            bias: vit.patch_bias.as_ref().map(Tensor::shallow_clone),
            stride: config.patch,
            padding: 0,
            groups: 1,
        };
        let maps = self.conv(x, &conv);
        let flat = self.reshape(&maps, &[0, dim, patches]);
        let mut y = self.transpose(&flat, &[0, 2, 1]);
        let pos = self.weight(&vit.pos_embed);
        if config.no_embed_class {
            y = self.op("Add", &[&y, &pos], vec![]);
        }
        if let Some(prefix) = prefix(vit) {
            // The tokens before the patches, once per image: [1, P, D] expanded to [N, P, D].
            let shape = self.op("Shape", &[x], vec![int("start", 0), int("end", 1)]);
            let rest = self.shape(&[config.prefix(), dim]);
            let target = self.op("Concat", &[&shape, &rest], vec![int("axis", 0)]);
            let prefix = self.weight(&prefix);
            let prefix = self.op("Expand", &[&prefix, &target], vec![]);
            y = self.op("Concat", &[&prefix, &y], vec![int("axis", 1)]);
        }
        if !config.no_embed_class {
            y = self.op("Add", &[&y, &pos], vec![]);
        }
        if let Some(norm) = &vit.norm_pre {
            y = self.layer_norm(&y, norm);
        }
        let tokens = [Axis::Free("N"), Axis::Fixed(config.prefix() + patches), Axis::Fixed(dim)];
        for block in &vit.blocks {
            self.seam(&y, &tokens);
            y = self.block(&y, block, dim);
        }
        self.seam(&y, &tokens);
        let mut y = self.pool(&y, vit);
        if let Some(projection) = &vit.projection {
            y = self.linear(&y, projection);
        }
        if config.projection.is_some_and(|p| p.unit) {
            y = self.unit(&y);
        }
        y
    }

    fn pool(&mut self, tokens: &str, vit: &Vit) -> Value {
        let config = vit.config();
        let dim = config.dim;
        let normed = |g: &mut Self, x: &str| match &vit.norm {
            Some(norm) => g.layer_norm(x, norm),
            None => x.to_string(),
        };
        match config.pool {
            Pool::Cls => {
                // Only the class token continues, so only it is normed.
                let token = self.class_token(tokens, dim);
                normed(self, &token)
            }
            Pool::Mean => {
                let mean = self.patches_mean(tokens, config.prefix());
                match &vit.fc_norm {
                    Some(norm) => self.layer_norm(&mean, norm),
                    None => mean,
                }
            }
            Pool::ClsMean => {
                let tokens = normed(self, tokens);
                let token = self.class_token(&tokens, dim);
                let mean = self.patches_mean(&tokens, config.prefix());
                self.op("Concat", &[&token, &mean], vec![int("axis", -1)])
            }
            Pool::Attention => {
                let tokens = normed(self, tokens);
                match &vit.pooler {
                    Some(pooler) => self.pooler(&tokens, pooler),
                    None => tokens,
                }
            }
        }
    }

    fn class_token(&mut self, tokens: &str, dim: i64) -> Value {
        let zero = self.shape(&[0]);
        let token = self.op("Gather", &[tokens, &zero], vec![int("axis", 1)]);
        self.reshape(&token, &[-1, dim])
    }

    fn patches_mean(&mut self, tokens: &str, prefix: i64) -> Value {
        let (start, end) = (self.shape(&[prefix]), self.shape(&[i64::MAX]));
        let axis = self.shape(&[1]);
        let patches = self.op("Slice", &[tokens, &start, &end, &axis], vec![]);
        self.op("ReduceMean", &[&patches], vec![ints("axes", &[1]), int("keepdims", 0)])
    }

    /// `[N, T, D]` to `[N, d]`. The query is the same for all images, so it is a weight.
    fn pooler(&mut self, tokens: &str, p: &Pooler) -> Value {
        let question = tch::no_grad(|| p.question());
        let (dim, heads) = (question.size()[1], p.heads);
        let width = dim / heads;
        let question = question * (1.0 / (width as f64).sqrt());
        let question = self.weight(&question.reshape([1, 1, heads, width]).transpose(1, 2));
        let x = self.layer_norm(tokens, &p.norm_k);
        let mut split = |layer: &Linear, perm: &[i64]| {
            let y = self.linear(&x, layer);
            let y = self.reshape(&y, &[0, -1, heads, width]);
            self.transpose(&y, perm)
        };
        let (keys, values) = (split(&p.k, &[0, 2, 3, 1]), split(&p.v, &[0, 2, 1, 3]));
        let scores = self.op("MatMul", &[&question, &keys], vec![]);
        let shares = self.op("Softmax", &[&scores], vec![int("axis", -1)]);
        let mixed = self.op("MatMul", &[&shares, &values], vec![]);
        let joined = self.transpose(&mixed, &[0, 2, 1, 3]);
        let joined = self.reshape(&joined, &[0, dim]);
        let out = self.linear(&joined, &p.proj);
        self.layer_norm(&out, &p.norm)
    }

    /// Rows over their length.
    fn unit(&mut self, x: &str) -> Value {
        let squared = self.op("Mul", &[x, x], vec![]);
        let axes = self.shape(&[-1]);
        let sum = self.op("ReduceSum", &[&squared, &axes], vec![int("keepdims", 1)]);
        let length = self.op("Sqrt", &[&sum], vec![]);
        self.op("Div", &[x, &length], vec![])
    }

    fn block(&mut self, x: &str, b: &Block, dim: i64) -> Value {
        let normed = self.layer_norm(x, &b.norm1);
        let attended = self.attention(&normed, b, dim);
        let x = self.op("Add", &[x, &attended], vec![]);
        let normed = self.layer_norm(&x, &b.norm2);
        let hidden = self.hidden(&normed, b);
        let out = self.linear_scaled(&hidden, &b.fc2, b.ls2.as_ref());
        self.op("Add", &[&x, &out], vec![])
    }

    fn hidden(&mut self, x: &str, b: &Block) -> Value {
        let y = self.linear(x, &b.fc1);
        match b.mlp {
            Mlp::Gelu => self.gelu(&y),
            Mlp::QuickGelu => {
                let slope = self.scalar(1.702);
                let steep = self.op("Mul", &[&y, &slope], vec![]);
                let gate = self.op("Sigmoid", &[&steep], vec![]);
                self.op("Mul", &[&y, &gate], vec![])
            }
            Mlp::SwiGlu => {
                let half = b.fc2.weight.size()[1];
                let parts = self.split(&y, -1, &[half, half]);
                let gate = self.act(&parts[0], Act::Silu);
                self.op("Mul", &[&gate, &parts[1]], vec![])
            }
        }
    }

    /// A linear layer and the scale after it, folded in; small scales would leave f16's range, so
    /// there they stay apart.
    fn linear_scaled(&mut self, x: &str, linear: &Linear, scale: Option<&LayerScale>) -> Value {
        let Some(scale) = scale else { return self.linear(x, linear) };
        let gamma = scale.gamma.detach();
        if self.halves() {
            let y = self.linear(x, linear);
            let gamma = self.weight_exact(&gamma);
            return self.op("Mul", &[&y, &gamma], vec![]);
        }
        let weight = linear.weight.detach() * gamma.unsqueeze(-1);
        let bias = linear.bias.as_ref().map(|b| b.detach() * &gamma);
        self.linear_raw(x, &weight, bias.as_ref())
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
        self.linear_scaled(&joined, &b.proj, b.ls1.as_ref())
    }
}

/// Class token and registers, `[1, P, D]`.
fn prefix(vit: &Vit) -> Option<Tensor> {
    let tokens: Vec<_> = [&vit.cls_token, &vit.reg_token].into_iter().flatten().collect();
    (!tokens.is_empty()).then(|| Tensor::cat(&tokens, 1).detach())
}
