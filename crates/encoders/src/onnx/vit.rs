//! The transformer's part of the export.

use super::graph::{Graph, LinearShape, dense, int, ints, matrix, under};
use super::model::{Axis, Value};
use super::source::{Affine, Values};
use crate::layer::{Act, ConvShape};
use crate::vit::{AttentionPool, Mlp, Pool, VitConfig};

/// Epsilon of CONCH's pooling: torch's default.
const POOLER_EPS: f64 = 1e-5;

/// Query, key and value, with the scale of the scores in the query's weight and bias.
pub(super) fn scaled_query(qkv: Affine, dim: i64, heads: i64) -> Affine {
    qkv.rows_times(dim, (1.0 / ((dim / heads) as f64).sqrt()) as f32)
}

impl Graph<'_> {
    /// `image [N, 3, S, S]` to the vector the head sees, `[N, D]`.
    pub(super) fn vit_embed(&mut self, x: &str, config: &VitConfig) -> Value {
        let (dim, patches) = (config.dim, config.grid() * config.grid());
        let patch = ConvShape::new(3, dim, config.patch).stride(config.patch);
        let patch = if config.pre_norm { patch } else { patch.bias() };
        let maps = self.conv_valid(x, "patch_embed.proj", patch);
        let flat = self.reshape(&maps, &[0, dim, patches]);
        let mut y = self.transpose(&flat, &[0, 2, 1]);
        let pos = self.tensor("pos_embed", &[1, patches + config.embedded_prefix(), dim]);
        let pos = self.weight(&pos);
        if config.no_embed_class {
            y = self.op("Add", &[&y, &pos], vec![]);
        }
        if let Some(prefix) = self.prefix(config) {
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
        if config.pre_norm {
            y = self.layer_norm(&y, "norm_pre", dim, config.eps);
        }
        let tokens = [Axis::Free("N"), Axis::Fixed(config.prefix() + patches), Axis::Fixed(dim)];
        for i in 0..config.depth {
            self.seam(&y, &tokens);
            y = self.block(&y, &format!("blocks.{i}"), config, None);
        }
        self.seam(&y, &tokens);
        let mut y = self.pool(&y, config);
        if let Some(projection) = config.projection {
            y = self.linear(&y, "projection", matrix(config.pooled(), projection.dim));
            if projection.unit {
                y = self.unit(&y);
            }
        }
        y
    }

    /// Class token and registers, `[1, P, D]`.
    fn prefix(&mut self, config: &VitConfig) -> Option<Values> {
        let VitConfig { dim, registers, .. } = *config;
        let mut tokens = vec![];
        if config.class_token {
            tokens.push(self.tensor("cls_token", &[1, 1, dim]));
        }
        if registers > 0 {
            tokens.push(self.tensor("reg_token", &[1, registers, dim]));
        }
        Values::joined(tokens)
    }

    fn pool(&mut self, tokens: &str, config: &VitConfig) -> Value {
        let VitConfig { dim, eps, .. } = *config;
        match (config.pool, config.attention) {
            (Pool::Cls, _) => {
                // Only the class token continues, so only it is normed.
                let token = self.class_token(tokens, dim);
                self.layer_norm(&token, "norm", dim, eps)
            }
            (Pool::Mean, _) => {
                let mean = self.patches_mean(tokens, config.prefix());
                self.layer_norm(&mean, "fc_norm", dim, eps)
            }
            (Pool::ClsMean, _) => {
                let tokens = self.layer_norm(tokens, "norm", dim, eps);
                let token = self.class_token(&tokens, dim);
                let mean = self.patches_mean(&tokens, config.prefix());
                self.op("Concat", &[&token, &mean], vec![int("axis", -1)])
            }
            (Pool::Attention, pool) => {
                let tokens = self.layer_norm(tokens, "norm", dim, eps);
                match pool {
                    Some(pool) => self.pooler(&tokens, dim, pool),
                    None => tokens,
                }
            }
        }
    }

    /// The first token of each row, `[N, T, D]` to `[N, D]`.
    pub(super) fn class_token(&mut self, tokens: &str, dim: i64) -> Value {
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

    /// `[N, T, context]` to `[N, d]`. The query is the same for all images, so it is a weight.
    fn pooler(&mut self, tokens: &str, context: i64, pool: AttentionPool) -> Value {
        let AttentionPool { dim, heads } = pool;
        let width = dim / heads;
        let question = self.question(pool);
        let question = self.weight(&question);
        let x = self.layer_norm(tokens, "attn_pool.norm_k", context, POOLER_EPS);
        let mut split = |layer: &str, perm: &[i64]| {
            let y = self.linear(&x, layer, dense(context, dim));
            let y = self.reshape(&y, &[0, -1, heads, width]);
            self.transpose(&y, perm)
        };
        let keys = split("attn_pool.k", &[0, 2, 3, 1]);
        let values = split("attn_pool.v", &[0, 2, 1, 3]);
        let scores = self.op("MatMul", &[&question, &keys], vec![]);
        let shares = self.op("Softmax", &[&scores], vec![int("axis", -1)]);
        let mixed = self.op("MatMul", &[&shares, &values], vec![]);
        let joined = self.transpose(&mixed, &[0, 2, 1, 3]);
        let joined = self.reshape(&joined, &[0, dim]);
        let out = self.linear(&joined, "attn_pool.proj", dense(dim, dim));
        self.layer_norm(&out, "attn_pool.norm", dim, POOLER_EPS)
    }

    /// The learned query, normed and projected, over the root of a head's width: `[1, heads, 1, d / heads]`.
    fn question(&mut self, AttentionPool { dim, heads }: AttentionPool) -> Values {
        let query = self.tensor("attn_pool.query", &[1, dim]);
        let scale = self.tensor("attn_pool.norm_q.weight", &[dim]);
        let shift = self.tensor("attn_pool.norm_q.bias", &[dim]);
        let Affine { weight, bias } = self.linear_tensors("attn_pool.q", dense(dim, dim));
        let double = |v: &Values| v.data.iter().map(|v| f64::from(*v)).collect::<Vec<f64>>();
        let query = double(&query);
        let mean = query.iter().sum::<f64>() / dim as f64;
        let variance = query.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / dim as f64;
        let root = (variance + POOLER_EPS).sqrt();
        let normed = query.iter().zip(double(&scale)).zip(double(&shift));
        let normed: Vec<f64> = normed.map(|((v, s), b)| (v - mean) / root * s + b).collect();
        let width = 1.0 / ((dim / heads) as f64).sqrt();
        let bias = bias.map(|b| double(&b)).unwrap_or_default();
        let rows = weight.data.chunks(dim as usize).zip(bias);
        let asked = rows.map(|(row, bias)| {
            let sum: f64 = row.iter().zip(&normed).map(|(w, v)| f64::from(*w) * v).sum();
            ((sum + bias) * width) as f32
        });
        Values { dims: vec![1, heads, 1, dim / heads], data: asked.collect() }
    }

    /// Rows over their length.
    pub(super) fn unit(&mut self, x: &str) -> Value {
        let squared = self.op("Mul", &[x, x], vec![]);
        let axes = self.shape(&[-1]);
        let sum = self.op("ReduceSum", &[&squared, &axes], vec![int("keepdims", 1)]);
        let length = self.op("Sqrt", &[&sum], vec![]);
        self.op("Div", &[x, &length], vec![])
    }

    /// `mask` is added to the scores of attention, `[N, 1, T, T]`.
    pub(super) fn block(
        &mut self,
        x: &str,
        path: &str,
        config: &VitConfig,
        mask: Option<&str>,
    ) -> Value {
        let VitConfig { dim, eps, .. } = *config;
        let normed = self.layer_norm(x, &under(path, "norm1"), dim, eps);
        let attended = self.attention(&normed, path, config, mask);
        let x = self.op("Add", &[x, &attended], vec![]);
        let normed = self.layer_norm(&x, &under(path, "norm2"), dim, eps);
        let hidden = self.hidden(&normed, path, config);
        let (fc2, scale) = (under(path, "mlp.fc2"), layer_scale(path, "ls2", config));
        let out = self.linear_scaled(&hidden, &fc2, dense(config.inner(), dim), scale.as_deref());
        self.op("Add", &[&x, &out], vec![])
    }

    fn hidden(&mut self, x: &str, path: &str, config: &VitConfig) -> Value {
        let y = self.linear(x, &under(path, "mlp.fc1"), dense(config.dim, config.hidden()));
        match config.mlp {
            Mlp::Gelu => self.gelu(&y),
            Mlp::QuickGelu => {
                let slope = self.scalar(1.702);
                let steep = self.op("Mul", &[&y, &slope], vec![]);
                let gate = self.op("Sigmoid", &[&steep], vec![]);
                self.op("Mul", &[&y, &gate], vec![])
            }
            Mlp::SwiGlu => {
                let half = config.inner();
                let parts = self.split(&y, -1, &[half, half]);
                let gate = self.act(&parts[0], Act::Silu);
                self.op("Mul", &[&gate, &parts[1]], vec![])
            }
        }
    }

    /// A linear layer and the scale after it, folded in; small scales would leave f16's range, so
    /// there they stay apart.
    fn linear_scaled(
        &mut self,
        x: &str,
        name: &str,
        shape: LinearShape,
        scale: Option<&str>,
    ) -> Value {
        let Some(scale) = scale else { return self.linear(x, name, shape) };
        let gamma = self.tensor(&under(scale, "gamma"), &[shape.output]);
        if self.halves() {
            let y = self.linear(x, name, shape);
            let gamma = self.weight_exact(&gamma);
            return self.op("Mul", &[&y, &gamma], vec![]);
        }
        let scaled = self.linear_tensors(name, shape).times(&gamma.data);
        self.linear_raw(x, &scaled)
    }

    fn attention(&mut self, x: &str, path: &str, config: &VitConfig, mask: Option<&str>) -> Value {
        let VitConfig { dim, heads: count, qkv_bias, .. } = *config;
        let width = dim / count;
        let shape = LinearShape { input: dim, output: 3 * dim, bias: qkv_bias };
        let qkv = self.linear_tensors(&under(path, "attn.qkv"), shape);
        let qkv = self.linear_raw(x, &scaled_query(qkv, dim, count));
        let parts = self.split(&qkv, -1, &[dim, dim, dim]);
        let mut heads = Vec::new();
        for (part, perm) in parts.iter().zip([[0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]]) {
            let shaped = self.reshape(part, &[0, -1, count, width]);
            heads.push(self.transpose(&shaped, &perm));
        }
        let mut scores = self.op("MatMul", &[&heads[0], &heads[1]], vec![]);
        if let Some(mask) = mask {
            scores = self.op("Add", &[&scores, mask], vec![]);
        }
        let shares = self.op("Softmax", &[&scores], vec![int("axis", -1)]);
        let mixed = self.op("MatMul", &[&shares, &heads[2]], vec![]);
        let joined = self.transpose(&mixed, &[0, 2, 1, 3]);
        let joined = self.reshape(&joined, &[0, -1, dim]);
        let (proj, scale) = (under(path, "attn.proj"), layer_scale(path, "ls1", config));
        self.linear_scaled(&joined, &proj, dense(dim, dim), scale.as_deref())
    }
}

/// Path of the scale after a branch of a block, where the network has them.
fn layer_scale(path: &str, name: &str, config: &VitConfig) -> Option<String> {
    config.layer_scale.map(|_| under(path, name))
}
