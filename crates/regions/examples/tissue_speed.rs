//! Seconds of CPU time for one slide's tissue mask, and the mask, as JSON: for `benches/peer/tissue.py`.
//!
//! usage: tissue_speed SLIDE REPEATS [UM_PER_PX]

#![expect(clippy::print_stdout, reason = "prints times")]

use mitosis::Mpp;
use slide::{OpenOptions, Slide, TissueMask};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let path = args.first().ok_or("tissue_speed SLIDE REPEATS [UM_PER_PX]")?;
    let repeats: usize = args.get(1).ok_or("repeats")?.parse()?;
    let mpp = args.get(2).map(|v| v.parse()).transpose()?.map(Mpp::new).transpose()?;
    let mut seconds = Vec::new();
    let mut last = None;
    for _ in 0..repeats {
        let start = cpu_seconds();
        let slide = Slide::open_with(path, &OpenOptions { mpp, ..OpenOptions::default() })?;
        last = Some(TissueMask::find(&slide)?);
        seconds.push(cpu_seconds() - start);
    }
    let mask = last.ok_or("no repeats")?;
    let packed: Vec<u8> = mask
        .mask
        .chunks(8)
        .map(|c| c.iter().enumerate().fold(0, |b, (i, &t)| b | (u8::from(t) << (7 - i))))
        .collect();
    let out = serde_json::json!({
        "seconds": seconds,
        "width": mask.width,
        "height": mask.height,
        "mpp": mask.mpp,
        "mask": packed,
    });
    println!("{out}");
    Ok(())
}

/// CPU time of this thread, which does all of it.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split_whitespace().next().and_then(|ns| ns.parse::<f64>().ok()).unwrap_or(0.0) / 1e9
}
