//! Position tables of another image size.

use tch::{Kind, Tensor};

/// A position table `[1, prefix + old^2, D]` for a grid of `new` patches per side: the rows of the
/// patches are interpolated (bicubic, antialiased, as timm's `resample_abs_pos_embed`), the `prefix`
/// rows before them stay. `None` when the patches are not square, or nothing needs to change.
#[must_use]
pub fn resample(table: &Tensor, prefix: i64, new: i64) -> Option<Tensor> {
    let &[1, rows, dim] = table.size().as_slice() else { return None };
    let old = side(rows - prefix)?;
    if old == new || new < 1 {
        return None;
    }
    tch::no_grad(|| {
        let patches = table.narrow(1, prefix, rows - prefix).to_kind(Kind::Float);
        let map = patches.reshape([1, old, old, dim]).permute([0, 3, 1, 2]).contiguous();
        let map = map.internal_upsample_bicubic2d_aa([new, new], false, None, None);
        let patches = map.permute([0, 2, 3, 1]).reshape([1, new * new, dim]).to_kind(table.kind());
        Some(Tensor::cat(&[&table.narrow(1, 0, prefix), &patches], 1))
    })
}

/// The side of a square of this many patches.
pub(crate) fn side(patches: i64) -> Option<i64> {
    let side = (patches.max(0) as f64).sqrt().round() as i64;
    (side > 0 && side * side == patches).then_some(side)
}
