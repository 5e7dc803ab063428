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
#[derive(clap::Args, Debug)]
struct Encoders {
    /// Names of encoders, e.g. vit_base_patch16_224 [default: all]
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Side of the input, px; transformers with patches of 14 take the nearest multiple below
    #[arg(long, default_value_t = 224, value_parser = clap::value_parser!(i64).range(32..=1024))]
    image: i64,
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
    use train::bench::{Bench, run};

    train::set_up(a.threads);
    let bench = Bench {
        image: a.image,
        batch: a.batch,
        runs: a.runs.into(),
        device: a.device.clone(),
        candidates: a.candidates,
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
