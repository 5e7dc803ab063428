//! Test support: weights drawn from their name as in `golden/fill.py`, golden files, comparisons.
#![allow(dead_code, reason = "each test file uses its part")]

use serde::Deserialize;
use tch::nn::VarStore;
use tch::{Kind, Tensor};

/// `u` of `fill.py`, [0, 1).
fn uniform(name: &str, n: usize) -> impl Iterator<Item = f64> {
    let seed = name
        .bytes()
        .fold(0xCBF2_9CE4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01B3));
    (1..=n as u64).map(move |i| {
        let mut z = seed.wrapping_add(i.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^= z >> 31;
        (z >> 40) as f64 / f64::from(1u32 << 24)
    })
}

fn tensor(values: impl Iterator<Item = f64>, shape: &[i64]) -> Tensor {
    let values: Vec<f32> = values.map(|v| v as f32).collect();
    Tensor::from_slice(&values).reshape(shape)
}

/// Uniform in [-scale, scale).
pub fn signed(name: &str, shape: &[i64], scale: f64) -> Tensor {
    let n = shape.iter().product::<i64>() as usize;
    tensor(uniform(name, n).map(|u| (2.0 * u - 1.0) * scale), shape)
}

pub fn values(name: &str, shape: &[i64]) -> Tensor {
    let n = shape.iter().product::<i64>() as usize;
    let u = uniform(name, n);
    let s = |u: f64| 2.0 * u - 1.0;
    if name.ends_with("running_var") {
        // Small activations: with variances near one rounding grows 10,000-fold in V2-S.
        tensor(u.map(|u| 2.0 + u), shape)
    } else if name.ends_with("pos_embed") || name.ends_with("_token") {
        tensor(u.map(|u| s(u) / 10.0), shape)
    } else if shape.len() >= 2 {
        let scale = (6.0 / shape[1..].iter().product::<i64>() as f64).sqrt();
        tensor(u.map(|u| s(u) * scale), shape)
    } else if name.ends_with("weight") {
        tensor(u.map(|u| 1.0 + s(u) / 10.0), shape)
    } else {
        tensor(u.map(|u| s(u) / 10.0), shape)
    }
}

pub fn fill(vs: &VarStore) {
    tch::no_grad(|| {
        for (name, mut t) in vs.variables() {
            t.copy_(&values(&name, &t.size()));
        }
    });
}

pub fn golden<T: for<'a> Deserialize<'a>>(name: &str) -> T {
    let path =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/{name}.json"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// `sample` of `fill.py`.
#[derive(Debug, Deserialize)]
pub struct Sample {
    pub shape: Vec<i64>,
    pub values: Vec<f64>,
    pub abs_sum: f64,
}

impl Sample {
    /// Largest difference over the largest golden magnitude.
    #[track_caller]
    pub fn check(&self, what: &str, t: &Tensor, tolerance: f64) {
        assert_eq!(t.size(), self.shape, "{what}: shape");
        let flat = to_vec(t);
        let step = (flat.len() / 32.max(self.values.len())).max(1);
        let (mut worst, mut scale) = (0.0f64, 0.0f64);
        for (have, want) in flat.iter().step_by(step).zip(&self.values) {
            worst = worst.max((have - want).abs());
            scale = scale.max(want.abs());
        }
        let sum: f64 = flat.iter().map(|v| v.abs()).sum();
        assert!(worst <= tolerance * scale, "{what}: {worst:e} of {scale:e}");
        assert!(
            (sum - self.abs_sum).abs() <= tolerance * self.abs_sum,
            "{what}: magnitudes sum to {sum}, golden {}",
            self.abs_sum
        );
    }
}

pub fn to_vec(t: &Tensor) -> Vec<f64> {
    let flat = t.detach().to_kind(Kind::Double).contiguous().reshape([-1]);
    Vec::<f64>::try_from(flat).expect("a flat f64 tensor")
}

/// Tensors as a file has them.
pub fn arrays(tensors: &std::collections::BTreeMap<String, Tensor>) -> encoders::weights::Arrays {
    let array = |t: &Tensor| {
        let kind = match t.kind() {
            Kind::Float => encoders::Kind::Float,
            Kind::Double => encoders::Kind::Double,
            Kind::Half => encoders::Kind::Half,
            Kind::BFloat16 => encoders::Kind::BFloat16,
            Kind::Int64 => encoders::Kind::Int64,
            other => panic!("{other:?}"),
        };
        let t = t.detach().contiguous();
        let mut data = vec![0; t.numel() * kind.size()];
        t.copy_data_u8(&mut data, t.numel());
        encoders::Array::new(t.size(), kind, data.into()).expect("its values")
    };
    tensors.iter().map(|(name, t)| (name.clone(), array(t))).collect()
}
