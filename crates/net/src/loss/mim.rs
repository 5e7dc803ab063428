//! Masked-image reconstruction (Eq. 4).

use tch::{Kind, Tensor};

/// Eq. 4: `prediction [N, T, P]` against `target [N, T, P]` (see [`normalised_pixels`]) over the
/// masked tiles (`mask [N, T]`, one where masked): mean over a tile's values, then over all masked
/// tiles. Computed in f32. Zero when nothing is masked.
///
/// # Panics
/// When the shapes differ.
#[doc(alias = "Eq. 4")]
pub fn mim(prediction: &Tensor, target: &Tensor, mask: &Tensor) -> Tensor {
    assert_eq!(prediction.size(), target.size(), "prediction and target differ in shape");
    let difference = prediction.to_kind(Kind::Float) - target.to_kind(Kind::Float);
    let per_tile = difference.square().mean_dim([-1i64].as_slice(), false, None);
    let mask = mask.to_kind(Kind::Float);
    (per_tile * &mask).sum(Kind::Float) / mask.sum(Kind::Float).clamp_min(1.0)
}

/// An image batch `[N, 3, S, S]` as tiles `[N, T, p p 3]`, row-major tiles, channels innermost (the
/// MAE reference's `patchify`).
pub fn tiles(x: &Tensor, patch: i64) -> Tensor {
    let (n, c, h, w) = x.size4().expect("[N, 3, S, S]");
    x.reshape([n, c, h / patch, patch, w / patch, patch]).permute([0, 2, 4, 3, 5, 1]).reshape([
        n,
        (h / patch) * (w / patch),
        patch * patch * c,
    ])
}

/// The inverse of [`tiles`] for a square image.
pub fn untile(tiles: &Tensor, patch: i64) -> Tensor {
    let (n, t, p) = tiles.size3().expect("[N, T, P]");
    let (grid, c) = ((t as f64).sqrt() as i64, p / (patch * patch));
    tiles.reshape([n, grid, grid, patch, patch, c]).permute([0, 5, 1, 3, 2, 4]).reshape([
        n,
        c,
        grid * patch,
        grid * patch,
    ])
}

/// Targets of Eq. 4: every tile less its mean over the root of its unbiased variance plus 1e-6.
pub fn normalised_pixels(x: &Tensor, patch: i64) -> Tensor {
    let t = tiles(&x.to_kind(Kind::Float), patch);
    let mean = t.mean_dim([-1i64].as_slice(), true, None);
    let variance = t.var_dim([-1i64].as_slice(), true, true);
    (t - mean) / (variance + 1e-6).sqrt()
}
