//! `mithras train calibrate`: one threshold pair over the left-out folds, and what it reaches.

use super::images::CandidateArgs;
use super::machine::Machine;
use anyhow::{Context, Result};
use mitosis::matching::Rule;
use std::path::PathBuf;
use train::data::Source;
use train::preset::Preset as _;
use training::chain::DetectorPreset;
use training::folds::{Calibrate, calibrate};

/// Choose the operating point over the left-out folds and report what it reaches
///
/// Every held-out frame goes through the models that never saw its slide. One threshold pair is chosen for all folds
/// together by the largest F1, for segmentation alone and for each second stage. Weights that were trained on slides or
/// patients of the fold they are used on are refused. Writes calibration.json, calibration.md and candidates.csv.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Weights of the segmenters; {fold} is replaced by the fold left out
    #[arg(long, value_name = "FILE")]
    segmenter: String,
    /// NAME=FILE: weights of the second stage, with {fold}; may be given several times
    #[arg(long, value_name = "NAME=FILE")]
    classifier: Vec<String>,
    /// Regions dataset
    #[arg(long, value_name = "DATASET")]
    data: PathBuf,
    /// Its folds, as `mithras corpus split` writes them
    #[arg(long, value_name = "FILE")]
    folds: PathBuf,
    /// Keep the first stage's maps in this folder, for a later call with another second stage
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
    /// Folder for the results
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Candidates, rule, crops and symmetries of this preset of `train detector`, whatever the flags for them are
    #[arg(long, value_name = "FILE")]
    preset: Option<PathBuf>,
    /// Change a key of the preset, e.g. candidates.threshold=0.3
    #[arg(long, value_name = "KEY=VALUE", requires = "preset")]
    set: Vec<String>,
    #[command(flatten)]
    candidates: CandidateArgs,
    /// Rule that the thresholds are chosen by; both are reported
    #[arg(long, default_value = "midog")]
    rule: Rule,
    /// Side of the second stage's crops, px at 0.25 um/px
    #[arg(long, default_value_t = 128)]
    crop: u32,
    /// Calibrate although weights were trained on held-out slides, or do not list theirs; the report records it
    #[arg(long)]
    allow_seen: bool,
    /// Flips and quarter turns of a crop whose probabilities are averaged
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=8))]
    symmetries: u8,
    #[command(flatten)]
    machine: Machine,
}

pub fn run(args: Args) -> Result<()> {
    let device = args.machine.set_up();
    let source = Source::open(&args.data, &args.folds)?;
    let each = |template: &str| {
        source.folds.folds.iter().map(|f| template.replace("{fold}", f).into()).collect()
    };
    let named = |c: &String| {
        let (name, path) = c.split_once('=').context("--classifier is not NAME=FILE")?;
        Ok(training::Named { name: name.to_string(), value: each(path) })
    };
    let mut what = Calibrate {
        segmenters: each(&args.segmenter),
        classifiers: args.classifier.iter().map(named).collect::<Result<_>>()?,
        cache: args.cache,
        candidates: args.candidates.resolved(),
        rule: args.rule,
        crop: args.crop,
        symmetries: args.symmetries,
        device,
        allow_seen: args.allow_seen,
    };
    if let Some(file) = args.preset {
        DetectorPreset::load(&file, &args.set)?.apply_to(&mut what)?;
    }
    outln!("{}", calibrate(&source, &what, &args.out, &mut args.machine.reporter())?.markdown);
    Ok(())
}
