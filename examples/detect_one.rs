//! Finds the mitotic figures of one slide and prints them.
//!
//!     cargo run --release -p mithras --example detect_one -- slide.svs

#![expect(clippy::print_stdout, reason = "an example prints")]

use mithras::{Detector, SlideRecord};
use std::error::Error;
use std::path::{Path, PathBuf};

/// Detects with the bundled package, on the fastest engine found.
pub fn detect(slide: &Path) -> Result<SlideRecord, Box<dyn Error>> {
    let mut detector = Detector::bundled()?;
    Ok(detector.run_file(slide)?)
}

/// One line per accepted figure, and the counts.
pub fn print(record: &SlideRecord) {
    for figure in record.figures() {
        println!(
            "{} {} px, s_seg {}, s_cls {:?}",
            figure.x_px, figure.y_px, figure.s_seg, figure.s_cls
        );
    }
    let hotspot = record.hotspot().map_or(0, |h| h.count);
    println!("{} figures, {hotspot} in the densest 2 mm2", record.figures().count());
    if let Some(density) = record.density_per_20_mm2() {
        println!("{density:.1} per 20 mm2, {:.2} mm2 analysed", record.analysed_mm2());
    }
}

/// Takes the slide from the command line.
pub fn main() -> Result<(), Box<dyn Error>> {
    let slide = std::env::args().nth(1).map(PathBuf::from).ok_or("usage: detect_one SLIDE")?;
    print(&detect(&slide)?);
    Ok(())
}
