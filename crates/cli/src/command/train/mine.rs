//! `mithras train mine`: false candidates of a segmenter on its own training frames.

use super::images::CandidateArgs;
use super::machine::Machine;
use anyhow::Result;
use mithras::train::icpr::{Mine, mine};
use std::path::PathBuf;

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
    #[command(flatten)]
    machine: Machine,
}

pub fn run(args: Args) -> Result<()> {
    let device = args.machine.set_up();
    let what = Mine {
        segmenter: args.segmenter,
        data: args.data,
        left_out: args.fold.parse()?,
        candidates: args.candidates.resolved(),
        device,
    };
    let (n, frames) = mine(&what, &args.out)?;
    println!("{n} hard negatives on {frames} frames: {}", args.out.display());
    Ok(())
}
