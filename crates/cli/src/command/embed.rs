//! `mithras embed`: features of crops, images and slides.

use super::detect::{mpp, slides as slides_of};
use super::engine::{RunArgs, choice};
use crate::progress::LogArgs;
use crate::{hint, show};
use anyhow::{Context, Result, ensure};
use infer::Precision;
#[cfg(not(feature = "train"))]
use mithras::embed::weights::Weights;
use mithras::embed::{CropPlan, CropSize, Form, Frozen, Plan, Source, crops, slides};
use mitosis::Mpp;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

/// Write features of slides, crops or images, by an encoder package or a file of weights
///
/// Slides: one file per slide in the folder --out, tissue tiles side by side, FORMAT h5 as CLAM and
/// TRIDENT read it (`features` [n, d], `coords` [n, 2]). What is done is kept; a slide that fails stops
/// no other. Crops: one file FILE.parquet. Exit codes: 0 all done, 3 some failed, 1 all did.
#[derive(clap::Args, Debug)]
#[command(group(clap::ArgGroup::new("input").required(true).args(["slides", "list", "crops"])))]
pub struct Args {
    /// Slide files, folders of slides, or patterns
    #[arg(value_name = "SLIDE")]
    slides: Vec<PathBuf>,
    /// List of slides instead: CSV with the columns slide (path or address) and mpp (optional), as detect reads it
    #[arg(long, value_name = "CSV")]
    list: Option<PathBuf>,
    /// A corpus, a regions dataset, AMi-Br's folder, or a folder of images
    #[arg(long, value_name = "DIR", alias = "corpus")]
    crops: Option<PathBuf>,
    /// Encoder package; with --weights the name of the encoder, for files that do not contain it
    #[arg(long, value_name = "PKG")]
    encoder: Option<PathBuf>,
    /// Weights of an encoder: its makers' file, or one of a pretraining or a classifier. They become a package in
    /// memory, as by `encoders convert`, at every start
    #[arg(long, value_name = "FILE")]
    weights: Option<PathBuf>,
    /// Side of the network's input, px [default: as its makers have it, else 224]
    #[arg(long, value_name = "PX", requires = "weights")]
    image: Option<usize>,
    /// Load the weights that match and initialise the rest at random: such features mean little
    #[cfg(feature = "train")]
    #[arg(long, requires = "weights")]
    allow_partial: bool,
    /// Device on which libtorch runs weights: auto (its GPU, where it has one), cpu, cuda, cuda:N
    #[cfg(feature = "train")]
    #[arg(long, default_value = "auto", requires = "weights")]
    device: String,
    /// Side of a tile, or of a crop of regions, px at --tile-mpp [default: the encoder's input]
    #[arg(long, value_name = "PX", value_parser = clap::value_parser!(u32).range(16..=4096))]
    tile: Option<u32>,
    /// um/px of tiles [default: the encoder's own]
    #[arg(long, value_name = "X", value_parser = mpp)]
    tile_mpp: Option<Mpp>,
    /// um/px of slides that state none
    #[arg(long, value_name = "X", value_parser = mpp)]
    mpp: Option<Mpp>,
    /// Folder for slides' files, or FILE.parquet for crops
    #[arg(long, value_name = "OUT")]
    out: PathBuf,
    /// Form of slides' files: h5 or parquet
    #[arg(long, default_value = "h5")]
    format: Form,
    /// Images per run of the network
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=4096))]
    batch: u16,
    /// Slides at once; they share the engine's threads
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    workers: u16,
    #[command(flatten)]
    engine: RunArgs,
    /// Arithmetic; bf16 (OpenVINO and libtorch, processors with its instructions) is faster. With
    /// OpenVINO it is 1.4 to 1.8 times as fast, and features have a cosine to f32 of 0.997 or more
    #[arg(long, value_name = "P", default_value = "f32", value_parser = choice::<Precision>(&["f32", "bf16"]))]
    precision: Precision,
    /// Run every slide again, and replace features of other settings
    #[arg(long)]
    overwrite: bool,
    /// Print what was done as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    log: LogArgs,
}

pub fn run(a: Args) -> Result<ExitCode> {
    let many = if a.crops.is_some() { 1 } else { a.workers };
    let mut encoders = a.open(many)?;
    let (listener, side) = (&mut *a.log.listener(true), a.tile.map(|px| px as usize));
    // Several runs of the network are read at once, so that readers need not wait for it.
    let batch = 4 * usize::from(a.batch);
    let report = if let Some(dir) = &a.crops {
        let (source, size) = (Source::from_path(dir), CropSize { mpp: a.tile_mpp, side });
        let plan = CropPlan { source, size, batch, out: a.out, overwrite: a.overwrite };
        crops(&mut encoders[0], &plan, listener)?
    } else {
        ensure!(
            Form::from_path(&a.out).is_none(),
            "--out: slides go into a folder, a file for each"
        );
        let found = slides_of(a.list.as_deref(), &a.slides, a.mpp, &BTreeMap::new())?;
        let (mpp, form, out, overwrite) = (a.tile_mpp, a.format, a.out, a.overwrite);
        let plan = Plan { slides: found.slides, mpp, side, batch, form, out, overwrite };
        slides(&mut encoders, &plan, listener)?
    };
    show::result(a.json, &report)?;
    hint::print_slide_hints(report.failures.iter());
    Ok(super::exit(report.failed, report.items.len()))
}

impl Args {
    /// As many as work at once.
    fn open(&self, many: u16) -> Result<Vec<Frozen>> {
        let mut options = self.engine.options().shared(many.into());
        (options.classifier_batch, options.precision) = (self.batch.into(), self.precision);
        let Some(file) = &self.weights else {
            let package = self.encoder.as_ref().context("name the package with --encoder")?;
            return (0..many).map(|_| Ok(Frozen::open(package, &options)?)).collect();
        };
        let name = self.encoder.as_ref().and_then(|n| n.to_str());
        #[cfg(feature = "train")]
        let weights = {
            use training::{encoders::weights::open, torch::on_device};
            options = on_device(options, &self.device)?;
            open(file, name, self.image, self.allow_partial, &options)?
        };
        #[cfg(not(feature = "train"))]
        let weights = Weights::open(file, name, self.image, &options)?;
        let random = weights.random();
        if !random.is_empty() {
            let missing = format!("not in the file, initialised at random: {random}");
            show::print_messages("warning", &[missing]);
        }
        (0..many).map(|_| Ok(weights.start(&options)?)).collect()
    }
}
