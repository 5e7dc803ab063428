//! `mithras bench`: how fast things run on this machine.

use anyhow::Result;
use std::path::PathBuf;

/// Measure speed on this machine
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand, Debug)]
enum What {
    Encoders(Encoders),
}

/// Seconds per crop of every encoder, relative to ViT-base (needs the training build)
///
/// Weights are seeded: time does not depend on their values. The median over runs of one batch,
/// forward pass alone, inputs already normalised.
///
/// Times per region and per slide are those of so many crops (--candidates), unless a detection run has
/// measured them: --region-run and --slide-run take the mean seconds of its second stage.
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
    #[arg(long, value_name = "NAME=RUN", value_parser = run_of)]
    region_run: Vec<(String, PathBuf)>,
    /// NAME=RUN: the same on whole slides
    #[arg(long, value_name = "NAME=RUN", value_parser = run_of)]
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
}

fn pair(text: &str) -> Result<[u32; 2], String> {
    let numbers = text.split(',').map(|t| t.trim().parse().ok()).collect::<Option<Vec<u32>>>();
    let pair = numbers.and_then(|n| n.try_into().ok()).filter(|n: &[u32; 2]| !n.contains(&0));
    pair.ok_or_else(|| format!("`{text}` is not two counts, as 42,2305"))
}

fn run_of(text: &str) -> Result<(String, PathBuf), String> {
    let (name, run) = text.split_once('=').ok_or_else(|| format!("`{text}` is not NAME=RUN"))?;
    Ok((name.to_owned(), run.into()))
}

/// Runs one of the benchmarks.
pub fn run(args: Args) -> Result<()> {
    let What::Encoders(a) = args.what;
    encoders(&a)
}

#[cfg(not(feature = "train"))]
fn encoders(_: &Encoders) -> Result<()> {
    Err(super::train::missing("time encoders"))
}

#[cfg(feature = "train")]
fn encoders(a: &Encoders) -> Result<()> {
    use mithras::times::second_stage;
    use train::bench::{Bench, Measured, run};

    let measured = |runs: &[(String, PathBuf)]| {
        let of = |(name, run): &(String, PathBuf)| {
            let found = second_stage(run)?;
            Ok((name.clone(), Measured { seconds: found.seconds, count: found.slides }))
        };
        runs.iter().map(of).collect::<Result<_>>()
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
    let found = run(&a.names, &bench, |name| eprintln!("{name}: done"))?;
    if let Some(out) = &a.out {
        found.write(out, scores.as_ref())?;
    }
    crate::show::result(a.json, &found)
}
