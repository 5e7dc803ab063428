//! `mithras train export`: final weights and a calibrated operating point to a model package.

use anyhow::{Context, Result};
use mithras::train::export::{Package, package};
use std::path::PathBuf;

/// Write a model package: ONNX files with f16 weights, and their card
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Weights of the final segmenter (model.safetensors)
    #[arg(long, value_name = "FILE")]
    segmenter: PathBuf,
    /// Weights of the final classifier
    #[arg(long, value_name = "FILE")]
    classifier: PathBuf,
    /// calibration.json of `mithras train calibrate`
    #[arg(long, value_name = "FILE")]
    calibration: PathBuf,
    /// The second stage's NAME there
    #[arg(long, value_name = "NAME")]
    stage: String,
    /// TOML file with what the card says about its training ([training])
    #[arg(long, value_name = "FILE")]
    training: Option<PathBuf>,
    /// Licence of the weights
    #[arg(long)]
    license: String,
    /// Name of the package
    #[arg(long, default_value = "mithras-tiny")]
    name: String,
    /// Package folder
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Keep f32 weights
    #[arg(long)]
    f32: bool,
}

pub fn run(args: Args) -> Result<()> {
    let training = match &args.training {
        Some(path) => std::fs::read_to_string(path)
            .with_context(|| path.display().to_string())?
            .parse::<toml::Table>()?,
        None => toml::Table::new(),
    };
    let what = Package {
        segmenter: args.segmenter,
        classifier: args.classifier,
        calibration: args.calibration,
        stage: args.stage,
        training,
        license: args.license,
        name: args.name,
        f32: args.f32,
    };
    package(&what, &args.out)?;
    println!("{}", args.out.display());
    Ok(())
}
