//! What `mithras quality` costs per slide: `cargo bench -p mithras-clinic -- SLIDE...`. Without slides a drawn
//! pyramid of 4,000 px.
//!
//! Prints the seconds of the first look and the median of five: the first one reads the file from the disc.

#![expect(clippy::print_stdout, reason = "prints times")]

use clinic::quality::measure;
use mithras::demo::{Container, Layout, Spec, write};
use mitosis::Mpp;
use std::path::PathBuf;

/// Looks at each slide.
const LOOKS: usize = 5;

fn main() {
    // Cargo adds a flag of its own.
    let mut slides: Vec<PathBuf> =
        std::env::args_os().skip(1).filter(|a| a != "--bench").map(PathBuf::from).collect();
    let drawn = tempfile::tempdir().expect("a folder");
    if slides.is_empty() {
        let slide = drawn.path().join("drawn.tiff");
        let spec = Spec::new(4000, 4000, 1, 20).expect("a size that can be drawn");
        let layout = Layout::new(spec).expect("room for the figures");
        write(&layout, &slide, Container::Auto, &mut mithras::progress::Silent).expect("a slide");
        slides.push(slide);
    }
    for slide in slides {
        let mut seconds = Vec::new();
        for _ in 0..LOOKS {
            let measured = measure(&slide, Some(Mpp::PAPER)).unwrap_or_else(|e| panic!("{e}"));
            seconds.push(measured.seconds);
        }
        let first = seconds[0];
        seconds.sort_by(f64::total_cmp);
        println!("{}: first {first:.3} s, median {:.3} s", slide.display(), seconds[LOOKS / 2]);
    }
}
