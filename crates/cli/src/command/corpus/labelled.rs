//! `mithras corpus labelled`.

use base::text::Many;
use regions::Dataset;
use regions::folds::FoldManifest;
use regions::labelled::{self, LabelledOptions};
use std::path::PathBuf;

/// Writes a corpus of the figures and look-alikes of a regions dataset, and of dark nuclei in what is
/// labelled exhaustively; one of its folds is held out
#[derive(clap::Args)]
pub struct Args {
    /// Regions dataset
    dataset: PathBuf,
    /// Its folds, as `mithras corpus split` writes them
    #[arg(long, value_name = "FILE")]
    folds: PathBuf,
    /// Number of the fold held out
    #[arg(long, value_name = "K", default_value_t = 0)]
    fold: usize,
    /// Corpus folder to write
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Side of a crop, pixels at 0.25 um/px
    #[arg(long, default_value_t = 64)]
    crop: u32,
    /// Side of the box of a figure, pixels
    #[arg(long, default_value_t = 32)]
    box_side: u32,
    /// Dark nuclei of a frame that is labelled exhaustively, at most; 0: listed figures and look-alikes alone
    #[arg(long, value_name = "N", default_value_t = LabelledOptions::default().dark_per_frame)]
    dark_per_frame: usize,
    /// Dark nuclei of an image that is smaller than a frame, at most
    #[arg(long, value_name = "N", default_value_t = LabelledOptions::default().dark_per_patch)]
    dark_per_patch: usize,
}

pub fn run(a: &Args) -> anyhow::Result<()> {
    let options = LabelledOptions {
        crop: a.crop,
        box_side: a.box_side,
        dark_per_frame: a.dark_per_frame,
        dark_per_patch: a.dark_per_patch,
        builder: mithras::program(),
        ..LabelledOptions::default()
    };
    let set = Dataset::open(&a.dataset)?;
    let fold = FoldManifest::read(&a.folds)?.regions(&set.training(), a.fold)?;
    let crops::Manifest { counts: c, digest, .. } = labelled::write(&set, &fold, &a.out, &options)?;
    let (crops, slides) = (Many(c.crops, "crop"), Many(c.slides, "slide"));
    outln!("{crops} of {slides}: {:?}, {:?}", c.labels, c.splits);
    outln!("digest {digest}");
    Ok(())
}
