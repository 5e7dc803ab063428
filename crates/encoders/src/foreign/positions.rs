//! Position tables of another image size.

use crate::array::Array;

/// A position table `[1, prefix + old^2, D]` for a grid of `new` patches per side: the rows of the
/// patches are interpolated (bicubic, antialiased, as timm's `resample_abs_pos_embed`), the `prefix`
/// rows before them stay. `None` when the patches are not square, or nothing needs to change.
#[must_use]
pub fn resample(table: &Array, prefix: i64, new: i64) -> Option<Array> {
    let &[1, rows, dim] = table.dims() else { return None };
    let old = side(rows - prefix)?;
    if old == new || new < 1 {
        return None;
    }
    let values = table.to_f32();
    let (kept, map) = values.split_at((prefix * dim) as usize);
    let (old, width) = (old as usize, dim as usize);
    let taps = taps(old, new as usize);
    // Along a row first, then along a column, as torch.
    let across = filtered(map, (old, width), &taps);
    let map = filtered(&across, (1, new as usize * width), &taps);
    let all = [kept, &map].concat();
    Some(Array::from_f32(vec![1, prefix + new * new, dim], &all))
}

/// The side of a square of this many patches.
pub(super) fn side(patches: i64) -> Option<i64> {
    let side = (patches.max(0) as f64).sqrt().round() as i64;
    (side > 0 && side * side == patches).then_some(side)
}

/// Where each new value begins to read, and its weights.
fn taps(old: usize, new: usize) -> Vec<(usize, Vec<f64>)> {
    let scale = old as f64 / new as f64;
    let wide = scale.max(1.0);
    let support = 2.0 * wide;
    let places = (0..new).map(|i| {
        let centre = scale * (i as f64 + 0.5);
        let from = ((centre - support + 0.5) as i64).max(0) as usize;
        let to = ((centre + support + 0.5) as usize).min(old);
        let raw: Vec<f64> = (from..to).map(|j| cubic((j as f64 - centre + 0.5) / wide)).collect();
        let sum: f64 = raw.iter().sum();
        (from, raw.into_iter().map(|w| w / sum).collect())
    });
    places.collect()
}

/// `[groups, old, width]` to `[groups, new, width]`.
fn filtered(map: &[f32], (groups, width): (usize, usize), taps: &[(usize, Vec<f64>)]) -> Vec<f32> {
    let mut out = Vec::new();
    for group in map.chunks_exact(map.len() / groups) {
        for (from, weights) in taps {
            let mut sums = vec![0.0; width];
            for (row, weight) in group.chunks_exact(width).skip(*from).zip(weights) {
                for (sum, value) in sums.iter_mut().zip(row) {
                    *sum += f64::from(*value) * weight;
                }
            }
            out.extend(sums.into_iter().map(|s| s as f32));
        }
    }
    out
}

/// Keys' cubic with a = -0.5, as torch's antialiased one.
fn cubic(x: f64) -> f64 {
    const A: f64 = -0.5;
    match x.abs() {
        x if x < 1.0 => ((A + 2.0) * x - (A + 3.0)) * x * x + 1.0,
        x if x < 2.0 => (((x - 5.0) * x + 8.0) * x - 4.0) * A,
        _ => 0.0,
    }
}
