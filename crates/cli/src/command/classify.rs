//! `mithras classify`: image crops to class probabilities, with any classifier package.

use super::detect::mpp;
use super::engine::{RunArgs, choice};
use crate::progress::LogArgs;
use crate::show;
use anyhow::Result;
use features::classify::{classify, images};
use infer::{EngineOptions, ModelPackage, Precision};
use mitosis::Mpp;
use std::path::PathBuf;
use std::process::ExitCode;

/// Classify image crops: typical or atypical figures, morphologies, or any other package
///
/// Writes one row per image: file, class, p_<class>... Images may have any size: each is brought to the model's
/// resolution. Then the square in its middle that the model was trained on is classified (mirrored where the image is
/// smaller). `mithras evaluate classification` reads the file.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Images, or folders that are searched through
    #[arg(required = true, value_name = "IMAGE")]
    inputs: Vec<PathBuf>,
    /// CSV to write
    #[arg(long, value_name = "CSV")]
    out: PathBuf,
    /// Resolution of the images in um/px [default: the model's own]
    #[arg(long, value_name = "X", value_parser = mpp, allow_negative_numbers = true)]
    mpp: Option<Mpp>,
    /// Model package: a folder with a card.toml, or a bundled one, as `atypical`
    #[arg(long, value_name = "NAME|DIR")]
    model: PathBuf,
    #[command(flatten)]
    run: RunArgs,
    /// Arithmetic; auto is f32, bf16 (native, OpenVINO, libtorch) takes bf16 if the card allows it
    #[arg(long, value_name = "P", default_value = "auto", value_parser = choice::<Precision>(Precision::WORDS))]
    precision: Precision,
    /// Print what was done as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    log: LogArgs,
}

pub fn run(args: Args) -> Result<ExitCode> {
    let package = ModelPackage::find(Some(&args.model))?;
    let options = EngineOptions { precision: args.precision, ..args.run.options() };
    let files = images(&args.inputs)?;
    let terminal = &mut *args.log.listener(true);
    let done = classify(&package, &options, &files, args.mpp, &args.out, terminal)?;
    show::print_messages("error", &done.failed);
    show::result(args.json, &done)?;
    Ok(super::exit(done.failed.len(), files.len()))
}
