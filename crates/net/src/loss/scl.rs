//! The semi-supervised contrastive loss (Eq. 1), streamed.
//!
//! For unit vectors `z_u` and `K` anchors, with `P(u)` the others of the same label:
//! `L = factor / K sum_u [ log sum_{a != u} exp(z_u.z_a / tau) - mean_{q in P(u)} z_u.z_q / tau ]`,
//! an anchor without positives adding zero but counting in `K`.
//!
//! The `K x K` similarities are never held: the positives have the closed form
//! `sum_q z_u.z_q = z_u.(S - z_u)` with `S` the sum of the label's vectors, and the rest runs over
//! square tiles of the upper triangle, each used for its rows and its columns. Similarities are at
//! most `max |z|^2`, so that bound, subtracted once, replaces a running maximum.

use serde::{Deserialize, Serialize};
use tch::{Kind, Tensor};

/// Constants of Eq. 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scl {
    /// Temperature tau, positive.
    pub temperature: f64,
    /// The fixed factor before the mean.
    pub factor: f64,
    /// Side of a tile: `block^2` similarities are held at a time.
    #[serde(default = "Scl::default_block")]
    pub block: i64,
}

impl Scl {
    fn default_block() -> i64 {
        2048
    }
}

impl Default for Scl {
    /// tau 0.1, factor 0.1.
    fn default() -> Self {
        Self { temperature: 0.1, factor: 0.1, block: Self::default_block() }
    }
}

/// Eq. 1 over unit vectors `z [K, D]` (any float kind, computed in f32) and labels `[K]` (i64),
/// as a scalar that back-propagates into `z`.
///
/// # Panics
/// When the shapes do not fit.
#[doc(alias = "Eq. 1")]
pub fn scl(z: &Tensor, labels: &Tensor, config: &Scl) -> Tensor {
    let (value, grad) = scl_with_grad(z, labels, config);
    attach(z, &value, &grad)
}

/// Eq. 2: [`scl`] over the projected class tokens `[2N, D]` of all views, labels `[2N]`.
#[doc(alias = "Eq. 2")]
pub fn scl_image(z: &Tensor, labels: &Tensor, config: &Scl) -> Tensor {
    scl(z, labels, config)
}

/// Eq. 3: [`scl`] over all projected visible tokens `[2N, V, D]`, labels `[2N, V]`; both may be
/// flattened already, as they are when they were gathered from several processes.
#[doc(alias = "Eq. 3")]
pub fn scl_token(z: &Tensor, labels: &Tensor, config: &Scl) -> Tensor {
    let d = *z.size().last().expect("[2N, V, D]");
    scl(&z.reshape([-1, d]), &labels.reshape([-1]), config)
}

/// A scalar of value `value` whose gradient with respect to `z` is `grad`.
pub fn attach(z: &Tensor, value: &Tensor, grad: &Tensor) -> Tensor {
    let linear = (z.to_kind(Kind::Float) * grad.detach()).sum(Kind::Float);
    // The difference is an exact zero, so the value keeps its last bit.
    value.detach() + (&linear - linear.detach())
}

/// Eq. 1's value (f32 scalar) and its gradient `[K, D]` (f32) with respect to `z`, no graph kept.
/// For contrast over gathered embeddings: gather, call once, hand every part its rows.
///
/// # Panics
/// When the shapes do not fit, or the temperature is so low that the terms leave f64's range.
pub fn scl_with_grad(z: &Tensor, labels: &Tensor, config: &Scl) -> (Tensor, Tensor) {
    let size = z.size();
    assert!(
        size.len() == 2 && labels.size() == [size[0]],
        "scl takes z [K, D] and labels [K], got {size:?} and {:?}",
        labels.size()
    );
    assert!(config.temperature > 0.0 && config.block > 0, "temperature and block are positive");
    tch::no_grad(|| {
        let z = z.detach().to_kind(Kind::Float).contiguous();
        if size[0] == 0 {
            return (Tensor::zeros([], (Kind::Float, z.device())), z);
        }
        let bound = f64::try_from(z.square().sum_dim_intlist([1i64].as_slice(), false, None).max())
            .expect("a scalar")
            / config.temperature;
        // exp runs over [-2 bound, 0]: within f32 for unit vectors and tau > 0.025.
        let kind = if 2.0 * bound < 80.0 { Kind::Float } else { Kind::Double };
        // Embeddings that are not numbers give a loss that is not finite, for the caller to stop at.
        let fits = bound.is_nan() || 2.0 * bound < 1400.0;
        assert!(fits, "temperature {} is too low", config.temperature);
        stream(&z.to_kind(kind), labels, config, bound)
    })
}

fn stream(z: &Tensor, labels: &Tensor, config: &Scl, bound: f64) -> (Tensor, Tensor) {
    let (k, device, kind) = (z.size()[0], z.device(), z.kind());
    let tau = config.temperature;
    let (_, class, counts) = labels.to_device(device).internal_unique2(true, true, true);
    let positives = counts.to_kind(kind).index_select(0, &class) - 1.0;
    let valid = positives.gt(0.0).to_kind(kind);
    let share = &valid / positives.clamp_min(1.0);
    // Sum of the other vectors of the label.
    let sums = Tensor::zeros([counts.size()[0], z.size()[1]], (kind, device));
    let others = sums.index_add(0, &class, z).index_select(0, &class) - z;

    let tiles: Vec<(i64, i64)> =
        (0..k).step_by(config.block as usize).map(|s| (s, config.block.min(k - s))).collect();
    let exps = |i: (i64, i64), j: (i64, i64)| {
        let (a, b) = (z.narrow(0, i.0, i.1), z.narrow(0, j.0, j.1));
        let mut e = a.matmul(&b.transpose(0, 1));
        let _ = e.g_mul_scalar_(1.0 / tau);
        let _ = e.g_add_scalar_(-bound);
        let mut e = e.exp_();
        if i.0 == j.0 {
            let _ = e.fill_diagonal_(0.0, false);
        }
        e
    };

    let row_sums = Tensor::zeros([k], (kind, device));
    for (n, &i) in tiles.iter().enumerate() {
        for &j in &tiles[n..] {
            let e = exps(i, j);
            let _ = row_sums.narrow(0, i.0, i.1).g_add_(&e.sum_dim_intlist(
                [1i64].as_slice(),
                false,
                None,
            ));
            if i.0 != j.0 {
                let _ = row_sums.narrow(0, j.0, j.1).g_add_(&e.sum_dim_intlist(
                    [0i64].as_slice(),
                    false,
                    None,
                ));
            }
        }
    }
    // Where an anchor is alone the logarithm is never used.
    let safe = row_sums.where_self(&row_sums.gt(0.0), &row_sums.ones_like());
    let pulls = (z * &others).sum_dim_intlist([1i64].as_slice(), false, None) * &share / tau;
    let per_anchor = (safe.log() + bound) * &valid - pulls;
    let scale = config.factor / k as f64;
    let value = (per_anchor.sum(Kind::Double) * scale).to_kind(Kind::Float);

    // d/dz_u: sum_a E_ua (v_u / r_u + v_a / r_a) z_a / tau, and the positives once as anchor, once
    // as positive of their own label.
    let weight = &valid / &safe;
    let grad = others * share.unsqueeze(1) * -2.0;
    for (n, &i) in tiles.iter().enumerate() {
        for &j in &tiles[n..] {
            let mut e = exps(i, j);
            let pair =
                weight.narrow(0, i.0, i.1).unsqueeze(1) + weight.narrow(0, j.0, j.1).unsqueeze(0);
            let e = e.g_mul_(&pair);
            drop(pair);
            let _ = grad.narrow(0, i.0, i.1).g_add_(&e.matmul(&z.narrow(0, j.0, j.1)));
            if i.0 != j.0 {
                let back = e.transpose(0, 1).matmul(&z.narrow(0, i.0, i.1));
                let _ = grad.narrow(0, j.0, j.1).g_add_(&back);
            }
        }
    }
    (value, (grad * (scale / tau)).to_kind(Kind::Float))
}
