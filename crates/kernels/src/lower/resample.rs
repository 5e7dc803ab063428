//! `Resize`: which source rows and columns each output takes.

use super::Lowering;
use super::node::{At, Value};
use crate::error::PlanError;
use crate::ir::{Act, Blend, Op, Resample, Shape};

impl Lowering {
    pub(super) fn resize(&mut self, at: &At<'_>) -> Result<Value, PlanError> {
        let (id, shape, rank) = self.computed(at, 0)?;
        let scales = self.floats(at, 2)?;
        let sizes = self.constant(at, 3)?.and_then(|t| t.as_ints().map(<[i64]>::to_vec));
        let (h, w, sy, sx) = match (&scales[..], sizes.as_deref()) {
            ([n, c, y, x], None) if rank == 4 => {
                let fits = |s: f32| s.is_finite() && s > 0.0 && s <= 64.0;
                if *n != 1.0 || *c != 1.0 || !fits(*y) || !fits(*x) {
                    return at.unsupported(format!("scales of {scales:?}"));
                }
                let side = |n: usize, s: f32| (n as f32 * s).floor() as usize;
                (side(shape.h, *y), side(shape.w, *x), f64::from(*y), f64::from(*x))
            }
            (_, Some(&[_, c, h, w])) if rank == 4 && c == shape.c as i64 && h > 0 && w > 0 => {
                let (h, w) = (h as usize, w as usize);
                (h, w, h as f64 / shape.h as f64, w as f64 / shape.w as f64)
            }
            (scales, sizes) => {
                return at.unsupported(format!("scales {scales:?}, sizes {sizes:?}"));
            }
        };
        if h == 0 || w == 0 || h > 1 << 15 || w > 1 << 15 {
            return at.misfit(format!("an output of {h} x {w}"));
        }
        if at.attributes.int("antialias", 0) != 0 {
            return at.unsupported("antialias");
        }
        // With scales it has no meaning.
        match at.attributes.text("keep_aspect_ratio_policy") {
            Some(policy) if policy != "stretch" && sizes.is_some() => {
                return at.unsupported(format!("keep_aspect_ratio_policy `{policy}`"));
            }
            _ => {}
        }
        let coordinates =
            at.attributes.text("coordinate_transformation_mode").unwrap_or("half_pixel");
        let place = match coordinates {
            "half_pixel" => |i: f64, s: f64, _: usize, _: usize| (i + 0.5) / s - 0.5,
            "asymmetric" => |i: f64, s: f64, _: usize, _: usize| i / s,
            "pytorch_half_pixel" => |i: f64, s: f64, out: usize, _: usize| {
                if out > 1 { (i + 0.5) / s - 0.5 } else { 0.0 }
            },
            "align_corners" => |i: f64, _: f64, out: usize, n: usize| {
                if out > 1 { i * (n - 1) as f64 / (out - 1) as f64 } else { 0.0 }
            },
            other => return at.unsupported(format!("coordinates `{other}`")),
        };
        let axis =
            |n: usize, out: usize, s: f64| (0..out).map(move |i| (place(i as f64, s, out, n), n));
        let resample = match at.attributes.text("mode").unwrap_or("nearest") {
            "nearest" => {
                let round = match at.attributes.text("nearest_mode").unwrap_or("round_prefer_floor")
                {
                    "round_prefer_floor" => |v: f64| (v - 0.5).ceil(),
                    "round_prefer_ceil" => |v: f64| (v + 0.5).floor(),
                    "floor" => f64::floor,
                    "ceil" => f64::ceil,
                    other => return at.unsupported(format!("nearest_mode `{other}`")),
                };
                let index = |(v, n): (f64, usize)| round(v).clamp(0.0, (n - 1) as f64) as usize;
                let ys = axis(shape.h, h, sy).map(index).collect();
                Resample::Nearest(ys, axis(shape.w, w, sx).map(index).collect())
            }
            "linear" => {
                let blend = |(v, n): (f64, usize)| {
                    let v = v.clamp(0.0, (n - 1) as f64);
                    let first = v.floor() as usize;
                    let second = (first + 1).min(n - 1);
                    Blend { first, second, share: (v - first as f64) as f32 }
                };
                let ys = axis(shape.h, h, sy).map(blend).collect();
                Resample::Linear(ys, axis(shape.w, w, sx).map(blend).collect())
            }
            other => return at.unsupported(format!("mode `{other}`")),
        };
        self.step(Op::Resize(resample, Act::NONE), vec![id], Shape { h, w, ..shape }, rank)
    }
}
