//! Batches of views as tensors, in parts that fit into memory.

use super::micro::Micro;
use crate::batch::{MEAN, STD};
use crops::pairs::PairBatch;
use tch::{Device, Kind, Tensor};

/// `[n, S, S, 3]` bytes to `[n, 3, S, S]`, normalised, on `device`: bytes travel there, and the
/// arithmetic is [`pixels::input::Normalisation`]'s, to the last bit. Divisors are tensors because
/// a GPU multiplies by the inverse of a plain number.
pub(crate) fn normalise(pixels: &[u8], size: usize, device: Device) -> Tensor {
    let s = size as i64;
    let channels = |v: [f32; 3]| Tensor::from_slice(&v).view([1, 3, 1, 1]).to_device(device);
    let x = Tensor::from_slice(pixels).view([-1, s, s, 3]).to_device(device);
    let x = x.permute([0, 3, 1, 2]).to_kind(Kind::Float) / channels([255.0; 3]);
    ((x - channels(MEAN)) / channels(STD)).contiguous()
}

/// A batch cut into micro-batches of `k` samples, on `device`.
pub(crate) fn micros(batch: &PairBatch, size: usize, k: usize, device: Device) -> Vec<Micro> {
    let (pixels, tiles) = (2 * 3 * size * size, batch.cells.len() / batch.n.max(1));
    (0..batch.n)
        .step_by(k)
        .map(|from| {
            let n = k.min(batch.n - from);
            let (a, b) = (from, from + n);
            let per_view = |t: Tensor| t.view([2 * n as i64, -1]).to_device(device);
            Micro {
                views: normalise(&batch.pixels[a * pixels..b * pixels], size, device),
                labels: Tensor::from_slice(&batch.labels[a..b]).to_device(device),
                cells: per_view(Tensor::from_slice(&batch.cells[a * tiles..b * tiles]))
                    .to_kind(Kind::Int64),
                noise: per_view(Tensor::from_slice(&batch.noise[a * tiles..b * tiles])),
            }
        })
        .collect()
}
