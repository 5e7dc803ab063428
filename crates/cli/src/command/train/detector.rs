//! `mithras train detector`: from a regions dataset to a package.

use super::machine::Machine;
use anyhow::Result;
use infer::ModelPackage;
use regions::Dataset;
use std::path::PathBuf;
use train::preset::Preset as _;
use training::chain::{Chain, ChainOptions, DetectorPreset, ModelsOf};

/// Train a detector on a regions dataset, from folds to a package that `detect --model` takes
///
/// Folds, first stage, hard negatives, second stage, one operating point over all folds, final models, export, parity
/// check, package. To continue a run that was killed, give the same command again. docs/training.md
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Regions dataset (mithras corpus import --kind regions)
    #[arg(long, value_name = "DATASET")]
    data: PathBuf,
    /// The experiment (TOML)
    #[arg(long, value_name = "FILE")]
    preset: PathBuf,
    /// Run directory; the detector ends in RUN/package
    #[arg(long, value_name = "RUN")]
    out: PathBuf,
    /// Starting weights of the first stage, for presets whose segment.init asks for some. Or a package
    /// (a folder, or the name of a bundled one) to start both stages from
    #[arg(long, value_name = "FILE|PACKAGE")]
    init: Option<PathBuf>,
    /// Starting weights of the second stage
    #[arg(long, value_name = "FILE")]
    finetune_init: Option<PathBuf>,
    /// Folds, as `mithras corpus split` writes them, in place of those that the preset asks for
    #[arg(long, value_name = "FILE")]
    folds: Option<PathBuf>,
    /// Take the first stages and hard negatives of this finished run of `train detector` on the same folds,
    /// and train only the second stages
    #[arg(long, value_name = "RUN", conflicts_with = "init")]
    first_stage: Option<PathBuf>,
    /// Load the weights that match and initialise the rest at random; the names of the rest are in
    /// run.json and in the package's card
    #[arg(long)]
    allow_partial: bool,
    /// Change a key of the preset, e.g. segment.train.steps=100
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Train the models of these folds alone (numbers from 0, or `final`), e.g. on several machines that
    /// share RUN. Without it, what is missing is trained, calibrated and packaged
    #[arg(long, value_name = "FOLD", value_delimiter = ',')]
    only: Option<Vec<ModelsOf>>,
    /// Print the steps with sizes and an estimate of time, and stop
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    machine: Machine,
}

pub fn run(args: Args) -> Result<()> {
    let device = args.machine.set_up();
    let preset = DetectorPreset::load(&args.preset, &args.set)?;
    let set = Dataset::open(&args.data)?;
    let (segment_init, package) = match args.init {
        Some(file) if file.is_file() => (Some(file), None),
        Some(package) => (None, Some(ModelPackage::find(Some(&package))?)),
        None => (None, None),
    };
    let options = ChainOptions {
        out: args.out,
        segment_init,
        package,
        finetune_init: args.finetune_init,
        first_stage: args.first_stage,
        allow_partial: args.allow_partial,
        folds: args.folds,
        device,
        only: args.only.map(|folds| folds.into_iter().map(|f| f.0).collect()),
    };
    let chain = Chain::new(&preset, set, &options)?;
    if args.dry_run {
        crate::show::text(&(chain.plan()?).to_string());
        return Ok(());
    }
    let package = chain.run(&mut args.machine.reporter())?;
    outln!("{}", package.display());
    Ok(())
}
