//! Samples to tensors, drawn ahead of the loop on all cores.

use std::ops::Range;

use base::ahead::each_step;
use mitosis::RgbTile;
use net::encoder;
use pixels::input::Normalisation;
use pixels::resize::{Fit, Interpolation};
use rayon::prelude::*;
use tch::{Device, Tensor};

pub use pixels::input::{MEAN, STD};

/// Equal tiles to `[N, 3, H, W]`, normalised by ImageNet's figures, as segmenters are fed, on `device`.
/// The memory is laid out channels-last.
///
/// # Panics
/// When the tiles differ in size or there are none.
pub fn images(tiles: &[RgbTile], device: Device) -> Tensor {
    normalised(tiles, &Normalisation::new(MEAN, STD), device)
}

/// The same with an encoder's own normalisation.
///
/// # Panics
/// As [`images`].
pub fn normalised(tiles: &[RgbTile], norm: &Normalisation, device: Device) -> Tensor {
    let (w, h) = (tiles[0].width as i64, tiles[0].height as i64);
    let planes = norm.batch(tiles);
    let x = Tensor::from_slice(&planes).view([tiles.len() as i64, 3, h, w]);
    net::device::MemoryFormat::ChannelsLast.image(&x.to_device(device))
}

/// How images of any size become the `input` pixels of an encoder: as its makers have it, at another side
/// than theirs in the same proportion; an architecture alone as everything here, whole and bilinear.
#[must_use]
pub fn fit(name: &str, input: usize) -> Fit {
    let Some(p) = encoder::published(name) else {
        return Fit::whole(input, Interpolation::Bilinear);
    };
    let by = match p.interpolation {
        encoder::Interpolation::Bilinear => Interpolation::Bilinear,
        encoder::Interpolation::Bicubic => Interpolation::Bicubic,
    };
    Fit { input, resize: input * p.resize as usize / p.image as usize, by }
}

/// Calls `work` with each step's samples, in order from step `from` to `steps`; samples are drawn
/// on another thread, two steps ahead. Of a step's `batch` samples those in `part` are drawn, this
/// rank's. Sample `i` of step `s` is `draw(s * batch + i)`: it does not depend on the number of
/// workers or ranks, or on where a run was resumed.
///
/// # Errors
/// The first error of `work`.
pub fn for_each_step<T: Send, E>(
    (from, steps): (usize, usize),
    (batch, part): (usize, Range<usize>),
    draw: impl Fn(u64) -> T + Sync,
    mut work: impl FnMut(usize, Vec<T>) -> Result<(), E>,
) -> Result<(), E> {
    let samples = |step: usize| -> Vec<T> {
        part.clone().into_par_iter().map(|i| draw((step * batch + i) as u64)).collect()
    };
    each_step(from..steps, samples, |step, samples, _| work(step, samples))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normalises_as_the_cards_say() {
        let x = images(&[RgbTile::filled(2, 3, [255, 0, 128])], Device::Cpu);
        assert_eq!(x.size(), [1, 3, 3, 2]);
        let at = |c: i64| x.double_value(&[0, c, 1, 1]);
        assert!((at(0) - (1.0 - 0.485) / 0.229).abs() < 1e-5);
        assert!((at(1) + 0.456 / 0.224).abs() < 1e-5);
        assert!((at(2) - (128.0 / 255.0 - 0.406) / 0.225).abs() < 1e-5);
    }

    #[test]
    fn steps_come_in_order_whatever_the_start() {
        let run = |from| {
            let mut seen = vec![];
            for_each_step(
                (from, 6),
                (3, 0..3),
                |i| i,
                |s, v| {
                    seen.push((s, v));
                    Ok::<_, ()>(())
                },
            )
            .unwrap();
            seen
        };
        let second = for_each_step((5, 6), (4, 2..4), |i| i, |_, v| Err(v));
        assert_eq!(second, Err(vec![22, 23]));
        assert_eq!(run(0)[4..], run(4)[..]);
        assert_eq!(run(4)[0], (4, vec![12, 13, 14]));
        let stopped =
            for_each_step((0, 100), (1, 0..1), |i| i, |s, _| if s == 3 { Err(s) } else { Ok(()) });
        assert_eq!(stopped, Err(3));
    }
}
