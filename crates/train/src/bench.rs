//! Seconds per crop of each encoder.

use std::fmt;
use std::time::Instant;

use net::device::Precision;
use net::encoder::{ENCODERS, EncoderConfig, build};
use net::unet::EfficientUnet;
use serde::Serialize;
use tch::nn::VarStore;
use tch::{Kind, Tensor};

use crate::error::{Result, TrainError};
use crate::preset::{FinetunePreset, SegmentPreset};

/// What the others are compared with.
pub const REFERENCE: &str = "vit_base_patch16_224";

/// What is timed.
#[derive(Clone, Debug)]
pub struct Bench {
    /// Side of the input, px; transformers take the nearest multiple of their patch below
    /// it, published encoders their own.
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
    let own = net::encoder::published(name).map(|p| p.image);
    let image = own.unwrap_or_else(|| match name {
        n if n.contains("patch14") => bench.image / 14 * 14,
        n if n.starts_with("vit") => bench.image / 16 * 16,
        _ => bench.image,
    });
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

/// Every encoder's time beside the reference's.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Benchmark {
    schema: &'static str,
    device: String,
    threads: i32,
    precision: &'static str,
    batch: i64,
    runs: usize,
    reference: &'static str,
    encoders: Vec<Line>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct Line {
    encoder: &'static str,
    image: i64,
    crop_s: f64,
    relative: f64,
}

/// Times the encoders of these names, or all architectures, and the reference; `done` hears each name.
///
/// # Errors
/// An unknown name or device, or a network that cannot be built.
pub fn run(names: &[String], bench: &Bench, mut done: impl FnMut(&str)) -> Result<Benchmark> {
    let known = known();
    if let Some(n) = names.iter().find(|n| !known.contains(&n.as_str())) {
        let reason = format!("no such encoder; known: {}", known.join(", "));
        return Err(TrainError::Preset { path: n.into(), reason });
    }
    // Published encoders are the same architectures again, and giants: only when named.
    let plain = |n: &str| net::encoder::published(n).is_none();
    let asked =
        |n: &&str| names.is_empty() && plain(n) || *n == REFERENCE || names.iter().any(|m| m == n);
    let mut rows = Vec::new();
    for name in known.iter().copied().filter(asked) {
        rows.push(encoder(name, bench)?);
        done(name);
    }
    let base = rows.iter().find(|r| r.name == REFERENCE).map_or(f64::NAN, |r| r.seconds);
    let line = |r: &Timed| Line {
        encoder: r.name,
        image: r.image,
        crop_s: r.seconds,
        relative: r.seconds / base,
    };
    let (device, threads) = machine(&bench.device)?;
    Ok(Benchmark {
        schema: "mithras.bench/1",
        device,
        threads,
        precision: if bench.precision == Precision::Bf16 { "bf16" } else { "f32" },
        batch: bench.batch,
        runs: bench.runs,
        reference: REFERENCE,
        encoders: rows.iter().map(line).collect(),
    })
}

impl fmt::Display for Benchmark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<24}  {:>5}  {:>10}  {:>8}", "encoder", "px", "ms/crop", "relative")?;
        self.encoders.iter().try_for_each(|l| {
            let ms = 1e3 * l.crop_s;
            writeln!(f, "{:<24}  {:>5}  {ms:>10.2}  {:>8.2}", l.encoder, l.image, l.relative)
        })
    }
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
