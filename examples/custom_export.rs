//! Writes the figures of a slide in a format of your own: a tab-separated table in millimetres.
//!
//!     cargo run --release -p mithras --example custom_export -- slide.svs figures.tsv
//!
//! An export is a file name, a description, and a pure function from a record to bytes. To write it with
//! every run of `mithras detect`, put it into a file of `crates/mithras/src/export/` and add a line to
//! `EXPORTS` (CONTRIBUTING.md, "An export").

use mithras::export::{Export, ExportError};
use mithras::{Detector, SlideRecord, file};
use std::error::Error;
use std::fmt::Write as _;
use std::path::PathBuf;

/// The export.
pub const FIGURES_TSV: Export =
    Export { file: "figures.tsv", about: "accepted figures as a tab-separated table, mm", bytes };

fn bytes(record: &SlideRecord) -> Result<Vec<u8>, ExportError> {
    let mut text = String::from("x_mm\ty_mm\tscore\n");
    for figure in record.figures() {
        let (x, y) = (figure.x_um / 1000.0, figure.y_um / 1000.0);
        writeln!(text, "{x:.6}\t{y:.6}\t{}", figure.score()).expect("text takes text");
    }
    Ok(text.into_bytes())
}

/// Takes the slide from the command line.
pub fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1).map(PathBuf::from);
    let (Some(slide), Some(out)) = (arguments.next(), arguments.next()) else {
        return Err("usage: custom_export SLIDE OUT.tsv".into());
    };
    let record = Detector::bundled()?.run_file(slide)?;
    file::write(&out, &(FIGURES_TSV.bytes)(&record)?)?;
    Ok(())
}
