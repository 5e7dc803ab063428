//! Masked, reconstructed, original: what the decoder sees in a few crops.

use std::path::Path;

use image::RgbImage;
use net::loss::mim::{tiles, untile};
use net::mae::Masking;
use tch::{Device, Kind, Tensor};

use super::method::Pretraining;
use super::normalise;
use crate::batch::{MEAN, STD};
use crate::error::{Result, TrainError};

/// Writes `dir/epoch-NNNN.png`: one row per crop of `shown` (`[n, S, S, 3]` bytes), with the masks of
/// a fixed seed. Predicted tiles are brought back by their own tile's mean and deviation, the visible
/// ones are kept. Without a reconstruction nothing is written.
pub(super) fn write(
    dir: &Path,
    epoch: usize,
    method: &dyn Pretraining,
    shown: &[u8],
    (size, patch): (usize, usize),
    device: Device,
) -> Result<()> {
    if shown.is_empty() {
        return Ok(());
    }
    let fail = |e: &dyn std::fmt::Display| TrainError::run(dir, e);
    std::fs::create_dir_all(dir).map_err(|e| fail(&e))?;
    let columns = tch::no_grad(|| {
        let x = normalise(shown, size, device);
        let mae = method.mae();
        let (n, t) = (x.size()[0], mae.config().tiles());
        // The same tiles in every figure: a fixed multiplicative order.
        let noise: Vec<f32> = (0..n * t)
            .map(|i| ((i as u64 * 2_654_435_761 + 12_345) % 1_000_003) as f32 / 1_000_003.0)
            .collect();
        let noise = Tensor::from_slice(&noise).view([n, t]).to_device(device);
        let masking = Masking::from_noise(&noise, mae.config().visible());
        let latent = mae.encode(&x, &masking, false);
        let prediction = mae.decode(&latent, &masking, false).to_kind(Kind::Float);
        let own = tiles(&x, patch as i64);
        let mean = own.mean_dim([-1i64].as_slice(), true, None);
        let deviation = (own.var_dim([-1i64].as_slice(), true, true) + 1e-6).sqrt();
        let mask = masking.mask.unsqueeze(-1);
        let seen = &own * (1.0 - &mask);
        let filled = (prediction * deviation + mean) * &mask + &seen;
        [seen, filled, own].map(|t| pixels(&untile(&t, patch as i64)))
    });
    let rows = shown.len() / (3 * size * size);
    let side = |n: usize| u32::try_from(n * (size + 4) + 4).unwrap_or(u32::MAX);
    let mut sheet = RgbImage::from_pixel(side(3), side(rows), image::Rgb([255; 3]));
    for (c, column) in columns.iter().enumerate() {
        for (r, one) in column.chunks_exact(3 * size * size).enumerate() {
            for (i, px) in one.chunks_exact(3).enumerate() {
                let at = |n: usize, k: usize| (n * (size + 4) + 4 + k) as u32;
                sheet.put_pixel(
                    at(c, i % size),
                    at(r, i / size),
                    image::Rgb([px[0], px[1], px[2]]),
                );
            }
        }
    }
    let tmp = dir.join(".writing.png");
    sheet.save(&tmp).map_err(|e| fail(&e))?;
    std::fs::rename(&tmp, dir.join(format!("epoch-{epoch:04}.png"))).map_err(|e| fail(&e))
}

/// Normalised `[n, 3, S, S]` to `[n, S, S, 3]` bytes.
fn pixels(x: &Tensor) -> Vec<u8> {
    let channels =
        |v: [f32; 3]| Tensor::from_slice(&v).view([1, 3, 1, 1]).to_device(x.device()) * 255.0;
    let levels =
        (x * channels(STD) + channels(MEAN)).round().clamp(0.0, 255.0).to_kind(Kind::Uint8);
    let flat = levels.permute([0, 2, 3, 1]).contiguous().view([-1]).to_device(Device::Cpu);
    Vec::<u8>::try_from(flat).expect("a flat byte tensor")
}
