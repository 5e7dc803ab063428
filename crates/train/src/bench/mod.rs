//! Seconds per crop of each encoder, and how much of the machine it uses.

mod figure;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Instant;

use base::progress::{Listener, Piece};
use net::device::Precision;
use net::encoder::{Architecture, ENCODERS, EncoderConfig, build};
use net::onnx::{ExportOptions, MOST_BYTES, WeightKind, embedding, multiply_accumulates};
use net::unet::EfficientUnet;
use serde::Serialize;
use tch::nn::VarStore;
use tch::{Kind, Tensor};

use crate::error::{Result, TrainError};
use crate::preset::SegmentPreset;

pub use figure::{Scores, scores};

/// What the others are compared with.
pub const REFERENCE: &str = "vit_base_patch16_224";

/// Side of the input of an architecture alone, px.
const DEFAULT_IMAGE: i64 = 224;

/// What is timed.
#[derive(Clone, Debug)]
pub struct Bench {
    /// Side of the input, px; transformers take the nearest multiple of their patch below it. Absent:
    /// published encoders take their own, the others 224.
    pub image: Option<i64>,
    /// Crops per run.
    pub batch: i64,
    /// Runs, of which the median counts.
    pub runs: usize,
    /// `auto`, `cpu`, `cuda`, `cuda:1`.
    pub device: String,
    /// Arithmetic.
    pub precision: Precision,
    /// Candidates of a region and of a slide, which the second stage looks at.
    pub candidates: [u32; 2],
    /// Seconds that the second stage took per region and per slide in detection runs, by encoder; an encoder
    /// without a run has its time per crop, times the candidates.
    pub measured: [BTreeMap<String, Measured>; 2],
}

/// The second stage's time in a detection run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// Mean seconds per region or slide.
    pub seconds: f64,
    /// Over how many.
    pub count: usize,
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
    /// Multiply-accumulates per crop; none where the network cannot be exported to count them.
    pub macs: Option<u64>,
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
    let image = match (bench.image, net::encoder::entry(name).map(|e| e.architecture)) {
        (Some(side), Some(Architecture::Vit(vit))) => side / vit.patch * vit.patch,
        (Some(side), _) => side,
        (None, _) => net::encoder::published(name).map_or(DEFAULT_IMAGE, |p| p.image),
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
    let seconds = median((0..bench.runs.max(1)).map(|_| once()).collect());
    // A file of giants would not fit into one message.
    let half = ExportOptions { weights: WeightKind::F16, ..ExportOptions::default() };
    let small = vs.trainable_variables().iter().map(Tensor::numel).sum::<usize>() < MOST_COUNTED;
    let macs = small
        .then(|| {
            let files = embedding(net.as_ref(), &vs, image, &half, MOST_BYTES)?;
            files.iter().map(|f| multiply_accumulates(f, image)).sum::<net::Result<u64>>()
        })
        .and_then(std::result::Result::ok);
    Ok(Timed { name, image, seconds, macs })
}

/// Networks of more weights are timed without counting.
const MOST_COUNTED: usize = 700_000_000;

fn median(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}

/// Floating-point operations per second of the largest matrix product that this machine does well:
/// what the encoders' rates are held against.
fn peak(bench: &Bench) -> Result<f64> {
    const SIDE: i64 = 2048;
    let device = net::device::pick(&bench.device)?;
    let a = Tensor::rand([SIDE, SIDE], (Kind::Float, device));
    let once = || {
        let start = Instant::now();
        let y = tch::no_grad(|| bench.precision.run(device, || a.matmul(&a)));
        y.get(0).get(0).to_kind(Kind::Double).double_value(&[]);
        start.elapsed().as_secs_f64()
    };
    once();
    let best = (0..bench.runs.max(5)).map(|_| once()).fold(f64::INFINITY, f64::min);
    Ok(2.0 * (SIDE as f64).powi(3) / best)
}

/// Every encoder's time, compared with the reference's.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Benchmark {
    schema: &'static str,
    device: String,
    threads: i32,
    precision: &'static str,
    batch: i64,
    runs: usize,
    reference: &'static str,
    /// Measured on a matrix product, floating-point operations per second.
    peak_flops: f64,
    /// Crops of a region and of a slide.
    candidates: [u32; 2],
    encoders: Vec<Line>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct Line {
    encoder: &'static str,
    image: i64,
    crop_s: f64,
    region_s: f64,
    /// How many regions of a run that is the mean of; none where it is the time of so many crops.
    regions: Option<usize>,
    slide_s: f64,
    /// How many slides of a run that is the mean of; none where it is the time of so many crops.
    slides: Option<usize>,
    relative: f64,
    /// Floating-point operations per crop: two for each multiply-accumulate.
    flop: Option<f64>,
    /// Its rate as a share of `peak_flops`.
    peak_share: Option<f64>,
}

/// Times the encoders of these names, or all architectures, and the reference; `listener` gets a line for
/// each.
///
/// # Errors
/// An unknown name or device, or a network that cannot be built.
pub fn run(names: &[String], bench: &Bench, listener: &mut dyn Listener) -> Result<Benchmark> {
    let known = known();
    let runs = bench.measured.iter().flat_map(BTreeMap::keys);
    if let Some(n) = names.iter().chain(runs).find(|n| !known.contains(&n.as_str())) {
        let reason = format!("no such encoder; known: {}", known.join(", "));
        return Err(TrainError::Preset { path: n.into(), reason });
    }
    // Published encoders are the same architectures again, and giants: only when named.
    let plain = |n: &str| net::encoder::published(n).is_none();
    let asked =
        |n: &&str| names.is_empty() && plain(n) || *n == REFERENCE || names.iter().any(|m| m == n);
    let peak = peak(bench)?;
    let asked: Vec<&'static str> = known.iter().copied().filter(asked).collect();
    let mut piece = Piece::begin(listener, "encoders", "encoders", "encoders");
    let timed = asked.iter().enumerate().map(|(k, name)| {
        let row = encoder(name, bench)?;
        piece.report(&format!("{name}: done"));
        piece.update(k as u64 + 1, asked.len() as u64);
        Ok(row)
    });
    let rows: Result<Vec<Timed>> = timed.collect();
    piece.finish();
    let rows = rows?;
    let base = rows.iter().find(|r| r.name == REFERENCE).map_or(f64::NAN, |r| r.seconds);
    let line = |r: &Timed| {
        let flop = r.macs.map(|n| 2.0 * n as f64);
        let scale = |k: usize| match bench.measured[k].get(r.name) {
            Some(m) => (m.seconds, Some(m.count)),
            None => (r.seconds * f64::from(bench.candidates[k]), None),
        };
        let ((region_s, regions), (slide_s, slides)) = (scale(0), scale(1));
        Line {
            encoder: r.name,
            image: r.image,
            crop_s: r.seconds,
            region_s,
            regions,
            slide_s,
            slides,
            relative: r.seconds / base,
            flop,
            peak_share: flop.map(|n| n / r.seconds / peak),
        }
    };
    let (device, threads) = machine(&bench.device)?;
    Ok(Benchmark {
        schema: "mithras.bench/3",
        device,
        threads,
        precision: if bench.precision == Precision::Bf16 { "bf16" } else { "f32" },
        batch: bench.batch,
        runs: bench.runs,
        reference: REFERENCE,
        peak_flops: peak,
        candidates: bench.candidates,
        encoders: rows.iter().map(line).collect(),
    })
}

impl fmt::Display for Benchmark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [region, slide] = self.candidates;
        writeln!(f, "peak of a matrix product: {:.0} GFLOP/s", self.peak_flops / 1e9)?;
        writeln!(
            f,
            "a region has {region} candidates, a slide {slide}; * mean of a detection run"
        )?;
        let heads = ["px", "ms/crop", "s/region", "s/slide", "relative", "GFLOP", "of peak"];
        let [px, crop, region, slide, relative, flop, share] = heads;
        write!(f, "{:<24}  {px:>5}  {crop:>10}  {region:>9}  {slide:>9}", "encoder")?;
        writeln!(f, "  {relative:>8}  {flop:>8}  {share:>7}")?;
        self.encoders.iter().try_for_each(|l| {
            let Line { encoder, image, relative, .. } = l;
            let mark = |n: Option<usize>| if n.is_some() { "*" } else { "" };
            let region_s = format!("{:.3}{}", l.region_s, mark(l.regions));
            let slide_s = format!("{:.1}{}", l.slide_s, mark(l.slides));
            let known = |v: Option<f64>, scale: f64| match v {
                Some(v) => format!("{:.2}", v * scale),
                None => "-".into(),
            };
            let (ms, flop, share) = (1e3 * l.crop_s, known(l.flop, 1e-9), known(l.peak_share, 1.0));
            write!(f, "{encoder:<24}  {image:>5}  {ms:>10.2}  {region_s:>9}  {slide_s:>9}")?;
            writeln!(f, "  {relative:>8.2}  {flop:>8}  {share:>7}")
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
    second: &EncoderConfig,
    device: &str,
) -> Result<DetectorTime> {
    const BATCH: i64 = 2;
    let device = net::device::pick(device)?;
    tch::manual_seed(1);
    let vs = VarStore::new(device);
    let unet = EfficientUnet::new(&(vs.root() / "segment"), &segment.model)?;
    let encoder = build(&(vs.root() / "finetune"), second)?;
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
        finetune: timed(second.image, &|x| encoder.forward(x, true)),
    })
}

/// The device and threads as text.
///
/// # Errors
/// An unknown device.
pub fn machine(device: &str) -> Result<(String, i32)> {
    Ok((format!("{:?}", net::device::pick(device)?), tch::get_num_threads()))
}
