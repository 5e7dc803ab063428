//! `mithras train export`: final weights and a calibrated operating point to a model package.

use super::images::CandidateArgs;
use anyhow::Result;
use evaluation::robustness::Robustness;
use std::path::PathBuf;
use training::export::{Choice, Package, package, segmentation_point};

/// Write a model package: ONNX files with f16 weights, and their card
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Weights of the final segmenter (model.safetensors)
    #[arg(long, value_name = "FILE")]
    segmenter: PathBuf,
    /// Weights of the final classifier
    #[arg(long, value_name = "FILE")]
    classifier: PathBuf,
    /// Further trainings of the classifier that began with the same weights: the package has one
    /// network, with the mean of the weights of all
    #[arg(long, value_name = "FILE", num_args = 1..)]
    average: Vec<PathBuf>,
    /// What `mithras evaluate operating-point` wrote: its scale goes into the second stage's last
    /// layer, its points into the card
    #[arg(long, value_name = "JSON", conflicts_with = "calibration")]
    points: Option<PathBuf>,
    /// Where tissue set the folds' scale (`evaluate operating-point --tissue`): the folder of the
    /// results on the same images of a package of these two networks without --points
    #[arg(long, value_name = "DIR", requires = "points")]
    tissue: Option<PathBuf>,
    /// calibration.json of `mithras train calibrate`. Without it and without points the package has
    /// a provisional operating point: to measure a fold before the choice
    #[arg(long, value_name = "FILE", requires = "stage")]
    calibration: Option<PathBuf>,
    /// The second stage's NAME there
    #[arg(long, value_name = "NAME")]
    stage: Option<String>,
    #[command(flatten)]
    candidates: CandidateArgs,
    /// Side of the second stage's crops, px at 0.25 um/px
    #[arg(long, default_value_t = 64)]
    crop: usize,
    /// Flips and quarter turns of a crop whose probabilities are averaged
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=8))]
    symmetries: u8,
    /// TOML file with what the card says about its training ([training])
    #[arg(long, value_name = "FILE")]
    training: Option<PathBuf>,
    /// Licence of the weights
    #[arg(long)]
    license: String,
    /// Name of the package
    #[arg(long, default_value = "mithras-standard")]
    name: String,
    /// Package folder
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Keep f32 weights
    #[arg(long)]
    f32: bool,
}

pub fn run(args: Args) -> Result<()> {
    let training = super::package::about(args.training.as_deref())?;
    let segmentation = args.calibration.as_deref().map(segmentation_point).transpose()?;
    let choice = match (args.calibration, args.stage) {
        (Some(file), Some(stage)) => Choice::Calibration {
            file,
            stage,
            min_separation_um: args.candidates.resolved().min_separation_um,
        },
        _ => Choice::Points {
            chosen: match &args.points {
                Some(path) => Some(Box::new(base::json::read(path)?)),
                None => None,
            },
            tissue: args.tissue.as_deref().map(Robustness::open).transpose()?.map(Box::new),
            candidates: args.candidates.resolved(),
            crop: args.crop,
            symmetries: args.symmetries,
        },
    };
    let what = Package {
        segmenter: args.segmenter,
        classifier: args.classifier,
        averaged: args.average,
        choice,
        segmentation,
        training,
        license: args.license,
        name: args.name,
        f32: args.f32,
    };
    package(&what, &args.out)?;
    outln!("{}", args.out.display());
    Ok(())
}
