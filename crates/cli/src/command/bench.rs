//! `mithras bench`: how fast things run on this machine.

use crate::progress::LogArgs;
use anyhow::Result;
use infer::budget::{Budget, Workload};
use infer::{EngineChoice, EngineOptions, ModelPackage, Precision, Provider};
use std::path::PathBuf;

/// Measure speed on this machine
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand, Debug)]
enum What {
    Detect(Detect),
    Encoders(Encoders),
}

/// Operations, seconds and share of the machine's peak of each stage of detection, per mm2 of tissue
///
/// Each engine that runs here is timed on one thread, from 8-bit pixels to probabilities. The peak is that of one core
/// on data in its cache, measured in the same run: run it on an idle machine. Reading the slide is not part of it.
#[derive(clap::Args, Debug)]
struct Detect {
    /// Model package: a folder, or the name of a bundled one
    #[arg(long)]
    model: Option<PathBuf>,
    /// Only this engine [default: all that run on the processor]
    #[arg(long, value_parser = super::engine::choice::<EngineChoice>(&["native", "openvino", "onnxruntime", "rten"]))]
    engine: Option<EngineChoice>,
    /// Runs of each network, of which the median counts
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    runs: u16,
    /// Candidates per mm2 of tissue that the second stage looks at
    #[arg(long, value_name = "N", default_value_t = Workload::COUNTED.candidates_per_mm2, value_parser = candidates)]
    candidates: f64,
    /// Share of candidates that a screen passes on, or that are asked again, flipped, where the package asks only those
    #[arg(long, value_name = "SHARE", default_value_t = Workload::COUNTED.open_share, value_parser = share)]
    open_share: f64,
    /// Print JSON (`mithras.budget/1`)
    #[arg(long)]
    json: bool,
}

fn candidates(text: &str) -> Result<f64, String> {
    let n = text.parse().ok().filter(|n: &f64| (0.0..=1e6).contains(n));
    n.ok_or_else(|| format!("`{text}` is not a number from 0 to 1000000"))
}

fn share(text: &str) -> Result<f64, String> {
    let n = text.parse().ok().filter(|n: &f64| (0.0..=1.0).contains(n));
    n.ok_or_else(|| format!("`{text}` is not a share from 0 to 1"))
}

/// Seconds per crop of every encoder, relative to ViT-base (needs the training build)
///
/// Weights are seeded: time does not depend on their values. The median over runs of one batch,
/// forward pass alone, inputs already normalised.
///
/// Times per region and per slide are those of so many crops (--candidates). --region-run and --slide-run
/// take the mean seconds of a detection run's second stage instead.
#[derive(clap::Args, Debug)]
struct Encoders {
    /// Names of encoders, e.g. vit_base_patch16_224 [default: all]
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Side of the input, px; transformers take the nearest multiple of their patch below
    /// [default: a published encoder's own, 224 for the others]
    #[arg(long, value_parser = clap::value_parser!(i64).range(32..=1024))]
    image: Option<i64>,
    /// Crops per run
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(i64).range(1..=4096))]
    batch: i64,
    /// Runs, of which the median counts
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    runs: u16,
    /// auto, cpu, cuda, cuda:N
    #[arg(long, default_value = "auto")]
    device: String,
    /// f32 or bf16
    #[arg(long, default_value = "f32", value_parser = ["f32", "bf16"])]
    precision: String,
    /// Threads of libtorch; 0 = all cores
    #[arg(long, default_value_t = 0)]
    threads: usize,
    /// Candidates of a region and of a slide, which the second stage looks at
    #[arg(long, value_name = "N,N", default_value = "42,2305", value_parser = pair)]
    candidates: [u32; 2],
    /// NAME=RUN: detection run on regions whose second stage is the encoder NAME. Repeat for several
    #[arg(long, value_name = "NAME=RUN", value_parser = parse_run)]
    region_run: Vec<(String, PathBuf)>,
    /// NAME=RUN: the same on whole slides
    #[arg(long, value_name = "NAME=RUN", value_parser = parse_run)]
    slide_run: Vec<(String, PathBuf)>,
    /// Folder for encoders.csv, encoders.json and, with --scores, encoders.svg
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Table with the columns encoder, crop, region, slide: what each reaches, for the figure
    #[arg(long, value_name = "FILE", requires = "out")]
    scores: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    log: LogArgs,
}

fn pair(text: &str) -> Result<[u32; 2], String> {
    let numbers = text.split(',').map(|t| t.trim().parse().ok()).collect::<Option<Vec<u32>>>();
    let pair = numbers.and_then(|n| n.try_into().ok()).filter(|n: &[u32; 2]| !n.contains(&0));
    pair.ok_or_else(|| format!("`{text}` is not two counts, as 42,2305"))
}

fn parse_run(text: &str) -> Result<(String, PathBuf), String> {
    let (name, run) = text.split_once('=').ok_or_else(|| format!("`{text}` is not NAME=RUN"))?;
    Ok((name.to_owned(), run.into()))
}

/// Runs one of the benchmarks.
pub fn run(args: Args) -> Result<()> {
    match args.what {
        What::Detect(a) => detect(&a),
        What::Encoders(a) => encoders(&a),
    }
}

fn detect(a: &Detect) -> Result<()> {
    let package = ModelPackage::find(a.model.as_deref())?;
    let all = [
        (EngineChoice::Native, Provider::Cpu, Precision::F32),
        (EngineChoice::Native, Provider::Cpu, Precision::Bf16),
        (EngineChoice::OpenVino, Provider::OpenVino, Precision::F32),
        (EngineChoice::OpenVino, Provider::OpenVino, Precision::Bf16),
        (EngineChoice::OnnxRuntime, Provider::Cpu, Precision::F32),
        (EngineChoice::Rten, Provider::Cpu, Precision::F32),
    ];
    let asked = all.into_iter().filter(|(e, ..)| a.engine.is_none_or(|only| only == *e));
    let engines: Vec<EngineOptions> = asked
        .map(|(engine, provider, precision)| EngineOptions {
            engine,
            provider,
            precision,
            ..super::engine::options()
        })
        .collect();
    let load = Workload { candidates_per_mm2: a.candidates, open_share: a.open_share };
    crate::show::result(a.json, &Budget::measure(&package, &engines, a.runs.into(), load))
}

#[cfg(not(feature = "train"))]
fn encoders(_: &Encoders) -> Result<()> {
    Err(super::train::missing("time encoders"))
}

#[cfg(feature = "train")]
fn encoders(a: &Encoders) -> Result<()> {
    use evaluation::times::second_stage;
    use train::bench::{Bench, Measured, run};

    let measured = |runs: &[(String, PathBuf)]| {
        let measured = |(name, run): &(String, PathBuf)| {
            let found = second_stage(run)?;
            Ok((name.clone(), Measured { seconds: found.seconds, count: found.slides }))
        };
        runs.iter().map(measured).collect::<Result<_>>()
    };
    let measured = [measured(&a.region_run)?, measured(&a.slide_run)?];

    train::set_up(a.threads);
    let bench = Bench {
        image: a.image,
        batch: a.batch,
        runs: a.runs.into(),
        device: a.device.clone(),
        candidates: a.candidates,
        measured,
        precision: match a.precision.as_str() {
            "bf16" => net::device::Precision::Bf16,
            _ => net::device::Precision::F32,
        },
    };
    let scores = a.scores.as_deref().map(train::bench::scores).transpose()?;
    // Before the minutes that the timing takes.
    if let Some(out) = &a.out {
        std::fs::create_dir_all(out).map_err(|e| anyhow::anyhow!("{}: {e}", out.display()))?;
    }
    let found = run(&a.names, &bench, &mut *a.log.listener(false))?;
    if let Some(out) = &a.out {
        found.write(out, scores.as_ref())?;
    }
    if let Some(join) = scores.and_then(|scores| found.unmatched(&scores)) {
        crate::progress::print_message("note", &join.to_string());
    }
    crate::show::result(a.json, &found)
}
