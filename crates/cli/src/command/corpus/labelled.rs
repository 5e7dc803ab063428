//! `mithras corpus labelled`.

use corpus::labelled::{self, LabelledOptions};
use std::path::PathBuf;

/// Writes a corpus of the labelled figures at hand (AMi-Br's MIDOG21 part, ICPR 2012) and of dark
/// nuclei away from them; a third of the MIDOG21 slides and one ICPR slide are held out.
#[derive(clap::Args)]
pub struct Args {
    /// Folder with ami_br/ and icpr2012/.
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Corpus folder to write.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Side of a crop, pixels at 0.25 um/px.
    #[arg(long, default_value_t = 64)]
    crop: u32,
    /// Side of the box of a figure, pixels.
    #[arg(long, default_value_t = 32)]
    box_side: u32,
    /// Fold of MIDOG21 slides held out: 0, 1 or 2.
    #[arg(long, default_value_t = 0)]
    fold: usize,
    /// ICPR slide held out.
    #[arg(long, default_value = "A02")]
    icpr_slide: String,
}

pub fn run(a: &Args) -> anyhow::Result<()> {
    let options = LabelledOptions {
        crop: a.crop,
        box_side: a.box_side,
        fold: a.fold,
        icpr_slide: a.icpr_slide.clone(),
        builder: mithras::program(),
        ..LabelledOptions::default()
    };
    let corpus::Manifest { counts: c, digest, .. } = labelled::write(&a.data, &a.out, &options)?;
    println!("{} crops of {} slides: {:?}, {:?}", c.crops, c.slides, c.labels, c.splits);
    println!("digest {digest}");
    Ok(())
}
