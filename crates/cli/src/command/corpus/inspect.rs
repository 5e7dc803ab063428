//! `mithras corpus inspect`.

use crate::show;
use construct::inspect::{CropsReport, RegionsReport, page};
use crops::Corpus;
use crops::Encoding;
use crops::inspect::montage;
use regions::Dataset;
use std::path::PathBuf;

/// Counts of a dataset; of crops, score histograms, repeated images and a montage, too.
#[derive(clap::Args)]
pub struct Args {
    /// Dataset of crops or regions.
    corpus: PathBuf,
    /// Prints JSON.
    #[arg(long, conflicts_with = "html")]
    json: bool,
    /// Writes one HTML page with the montage inside.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Writes the montage as PNG.
    #[arg(long, value_name = "FILE")]
    montage: Option<PathBuf>,
    /// Crops per label in the montage.
    #[arg(long, default_value_t = 12)]
    samples: usize,
    /// Seed of the montage.
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

pub fn run(a: &Args) -> anyhow::Result<()> {
    if Dataset::is_dataset(&a.corpus) {
        return regions(a);
    }
    let corpus = Corpus::open(&a.corpus)?;
    let report = CropsReport::from_corpus(&corpus)?;
    let picture = |cell| -> anyhow::Result<Vec<u8>> {
        let tile = montage(&corpus, a.samples, cell, a.seed)?;
        Ok(Encoding::Png.encode(&tile)?)
    };
    if let Some(path) = &a.montage {
        base::file::write(path, &picture(128)?)?;
    }
    if let Some(path) = &a.html {
        let png = if corpus.is_empty() { Vec::new() } else { picture(96)? };
        base::file::write(path, page(&report, &png)?.as_bytes())?;
        outln!("{}", path.display());
    } else {
        show::result(a.json, &report)?;
    }
    Ok(())
}

/// A regions dataset: counts in all and per source.
fn regions(a: &Args) -> anyhow::Result<()> {
    anyhow::ensure!(
        a.html.is_none() && a.montage.is_none(),
        "--html and --montage show crops; this is a dataset of regions"
    );
    show::result(a.json, &RegionsReport::from_dataset(&Dataset::open(&a.corpus)?))
}
