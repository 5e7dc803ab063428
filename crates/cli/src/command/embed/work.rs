//! The verb in the training build.

use anyhow::{Context, Result, bail};
use corpus::{Columns, Corpus};
use mitosis::{Mpp, RgbTile};
use slide::{OpenOptions, Slide, TissueMask, WindowPlan};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use train::embed::Embedder;

use super::table::{Row, Table, Tiles};

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
    let form = a.out.extension().and_then(|e| e.to_str()).unwrap_or_default();
    let hdf5 = match form {
        "parquet" => false,
        "h5" | "hdf5" => true,
        _ => bail!("{}: write to FILE.parquet or FILE.h5", a.out.display()),
    };
    if hdf5 && a.slide.is_none() {
        bail!("{}: HDF5 is for slide tiles; crops go to FILE.parquet", a.out.display());
    }
    train::set_up(a.threads);
    let net = {
        let how = (a.image, a.allow_partial);
        Embedder::open(&a.weights, a.encoder.as_deref(), how, &a.device)?
    };
    if !net.random().is_empty() {
        eprintln!("warning: as drawn from a seed, in no file: {}", net.random().join(", "));
    }
    let random = net.random().join(",");
    let mut table = Table::new(net.architecture(), net.dim());
    table.random = random;
    match (&a.corpus, &a.slide) {
        (Some(dir), _) => crops(&net, dir, a.batch as usize, &mut table)?,
        (None, Some(file)) => tiles(&net, file, &a, &mut table)?,
        (None, None) => bail!("name --corpus or --slide"),
    }
    if hdf5 {
        table.write_hdf5(&a.out)?
    } else {
        table.write_parquet(&a.out)?
    }
    eprintln!("{} x {} features by {}", table.len(), net.dim(), net.architecture());
    Ok(ExitCode::SUCCESS)
}

fn crops(net: &Embedder, dir: &Path, batch: usize, table: &mut Table) -> Result<()> {
    let corpus = Corpus::open(dir)?;
    let mut waiting: Vec<(Row, RgbTile)> = vec![];
    let mut flush = |waiting: &mut Vec<(Row, RgbTile)>| {
        let (rows, tiles): (Vec<_>, Vec<_>) = waiting.drain(..).unzip();
        table.extend(rows, &net.embed(&tiles));
    };
    for crop in corpus.crops(Columns::All)? {
        let crop = crop?;
        let tile = crop.decode()?;
        let m = crop.meta;
        let (x, y) = m.centroid.map_or((f64::NAN, f64::NAN), |p| (p.x, p.y));
        let row = Row {
            name: m.path,
            slide: m.slide,
            label: m.label.name().into(),
            subtype: m.subtype.unwrap_or_default(),
            split: m.split.name().into(),
            x,
            y,
        };
        waiting.push((row, tile));
        if waiting.len() == batch {
            flush(&mut waiting);
        }
    }
    flush(&mut waiting);
    Ok(())
}

fn tiles(net: &Embedder, file: &Path, a: &Args, table: &mut Table) -> Result<()> {
    use rayon::prelude::*;
    let level0 = a.mpp.map(Mpp::new).transpose().context("--mpp")?;
    let mpp = Mpp::new(a.tile_mpp).context("--tile-mpp")?;
    let slide = Slide::open_with(file, &OpenOptions { mpp: level0, ..OpenOptions::default() })?;
    let mask = TissueMask::find(&slide)?;
    let side = a.tile as usize;
    let plan = WindowPlan::new(&slide, mpp, side, side, Some(&mask))?;
    let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let windows: Vec<_> = plan.iter().collect();
    for part in windows.chunks(a.batch as usize) {
        let read = |w: &slide::PlannedWindow| slide.read_at(mpp, w.x, w.y, side, side);
        let pixels = part.par_iter().map(read).collect::<Result<Vec<_>, _>>()?;
        let rows = part.iter().map(|w| {
            let at = plan.level0(*w);
            Row {
                name: format!("{name}_{}_{}", at.x, at.y),
                slide: name.clone(),
                label: "unlabeled".into(),
                subtype: String::new(),
                split: "unassigned".into(),
                x: at.x as f64,
                y: at.y as f64,
            }
        });
        table.extend(rows.collect(), &net.embed(&pixels));
    }
    let (scale, _) = slide.working_scale(mpp)?;
    let level0 = (side as f64 * scale).round() as i64;
    table.tiles = Some(Tiles { side: i64::from(a.tile), level0, mpp: mpp.get() });
    Ok(())
}
