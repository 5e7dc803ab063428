//! Crops per second of the pretraining loader (decode, two views of 224 px with the paper's
//! augmentations, token labels). The peer is `benches/peer/view_loader.py`.
//!
//! usage: view_speed CORPUS [WORKERS] [STEPS]

#![expect(clippy::print_stdout, reason = "prints times")]

use crops::pairs::{CropSet, PairLoader};
use pixels::view::Views;
use std::path::Path;
use std::time::Instant;

/// Seconds of CPU of this process.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after = stat.rsplit(')').next().unwrap_or_default();
    let field = |i: usize| after.split_whitespace().nth(i).and_then(|v| v.parse::<f64>().ok());
    (field(11).unwrap_or(0.0) + field(12).unwrap_or(0.0)) / 100.0
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let dir = args.first().ok_or("view_speed CORPUS [WORKERS] [STEPS]")?;
    let number = |i: usize, or: usize| args.get(i).map_or(Ok(or), |v| v.parse());
    let (workers, steps, batch) = (number(1, 1)?, number(2, 20)?, 64);
    let text = include_str!("../tests/golden/views_preset.json");
    let mut views: Views = serde_json::from_str(text)?;
    (views.first.blur_kernel, views.second.blur_kernel) = (23, 23);
    let set = CropSet::training(Path::new(dir), true)?;
    let loader = PairLoader::new(set, views, (224, 16), 1, batch, workers)?;
    loader.draw(0, 0..batch)?;
    let (wall, cpu) = (Instant::now(), cpu_seconds());
    for step in 0..steps {
        std::hint::black_box(loader.draw(step, 0..batch)?);
    }
    let n = (steps * batch) as f64;
    let (wall, cpu) = (wall.elapsed().as_secs_f64(), cpu_seconds() - cpu);
    println!(
        "{workers} workers: {:.1} crops/s ({:.1} views/s); {:.1} crops per second of CPU",
        n / wall,
        2.0 * n / wall,
        n / cpu
    );
    Ok(())
}
