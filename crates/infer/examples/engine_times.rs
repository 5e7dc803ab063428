//! Seconds per window and per crop of every engine found, one line each.
//!
//!     cargo run --release -p mithras-infer --example engine_times -- [PACKAGE] [RUNS] [THREADS]

#![expect(clippy::print_stdout, reason = "prints times")]

use infer::{EngineChoice, EngineOptions, ModelPackage, Precision, Provider, timing};
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let package = ModelPackage::find(args.next().map(PathBuf::from).as_deref())?;
    let runs = args.next().map_or(Ok(15), |s| s.parse())?;
    let threads = args.next().map_or(Ok(0), |s| s.parse())?;
    println!("engine\tprovider\tprecision\tthreads\tload_s\twindow_s\tcrop_s");
    for (engine, provider, precision) in [
        (EngineChoice::Rten, Provider::Auto, Precision::F32),
        (EngineChoice::OnnxRuntime, Provider::Cpu, Precision::F32),
        (EngineChoice::OnnxRuntime, Provider::OpenVino, Precision::F32),
        (EngineChoice::OnnxRuntime, Provider::OpenVino, Precision::Bf16),
        (EngineChoice::OpenVino, Provider::Auto, Precision::F32),
        (EngineChoice::OpenVino, Provider::Auto, Precision::Bf16),
    ] {
        let options = EngineOptions { engine, provider, precision, threads, ..Default::default() };
        match timing::time(&package, &options, runs) {
            Ok(t) => println!(
                "{}\t{}\t{}\t{}\t{:.2}\t{:.4}\t{:.4}",
                t.report.engine,
                t.report.provider,
                t.report.segmenter_precision,
                t.report.threads,
                t.load_s,
                t.window_s.unwrap_or(f64::NAN),
                t.crop_s.unwrap_or(f64::NAN)
            ),
            Err(e) => println!("{engine}\t{provider}\t{precision}\t: {e}"),
        }
    }
    Ok(())
}
