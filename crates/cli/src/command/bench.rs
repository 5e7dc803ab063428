//! `mithras bench`: how fast things run on this machine (T1).

use anyhow::Result;
use std::process::ExitCode;

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

/// Seconds per crop of every encoder, relative to ViT-base (T1; needs the training build)
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
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs one of the benchmarks.
pub fn run(args: Args) -> Result<ExitCode> {
    match args.what {
        What::Encoders(a) => encoders(&a)?,
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(not(feature = "train"))]
fn encoders(_: &Encoders) -> Result<()> {
    Err(super::train::missing("time encoders"))
}

/// What `--json` holds.
#[cfg(feature = "train")]
#[derive(serde::Serialize)]
struct Benchmark<'a> {
    schema: &'static str,
    device: String,
    threads: i32,
    precision: &'a str,
    batch: i64,
    runs: u16,
    reference: &'static str,
    encoders: Vec<Line>,
}

#[cfg(feature = "train")]
#[derive(serde::Serialize)]
struct Line {
    encoder: String,
    image: i64,
    crop_s: f64,
    relative: f64,
}

#[cfg(feature = "train")]
fn encoders(a: &Encoders) -> Result<()> {
    use anyhow::{Context, bail};
    use net::device::Precision;
    use train::bench::{Bench, REFERENCE, encoder, known, machine};

    train::set_up(a.threads);
    let known = known();
    if let Some(n) = a.names.iter().find(|n| !known.contains(&n.as_str())) {
        bail!("no encoder `{n}`; known: {}", known.join(", "));
    }
    let asked = |n: &&str| a.names.is_empty() || *n == REFERENCE || a.names.iter().any(|m| m == n);
    let bench = Bench {
        image: a.image,
        batch: a.batch,
        runs: a.runs.into(),
        device: a.device.clone(),
        precision: if a.precision == "bf16" { Precision::Bf16 } else { Precision::F32 },
    };
    let mut rows = Vec::new();
    for name in known.iter().copied().filter(asked) {
        rows.push(encoder(name, &bench)?);
        eprintln!("{name}: done");
    }
    let base = rows.iter().find(|r| r.name == REFERENCE).context("the reference is timed")?.seconds;
    if a.json {
        let line = |r: &train::bench::Timed| Line {
            encoder: r.name.to_owned(),
            image: r.image,
            crop_s: r.seconds,
            relative: r.seconds / base,
        };
        let (device, threads) = machine(&a.device)?;
        crate::show::json(&Benchmark {
            schema: "mithras.bench/1",
            device,
            threads,
            precision: &a.precision,
            batch: a.batch,
            runs: a.runs,
            reference: REFERENCE,
            encoders: rows.iter().map(line).collect(),
        })?;
    } else {
        println!("{:<24}  {:>5}  {:>10}  {:>8}", "encoder", "px", "ms/crop", "relative");
        for r in rows {
            let (ms, relative) = (1e3 * r.seconds, r.seconds / base);
            println!("{:<24}  {:>5}  {ms:>10.2}  {relative:>8.2}", r.name, r.image);
        }
    }
    Ok(())
}
