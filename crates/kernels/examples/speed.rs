//! Milliseconds of processor time per image: `speed FILE SIDE [--output NAME] [--isa ISA] [--together N] [--runs N]
//! [--bf16-from VALUE]`.

#![expect(clippy::print_stdout, reason = "prints times")]

use kernels::{Isa, Network, PlanOptions};
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let all: Vec<String> = std::env::args().skip(1).collect();
    let value = |name: &str| {
        let at = all.iter().position(|a| a == name)?;
        all.get(at + 1).cloned()
    };
    let [file, side, ..] = &all[..] else {
        return Err("speed FILE SIDE [--output NAME] [--isa ISA] [--together N] [--runs N]".into());
    };
    let (file, side) = (std::fs::read(file)?, side.parse::<usize>()?);
    let output = value("--output").unwrap_or_else(|| "probability".into());
    let number = |name: &str, default: usize| value(name).map_or(Ok(default), |v| v.parse());
    let (together, runs) = (number("--together", 1)?, number("--runs", 7)?);
    let isa = value("--isa").map_or(Ok(Isa::best()), |v| v.parse())?;
    let from = value("--bf16-from");
    let options = PlanOptions {
        isa,
        together,
        bf16_from: from.as_deref(),
        ..PlanOptions::new("image", [3, side, side], &output)
    };
    let start = Instant::now();
    let network = Network::plan(file.as_slice(), &options)?;
    let planned = start.elapsed().as_secs_f64();
    let input: Vec<f32> = (0..together * network.input_len())
        .map(|i| ((i as u32).wrapping_mul(2_654_435_761) >> 16) as f32 / 65_536.0 - 0.5)
        .collect();
    let mut out = vec![0.0; together * network.output_len()];
    let mut workspaces = Vec::new();
    let mut best = f64::MAX;
    for _ in 0..runs {
        let (start, cpu) = (Instant::now(), processor());
        network.run(&mut workspaces, &input, &mut out, 1)?;
        let took = match (cpu, processor()) {
            (Some(before), Some(after)) => after - before,
            _ => start.elapsed().as_secs_f64(),
        };
        best = best.min(took / together as f64);
    }
    let gmac = network.macs() as f64 / 1e9;
    println!(
        "{isa}: planned in {:.0} ms, {:.2} ms per image, {gmac:.3} GMAC, {:.1} GFLOP/s; {:?}; {:.1} MB weights, {:.1} MB \
         values",
        planned * 1e3,
        best * 1e3,
        2.0 * gmac / best,
        network.describe(),
        network.weight_bytes() as f64 / 1e6,
        network.workspace_bytes() as f64 / 1e6,
    );
    for (name, seconds, macs) in network.profile(&input, runs) {
        println!(
            "  {name:60} {:7.2} ms {:6.1} GFLOP/s",
            seconds * 1e3 / together as f64,
            2.0 * macs as f64 * together as f64 / seconds / 1e9
        );
    }
    Ok(())
}

/// Processor seconds of this thread so far, on Linux.
fn processor() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse::<f64>().ok().map(|ns| ns / 1e9)
}
