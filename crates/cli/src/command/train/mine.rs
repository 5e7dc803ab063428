//! `mithras train mine`: false candidates of a segmenter on its own training frames.

use super::fold::OneFold;
use super::images::CandidateArgs;
use super::machine::Machine;
use anyhow::Result;
use base::text::Many;
use std::path::PathBuf;
use training::folds::{Mine, mine};

/// Mine hard negatives: where a segmenter is wrong on the images it was trained on
///
/// Writes frame,x,y,s_seg (pixels at 0.25 um/px) of every candidate further than 7.5 um from all
/// figures. Images that the fold leaves out are not touched.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Weights of the fold's segmenter (model.safetensors)
    #[arg(long, value_name = "FILE")]
    segmenter: PathBuf,
    #[command(flatten)]
    of: OneFold,
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
    let (segmenter, candidates) = (args.segmenter, args.candidates.resolved());
    let source = args.of.source()?;
    let fold = source.fold(&args.of.fold)?;
    let (n, images) = mine(&source, &fold, &Mine { segmenter, candidates, device }, &args.out)?;
    let (negatives, images) = (Many(n, "hard negative"), Many(images, "image"));
    outln!("{negatives} on {images}: {}", args.out.display());
    Ok(())
}
