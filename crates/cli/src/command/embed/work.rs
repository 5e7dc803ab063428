//! The verb in the training build.

use anyhow::{Context, Result, bail};
use mithras::embed::{Source, embed, is_hdf5};
use mitosis::Mpp;
use std::path::PathBuf;
use std::process::ExitCode;
use train::embed::Embedder;

/// Write features of crops or slide tiles, by any encoder of the table
///
/// FILE.parquet holds one row per crop or tile; FILE.h5 (tiles) holds `features` [n, d] and `coords`
/// [n, 2] as CLAM and TRIDENT read them.
#[derive(clap::Args, Debug)]
#[command(group(clap::ArgGroup::new("input").required(true).args(["corpus", "slide"])))]
pub struct Args {
    /// The encoder: `encoder.safetensors` of a pretraining, a classifier, or a file in timm's names
    #[arg(long, value_name = "FILE")]
    weights: PathBuf,
    /// timm's name of the encoder, for files that do not say it
    #[arg(long, value_name = "NAME")]
    encoder: Option<String>,
    /// Side of the network's input, for files that do not say it
    #[arg(long, default_value_t = 224)]
    image: i64,
    /// Take of a file what fits, and leave the rest as drawn: such features say little
    #[arg(long)]
    allow_partial: bool,
    /// Embed the crops of this corpus
    #[arg(long, value_name = "DIR")]
    corpus: Option<PathBuf>,
    /// Embed the tissue tiles of this slide
    #[arg(long, value_name = "FILE")]
    slide: Option<PathBuf>,
    /// Side of a slide tile, pixels at --tile-mpp
    #[arg(long, default_value_t = 224, value_parser = clap::value_parser!(u32).range(16..=4096))]
    tile: u32,
    /// um/px of slide tiles
    #[arg(long, default_value_t = 0.25)]
    tile_mpp: f64,
    /// um/px of the slide's level 0, for a file that states none
    #[arg(long)]
    mpp: Option<f64>,
    /// Table to write: .parquet, or .h5 for slide tiles
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// auto, cpu, cuda, cuda:N
    #[arg(long, default_value = "auto")]
    device: String,
    /// Images per forward pass
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=4096))]
    batch: u32,
    /// Threads of libtorch; 0 = all cores
    #[arg(long, default_value_t = 0)]
    threads: usize,
}

/// Runs the verb.
pub fn run(a: Args) -> Result<ExitCode> {
    let source = match (a.corpus, a.slide) {
        (Some(dir), _) => Source::Crops(dir),
        (None, Some(slide)) => Source::Tiles {
            slide,
            level0: a.mpp.map(Mpp::new).transpose().context("--mpp")?,
            mpp: Mpp::new(a.tile_mpp).context("--tile-mpp")?,
            side: a.tile,
        },
        (None, None) => bail!("name --corpus or --slide"),
    };
    let hdf5 = is_hdf5(&a.out, &source)?;
    train::set_up(a.threads);
    let how = (a.image, a.allow_partial);
    let net = Embedder::open(&a.weights, a.encoder.as_deref(), how, &a.device)?;
    if !net.random().is_empty() {
        eprintln!("warning: as drawn from a seed, in no file: {}", net.random().join(", "));
    }
    let table = embed(&net, &source, a.batch as usize)?;
    if hdf5 {
        table.write_hdf5(&a.out)?;
    } else {
        table.write_parquet(&a.out)?;
    }
    eprintln!("{} x {} features by {}", table.len(), net.dim(), net.architecture());
    Ok(ExitCode::SUCCESS)
}
