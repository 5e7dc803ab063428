//! `mithras demo`: draw a slide, and run the whole job on it.

use super::detect::{self, EngineArgs};
use crate::progress::LogArgs;
use anyhow::{Context, Result};
use clap::Args as ClapArgs;
use evaluation::evaluate;
use mithras::batch::{self, Existing, OutFolder};
use mithras::demo::{self, Container, Layout, Spec};
use mithras::progress::Piece;
use mitosis::matching::{PAPER_RADIUS, Rule};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Draw an H&E-like slide and run the whole job on it
///
/// Draws a seeded, pyramidal slide with tissue, stroma, nuclei, mitotic figures of every phase and mimickers; every
/// figure's place is known (`truth.csv`). Then finds the figures with the bundled weights, counts them, writes every
/// export and compares them with the truth. Nothing is downloaded.
#[derive(ClapArgs, Debug)]
pub struct Args {
    /// Folder for the slide, its truth and the results; made if missing
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Width and height in pixels at 0.25 um/px
    #[arg(long, value_name = "W,H", default_value = "4096,3072", value_parser = size)]
    size: (u32, u32),
    /// Seed of everything drawn
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Mitotic figures to draw (half as many mimickers again are added)
    #[arg(long, value_name = "N", default_value_t = 40)]
    figures: usize,
    /// Tissue to draw, mm2, at most half the slide [default: half the slide, at most 8]
    #[arg(long, value_name = "MM2")]
    tissue_mm2: Option<f64>,
    /// Write BigTIFF even where a classic TIFF would do
    #[arg(long)]
    bigtiff: bool,
    /// Draw the slide and its truth, and stop
    #[arg(long)]
    draw_only: bool,
    #[command(flatten)]
    engine: EngineArgs,
    #[command(flatten)]
    log: LogArgs,
}

fn size(text: &str) -> Result<(u32, u32), String> {
    let (w, h) = text.split_once([',', 'x']).ok_or("expected W,H such as 4096,3072")?;
    let side = |s: &str| s.trim().parse::<u32>().map_err(|e| format!("`{s}`: {e}"));
    Ok((side(w)?, side(h)?))
}

pub fn run(args: Args) -> Result<ExitCode> {
    std::fs::create_dir_all(&args.out)
        .with_context(|| format!("cannot make the folder {}", args.out.display()))?;
    let slide = args.out.join("drawn.tiff");
    if args.draw_only {
        draw(&args, &slide)?;
        return Ok(ExitCode::SUCCESS);
    }
    // First, so that a model that does not open costs no drawing.
    let detector = args.engine.detector()?;
    draw(&args, &slide)?;
    let inputs = batch::find(&[slide], None, &BTreeMap::new())?;
    let bars = &mut *args.log.listener(false);
    let out = OutFolder { path: &args.out, existing: Existing::Overwrite };
    let finished = detect::work(inputs.slides, &mut [detector], out, bars)?;
    detect::print_result(&args.out, &finished.file, false)?;
    if finished.slides.iter().any(|o| !o.is_done()) {
        return Ok(ExitCode::FAILURE);
    }
    let truth =
        evaluate::read_truth(&args.out.join("truth.csv"), &evaluate::TruthOptions::default())?;
    let result = evaluate::evaluate(&args.out, &truth, PAPER_RADIUS, &Rule::ALL)?;
    base::file::write(&args.out.join("evaluation.json"), &serde_json::to_vec_pretty(&result)?)?;
    outln!("\n{result}\nThis slide is drawn: the score above does not apply to real tissue.");
    Ok(ExitCode::SUCCESS)
}

/// Draws the slide and writes `truth.csv` next to it.
fn draw(args: &Args, slide: &Path) -> Result<()> {
    let mut spec = Spec::new(args.size.0, args.size.1, args.seed, args.figures)?;
    if let Some(mm2) = args.tissue_mm2 {
        anyhow::ensure!(mm2.is_finite() && mm2 > 0.0, "--tissue-mm2 {mm2} is not an area");
        spec.tissue_mm2 = mm2;
        spec.fits()?;
    }
    let layout = Layout::new(spec)?;
    let container = if args.bigtiff { Container::BigTiff } else { Container::Auto };
    let listener = &mut *args.log.listener(true);
    let mut piece = Piece::begin(listener, "drawing", "drawing", "tiles");
    let written = demo::write(&layout, slide, container, &mut piece);
    piece.finish();
    written?;
    demo::write_truth(&layout, "drawn", &args.out.join("truth.csv"))?;
    listener.report(&format!("drew {} ({layout})", slide.display()));
    Ok(())
}
