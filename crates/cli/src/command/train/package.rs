//! `mithras train package`: a fold's classifier as a model package.

use anyhow::{Context, Result};
use net::onnx::WeightKind;
use std::path::{Path, PathBuf};
use train::protocol::Part;
use training::protocol::{PartPackage, package};

/// Write a classifier package: ONNX with f16 weights, and its card
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Run of `mithras train finetune` or `probe` with a task
    #[arg(long, value_name = "RUN")]
    run: PathBuf,
    /// Whose weights: those of a fold, or of the model with `none` left out
    #[arg(long, value_name = "K", default_value = "0")]
    fold: Part,
    /// Package the coarser task: of ami-morph, typical or atypical, as sums over the morphologies
    #[arg(long)]
    coarse: bool,
    /// The class that counts as positive [default: the run's, of more than two the first]
    #[arg(long, value_name = "CLASS")]
    positive: Option<String>,
    /// TOML file with the card's sections about training and results ([training], [results])
    #[arg(long, value_name = "FILE")]
    about: Option<PathBuf>,
    /// Licence of the weights
    #[arg(long)]
    license: String,
    /// Name of the package
    #[arg(long)]
    name: String,
    /// Package folder
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Keep f32 weights
    #[arg(long)]
    f32: bool,
    /// Round f16 weights to four bits of mantissa: an archive takes them in two thirds of the bytes
    #[arg(long, conflicts_with = "f32")]
    rounded: bool,
}

/// Reads further sections of a card from a TOML file.
pub(super) fn about(file: Option<&Path>) -> Result<toml::Table> {
    let Some(path) = file else { return Ok(toml::Table::new()) };
    let text = base::file::read_string(path).with_context(|| path.display().to_string())?;
    Ok(text.parse()?)
}

pub fn run(args: Args) -> Result<()> {
    let weights = if args.rounded { WeightKind::Rounded } else { WeightKind::halved(!args.f32) };
    let what = PartPackage {
        run: args.run,
        part: args.fold,
        coarse: args.coarse,
        positive: args.positive,
        about: about(args.about.as_deref())?,
        license: args.license,
        name: args.name,
        weights,
    };
    package(&what, &args.out)?;
    outln!("{}", args.out.display());
    Ok(())
}
