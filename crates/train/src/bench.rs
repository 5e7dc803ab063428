//! Seconds per crop of each encoder.

use std::time::Instant;

use net::device::Precision;
use net::encoder::{ENCODERS, EncoderConfig, build};
use net::unet::EfficientUnet;
use tch::nn::VarStore;
use tch::{Kind, Tensor};

use crate::error::Result;
use crate::preset::{FinetunePreset, SegmentPreset};

/// What the others are compared with.
pub const REFERENCE: &str = "vit_base_patch16_224";

/// What is timed.
#[derive(Clone, Debug)]
pub struct Bench {
    /// Side of the input, px; transformers take the nearest multiple of their patch below it.
    pub image: i64,
    /// Crops per run.
    pub batch: i64,
    /// Runs, of which the median counts.
    pub runs: usize,
    /// `auto`, `cpu`, `cuda`, `cuda:1`.
    pub device: String,
    /// Arithmetic.
    pub precision: Precision,
}

/// One encoder's time.
#[derive(Clone, Debug, PartialEq)]
pub struct Timed {
    /// Its name.
    pub name: &'static str,
    /// Side of its input, px.
    pub image: i64,
    /// Median seconds per crop: the forward pass of normalised images to logits.
    pub seconds: f64,
}

/// Names of all encoders.
#[must_use]
pub fn known() -> Vec<&'static str> {
    ENCODERS.iter().map(|e| e.name).collect()
}

/// Times one encoder with seeded weights (time does not depend on their values).
///
/// # Errors
/// An unknown device or a network that cannot be built.
pub fn encoder(name: &'static str, bench: &Bench) -> Result<Timed> {
    let device = net::device::pick(&bench.device)?;
    let image = match name {
        n if n.contains("patch14") => bench.image / 14 * 14,
        n if n.starts_with("vit") => bench.image / 16 * 16,
        _ => bench.image,
    };
    let config = EncoderConfig { image, ..EncoderConfig::new(name, 2) };
    tch::manual_seed(1);
    let vs = VarStore::new(device);
    let net = build(&vs.root(), &config)?;
    let x = Tensor::rand([bench.batch, 3, image, image], (Kind::Float, device));
    let once = || {
        let start = Instant::now();
        tch::no_grad(|| {
            let y = bench.precision.run(device, || net.forward(&x, false));
            // Reading a value waits for the device.
            y.sum(Kind::Float).double_value(&[])
        });
        start.elapsed().as_secs_f64() / bench.batch as f64
    };
    once();
    let mut seconds: Vec<f64> = (0..bench.runs.max(1)).map(|_| once()).collect();
    seconds.sort_by(f64::total_cmp);
    Ok(Timed { name, image, seconds: seconds[seconds.len() / 2] })
}

/// Seconds per training image of both stages of a detector.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DetectorTime {
    /// First stage.
    pub segment: f64,
    /// Second stage.
    pub finetune: f64,
}

/// Times one forward and backward pass of both networks on noise, which leaves out the drawing of
/// samples: the other cores do that.
///
/// # Errors
/// An unknown device or a network that cannot be built.
pub fn detector(
    segment: &SegmentPreset,
    finetune: &FinetunePreset,
    device: &str,
) -> Result<DetectorTime> {
    const BATCH: i64 = 2;
    let device = net::device::pick(device)?;
    tch::manual_seed(1);
    let vs = VarStore::new(device);
    let unet = EfficientUnet::new(&(vs.root() / "segment"), &segment.model)?;
    let encoder = build(&(vs.root() / "finetune"), &finetune.model)?;
    let timed = |side: i64, forward: &dyn Fn(&Tensor) -> Tensor| {
        let x = Tensor::rand([BATCH, 3, side, side], (Kind::Float, device));
        let once = || {
            let start = Instant::now();
            let loss = forward(&x).mean(Kind::Float);
            loss.backward();
            // Reading a value waits for the device.
            loss.double_value(&[]);
            start.elapsed().as_secs_f64() / BATCH as f64
        };
        once();
        once()
    };
    Ok(DetectorTime {
        segment: timed(segment.data.patch as i64, &|x| unet.forward(x, true)),
        finetune: timed(finetune.model.image, &|x| encoder.forward(x, true)),
    })
}

/// The device and threads in words.
///
/// # Errors
/// An unknown device.
pub fn machine(device: &str) -> Result<(String, i32)> {
    Ok((format!("{:?}", net::device::pick(device)?), tch::get_num_threads()))
}
