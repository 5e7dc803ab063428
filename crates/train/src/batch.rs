//! Samples to tensors, drawn ahead of the loop on all cores.

use std::ops::Range;

use mitosis::RgbTile;
use pixels::input::Normalisation;
use rayon::prelude::*;
use tch::{Device, Tensor};

pub use pixels::input::{MEAN, STD};

/// Equal tiles to `[N, 3, H, W]`, normalised by ImageNet's figures, as segmenters are fed, on `device`.
/// The memory is laid out channels-last.
///
/// # Panics
/// When the tiles differ in size or the list is empty.
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

/// How the samples of a step are drawn, on all cores. Of a step's `batch` samples those in `part`
/// are drawn, this rank's. Sample `i` of step `s` is `draw(s * batch + i)`: it does not depend on the
/// number of workers or ranks, or on where a run was resumed.
pub fn samples<T: Send>(
    batch: usize,
    part: Range<usize>,
    draw: impl Fn(u64) -> T + Sync,
) -> impl Fn(usize) -> Vec<T> + Sync {
    move |step| part.clone().into_par_iter().map(|i| draw((step * batch + i) as u64)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normalises_as_the_cards_state() {
        let x = images(&[RgbTile::filled(2, 3, [255, 0, 128])], Device::Cpu);
        assert_eq!(x.size(), [1, 3, 3, 2]);
        let at = |c: i64| x.double_value(&[0, c, 1, 1]);
        assert!((at(0) - (1.0 - 0.485) / 0.229).abs() < 1e-5);
        assert!((at(1) + 0.456 / 0.224).abs() < 1e-5);
        assert!((at(2) - (128.0 / 255.0 - 0.406) / 0.225).abs() < 1e-5);
    }

    #[test]
    fn steps_come_in_order_whatever_the_start() {
        use base::prefetch::each_step;
        use std::ops::ControlFlow::{Break, Continue};
        let run = |from| {
            let mut seen = vec![];
            let end = each_step(from..6, samples(3, 0..3, |i| i), |s, v, _| {
                seen.push((s, v));
                Ok::<_, ()>(Continue(()))
            });
            assert_eq!(end, Ok(Continue(())));
            seen
        };
        let second = each_step(5..6, samples(4, 2..4, |i| i), |_, v, _| Err(v));
        assert_eq!(second, Err(vec![22, 23]));
        assert_eq!(run(0)[4..], run(4)[..]);
        assert_eq!(run(4)[0], (4, vec![12, 13, 14]));
        let mut last = 0;
        let stopped = each_step(0..100, samples(1, 0..1, |i| i), |s, _, _| {
            last = s;
            Ok::<_, ()>(if s == 3 { Break(()) } else { Continue(()) })
        });
        assert_eq!((stopped, last), (Ok(Break(())), 3));
    }
}
