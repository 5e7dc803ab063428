//! Seconds for the densest 2 mm² square among N figures, and its count, as JSON: for `benches/all.sh`.
//!
//! usage: hotspot_speed N

#![expect(clippy::print_stdout, reason = "prints times")]

use mitosis::count::hotspot;
use mitosis::{Mpp, Point, Resolution};
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let n: u32 = std::env::args().nth(1).ok_or("hotspot_speed N")?.parse()?;
    // The same places as in benches/all.py, 100,000 px of a slide wide.
    let at = |i: u32, k: u32| f64::from(i.wrapping_mul(k) % 100_003);
    let figures: Vec<_> = (0..n).map(|i| Point::new(at(i, 2_654_435_761), at(i, 40_503))).collect();
    let resolution = Resolution::user(Mpp::new(0.25)?);
    let start = Instant::now();
    let found = hotspot(&figures, &resolution)?;
    let count = found.map_or(0, |h| h.count);
    println!(r#"{{"seconds": {}, "count": {count}}}"#, start.elapsed().as_secs_f64());
    Ok(())
}
