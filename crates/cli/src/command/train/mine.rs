//! `mithras train mine`: false candidates of a segmenter on its own training frames.

use super::images::{CandidateArgs, detect, image_of};
use ::detect::Grid;
use anyhow::Result;
use corpus::fold::LeftOut;
use corpus::icpr::{APERIO_MPP, Icpr};
use mithras::train::frames::WINDOW;
use mitosis::Mpp;
use std::fmt::Write as _;
use std::path::PathBuf;
use train::port::TorchSegmenter;

/// Mine hard negatives: where a segmenter is wrong on the frames it was trained on
///
/// Writes frame,x,y,s_seg (pixels at 0.25 um/px) of every candidate further than 7.5 um from all
/// marks. Frames of the left-out slide are not touched.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Weights of the fold's segmenter (model.safetensors)
    #[arg(long, value_name = "FILE")]
    segmenter: PathBuf,
    /// Folder with icpr2012/
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// The slide that this segmenter left out, or none
    #[arg(long, value_name = "SLIDE")]
    fold: String,
    /// CSV to write
    #[arg(long, value_name = "CSV")]
    out: PathBuf,
    #[command(flatten)]
    candidates: CandidateArgs,
    /// auto, cpu, cuda, cuda:N
    #[arg(long, default_value = "auto")]
    device: String,
    /// Threads of libtorch; 0 = all cores
    #[arg(long, default_value_t = 0)]
    threads: usize,
}

pub fn run(args: Args) -> Result<()> {
    train::set_up(args.threads);
    let left_out: LeftOut = args.fold.parse()?;
    let icpr = Icpr::open(&args.data.join("icpr2012"), Mpp::PAPER)?;
    let fold = icpr.fold(&left_out)?;
    let mut segmenter = TorchSegmenter::open(&args.segmenter, &args.device)?;
    // No overlap: half the windows; what a seam cuts near a mark is left out anyway.
    let mut recipe = args.candidates.resolved().recipe(None)?;
    recipe.grid = Grid::new(WINDOW, WINDOW)?;
    let to_working = APERIO_MPP / Mpp::PAPER.get();
    let mut text = String::from("frame,x,y,s_seg\n");
    let mut n = 0;
    for scene in &fold.train.scenes {
        let found = detect(&image_of(&args.data, scene), &recipe, &mut segmenter, None)?;
        for d in found {
            let c = d.candidate.centroid;
            let (x, y) = ((c.x * to_working) as f32, (c.y * to_working) as f32);
            if scene.nearest_mark(x, y) > 30.0 * 30.0 {
                writeln!(text, "{},{x:.1},{y:.1},{}", scene.name, d.candidate.s_seg.get())?;
                n += 1;
            }
        }
    }
    artifact::file::write(&args.out, text.as_bytes())?;
    println!("{n} hard negatives on {} frames: {}", fold.train.scenes.len(), args.out.display());
    Ok(())
}
