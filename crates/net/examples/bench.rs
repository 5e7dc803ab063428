//! Times of training steps and of the token loss: `cargo run --release -p mithras-net --example bench --
//! unet|mae|scl [threads]`; `step SIZE VIEWS PRECISION DEVICE RUNS` is one pretraining step, its
//! seconds as JSON. The peer in PyTorch is `bench_peer.py` next to this file.
//!
//! CPU seconds (user + system of the process) are next to wall seconds: on a shared machine only
//! they compare.

#![allow(clippy::print_stderr, clippy::print_stdout, reason = "prints times")]

use std::time::Instant;

use net::device::{self, MemoryFormat, Precision};
use net::loss::mim::normalised_pixels;
use net::loss::scl::scl_with_grad;
use net::loss::{Objective, Scl, SegmentLoss, Term, mim, scl_image, scl_token};
use net::mae::{Mae, MaeConfig, Masking};
use net::optim::{AdamW, AdamWConfig, groups_weight_decay};
use net::unet::{EfficientUnet, UnetConfig};
use net::vit::Size;
use tch::{Device, Kind, Tensor, nn::VarStore};

/// User + system seconds of this process.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after = stat.rsplit(')').next().unwrap_or_default();
    let field = |i: usize| after.split_whitespace().nth(i).and_then(|v| v.parse::<f64>().ok());
    (field(11).unwrap_or(0.0) + field(12).unwrap_or(0.0)) / 100.0
}

/// A field of /proc/self/status in GiB.
fn memory(key: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|l| l.starts_with(key)).unwrap_or_default();
    let kib = line.split_whitespace().nth(1).and_then(|v| v.parse::<f64>().ok());
    kib.unwrap_or(0.0) / 1024.0 / 1024.0
}

/// Best of `n` after one warm-up.
fn time(what: &str, n: usize, mut f: impl FnMut()) {
    f();
    let mut best = (f64::INFINITY, f64::INFINITY);
    for _ in 0..n {
        let (wall, cpu) = (Instant::now(), cpu_seconds());
        f();
        best.0 = best.0.min(wall.elapsed().as_secs_f64());
        best.1 = best.1.min(cpu_seconds() - cpu);
    }
    println!("{what}: wall {:.3} s, cpu {:.2} s", best.0, best.1);
}

fn unet(device: Device) {
    for format in [MemoryFormat::Contiguous, MemoryFormat::ChannelsLast] {
        for precision in [Precision::F32, Precision::Bf16] {
            let vs = VarStore::new(device);
            let net = EfficientUnet::new(&vs.root(), &UnetConfig::default()).expect("valid");
            format.apply(&vs);
            let groups = groups_weight_decay(&vs, 0.05, |_| false);
            let mut opt = AdamW::new(&vs, groups, AdamWConfig::default()).expect("valid");
            let x = format.image(&Tensor::rand([8, 3, 256, 256], (Kind::Float, device)));
            let y = Tensor::rand([8, 1, 256, 256], (Kind::Float, device)).gt(0.9);
            time(&format!("U-Net step 8x256x256 {format:?} {precision:?}"), 3, || {
                let logits = precision.run(device, || net.forward(&x, true));
                opt.zero_grad();
                SegmentLoss::default().forward(&logits, &y, None).total.backward();
                opt.step(1e-4).expect("a step");
            });
        }
    }
}

/// A step of the whole objective on `n` views, to be called again and again.
fn mae_step(size: Size, n: i64, precision: Precision, device: Device) -> impl FnMut() {
    let vs = VarStore::new(device);
    let net = Mae::new(&vs.root(), &MaeConfig::new(size)).expect("valid");
    let groups = groups_weight_decay(&vs, 0.05, Mae::no_decay);
    let mut opt = AdamW::new(&vs, groups, AdamWConfig::default()).expect("valid");
    let x = Tensor::rand([n, 3, 224, 224], (Kind::Float, device));
    let labels = Tensor::arange(n, (Kind::Int64, device)).remainder(2);
    let cells = Tensor::rand([n, 196], (Kind::Float, device)).gt(0.8).to_kind(Kind::Int64);
    let target = normalised_pixels(&x, 16);
    move || {
        let masking = Masking::from_noise(&net.noise(n), 49);
        let (prediction, image, tokens) = precision.run(device, || {
            let latent = net.encode(&x, &masking, true);
            let prediction = net.decode(&latent, &masking, true);
            (prediction, net.project_image(&latent), net.project_tokens(&latent))
        });
        let scl = Scl::default();
        let (total, _) = Objective::mithras(0.75).total(|term| match term {
            Term::Mim => mim(&prediction, &target, &masking.mask),
            Term::Image => scl_image(&image, &labels, &scl),
            Term::Token => scl_token(&tokens, &masking.select_visible(&cells), &scl),
        });
        opt.zero_grad();
        total.backward();
        opt.step(1e-4).expect("a step");
    }
}

fn mae(device: Device) {
    for (size, n) in [(Size::Tiny, 32), (Size::Base, 8)] {
        for precision in [Precision::F32, Precision::Bf16] {
            let what = format!("MAE {size:?} step, {n} views, whole objective, {precision:?}");
            time(&what, 3, mae_step(size, n, precision, device));
        }
    }
}

/// Seconds of a step: the median of the runs after as many again and one, the device's work waited for. With
/// `train pretrain` the views come from crops and are drawn meanwhile.
fn step(args: &[String]) {
    let [size, views, precision, device, runs] = args else {
        return eprintln!("bench step tiny|base VIEWS f32|bf16 DEVICE RUNS");
    };
    let size = if size == "base" { Size::Base } else { Size::Tiny };
    let precision = if precision == "bf16" { Precision::Bf16 } else { Precision::F32 };
    let device = device::pick(device).expect("a device");
    let mut step = mae_step(size, views.parse().expect("a number"), precision, device);
    let runs: usize = runs.parse().expect("a number");
    let mut seconds: Vec<f64> = (0..=2 * runs)
        .map(|_| {
            let begun = Instant::now();
            step();
            if let Device::Cuda(i) = device {
                tch::Cuda::synchronize(i as i64);
            }
            begun.elapsed().as_secs_f64()
        })
        .skip(runs + 1)
        .collect();
    seconds.sort_by(f64::total_cmp);
    println!("{{\"step_s\": {}}}", seconds[runs / 2]);
}

fn scl(device: Device) {
    for k in [4096, 8192, 50_176] {
        let z = Tensor::randn([k, 512], (Kind::Float, device));
        let z = &z / z.square().sum_dim_intlist([1i64].as_slice(), true, None).sqrt();
        let y = Tensor::rand([k], (Kind::Float, device)).gt(0.85).to_kind(Kind::Int64);
        let before = memory("VmRSS");
        let runs = if k > 10_000 { 1 } else { 3 };
        // One run warms up; the largest size is measured once.
        if runs == 1 {
            let (wall, cpu) = (Instant::now(), cpu_seconds());
            let _ = scl_with_grad(&z, &y, &Scl::default());
            let (wall, cpu) = (wall.elapsed().as_secs_f64(), cpu_seconds() - cpu);
            println!("token loss K={k}: wall {wall:.2} s, cpu {cpu:.2} s");
        } else {
            time(&format!("token loss K={k}, value and gradient"), runs, || {
                let _ = scl_with_grad(&z, &y, &Scl::default());
            });
        }
        println!("  memory before {before:.2} GiB, peak so far {:.2} GiB", memory("VmHWM"));
    }
}

fn main() {
    device::keep_freed_memory();
    let args: Vec<String> = std::env::args().collect();
    if args.get(1).is_some_and(|a| a == "step") {
        return step(&args[2..]);
    }
    let device = device::pick("auto").expect("a device");
    if let Some(n) = args.get(2).and_then(|n| n.parse().ok()) {
        tch::set_num_threads(n);
    }
    match args.get(1).map(String::as_str) {
        Some("unet") => unet(device),
        Some("mae") => mae(device),
        Some("scl") => scl(device),
        _ => eprintln!("bench unet|mae|scl [threads]"),
    }
}
