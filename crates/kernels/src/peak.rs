//! What this processor can do at best, to hold a network's speed against.

use crate::Isa;
use crate::isa::{Clamp, Rows, Source, Start};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// The most that one core reaches in this crate's own inner loop, and in copying memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Peaks {
    /// The instruction set that was measured.
    pub isa: Isa,
    /// f32 operations per second (a multiply-accumulate is two) on data that stay in the first two caches.
    pub flops: f64,
    /// Bytes read and written per second while 64 MiB are copied.
    pub copied_bytes: f64,
}

/// Output pixels, and the depth of a product: 24 KiB of weights and 32 KiB of values with 48 columns.
const PIXELS: usize = 64;
const DEPTH: usize = 128;

impl Peaks {
    /// The best of many short runs on this thread, in `time` for each of the two figures.
    #[must_use]
    pub fn measure(time: Duration) -> Self {
        let isa = Isa::best();
        Self { isa, flops: flops(isa, time), copied_bytes: copied(time) }
    }
}

fn flops(isa: Isa, time: Duration) -> f64 {
    let registers = isa.widest();
    let columns = registers * isa.lanes();
    let values = vec![0.5_f32; PIXELS * DEPTH];
    let weights = vec![0.25_f32; DEPTH * columns];
    let bias = vec![0.0_f32; columns];
    let mut out = vec![0.0_f32; PIXELS * columns];
    let run = || {
        let source = Source { data: &values, at: 0, pixel: DEPTH, tap: 0, taps: 1, len: DEPTH };
        for _ in 0..20 {
            isa.rows(Rows {
                sources: &[source],
                pixels: PIXELS,
                weights: &weights,
                registers,
                columns,
                start: Start::Bias(&bias),
                clamp: Clamp::NONE,
                residual: None,
                residual_places: None,
                out: black_box(&mut out),
                out_at: 0,
                out_step: columns,
                places: None,
            });
        }
    };
    let operations = 20 * 2 * PIXELS * DEPTH * columns;
    operations as f64 / least(time, run)
}

fn copied(time: Duration) -> f64 {
    const BYTES: usize = 64 << 20;
    let from = vec![1_u8; BYTES];
    let mut to = vec![0_u8; BYTES];
    2.0 * BYTES as f64 / least(time, || black_box(&mut to).copy_from_slice(black_box(&from)))
}

/// Seconds of the fastest run; two at least.
fn least(time: Duration, mut run: impl FnMut()) -> f64 {
    run();
    let (start, mut best) = (Instant::now(), f64::MAX);
    while best == f64::MAX || start.elapsed() < time {
        let one = Instant::now();
        run();
        best = best.min(one.elapsed().as_secs_f64());
    }
    best.max(1e-9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_processor_multiplies_and_copies() {
        let p = Peaks::measure(Duration::from_millis(2));
        assert_eq!(p.isa, Isa::best());
        // Slower than anything that runs this, and faster than anything that exists.
        assert!(p.flops > 1e7 && p.flops < 1e14, "{p:?}");
        assert!(p.copied_bytes > 1e7 && p.copied_bytes < 1e13, "{p:?}");
    }
}
