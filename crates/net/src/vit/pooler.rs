//! Attentional pooling (CoCa's, as CONCH has it).

use tch::Tensor;
use tch::nn::{Init, Path};

use super::block::attend;
use crate::layer::{LayerNorm, Linear};
use encoders::vit::AttentionPool;

/// Torch's default of a layer norm.
const EPS: f64 = 1e-5;

/// One learned query that attends to all tokens, and a norm.
#[derive(Debug)]
pub struct Pooler {
    /// `[1, d]`.
    pub(crate) query: Tensor,
    pub(crate) norm_q: LayerNorm,
    pub(crate) norm_k: LayerNorm,
    pub(crate) q: Linear,
    pub(crate) k: Linear,
    pub(crate) v: Linear,
    pub(crate) proj: Linear,
    pub(crate) norm: LayerNorm,
    pub(crate) heads: i64,
}

impl Pooler {
    /// Builds it under `p` over tokens of width `context`.
    #[must_use]
    pub fn new(p: &Path, context: i64, shape: AttentionPool) -> Self {
        let AttentionPool { dim, heads } = shape;
        let init = Init::Randn { mean: 0.0, stdev: 0.02 };
        Self {
            query: p.var("query", &[1, dim], init),
            norm_q: LayerNorm::new(&(p / "norm_q"), dim, EPS),
            norm_k: LayerNorm::new(&(p / "norm_k"), context, EPS),
            q: Linear::new(&(p / "q"), dim, dim, true, init),
            k: Linear::new(&(p / "k"), context, dim, true, init),
            v: Linear::new(&(p / "v"), context, dim, true, init),
            proj: Linear::new(&(p / "proj"), dim, dim, true, init),
            norm: LayerNorm::new(&(p / "norm"), dim, EPS),
            heads,
        }
    }

    /// The query as it attends, `[1, d]`: the same for every image.
    pub(crate) fn question(&self) -> Tensor {
        self.q.forward(&self.norm_q.forward(&self.query))
    }

    /// `[N, T, D]` to `[N, d]`.
    pub fn forward(&self, tokens: &Tensor) -> Tensor {
        let x = self.norm_k.forward(tokens);
        let n = x.size()[0];
        let heads = |t: Tensor| {
            let (n, t_, d) = t.size3().expect("[N, T, d]");
            t.reshape([n, t_, self.heads, d / self.heads]).transpose(1, 2)
        };
        let q = heads(self.question().unsqueeze(0).expand([n, -1, -1], false));
        let y = attend(&q, &heads(self.k.forward(&x)), &heads(self.v.forward(&x)));
        self.norm.forward(&self.proj.forward(&y.transpose(1, 2).reshape([n, -1])))
    }
}
