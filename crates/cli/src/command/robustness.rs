//! `mithras evaluate robustness` and `mithras evaluate operating-point`.

use super::detect::{EngineArgs, mpp};
use anyhow::{Context, Result};
use mithras::evaluate::read_truth;
use mithras::robustness::point::{self, FoldRun};
use mithras::robustness::{self, Options};
use mitosis::Mpp;
use pixels::perturb::{Grid, Perturbation};
use std::path::PathBuf;

/// Detection F1 under changes that must not matter: JPEG, blur, noise, scale, light, stain
///
/// Every image is measured as it is and under each named change, through the same reader and
/// pipeline as a slide, at the package's operating point. Writes robustness.csv, .json, .svg and
/// candidates.csv. The changes are fixed: the same name gives the same pixels.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Folder of flat images
    #[arg(long, value_name = "DIR")]
    images: PathBuf,
    /// True figures, as for `evaluate detections`; images that it does not name are left out
    #[arg(long, value_name = "CSV", required_unless_present = "no_figures")]
    truth: Option<PathBuf>,
    /// The images hold no figure: only the false ones per mm2 are measured
    #[arg(long, conflicts_with = "truth")]
    no_figures: bool,
    /// Only images whose names begin with one of these
    #[arg(long, value_name = "PREFIX", value_delimiter = ',')]
    only: Vec<String>,
    /// Every N-th image
    #[arg(long, value_name = "N", default_value_t = 1)]
    every: usize,
    /// Resolution in um/px of images that state none
    #[arg(long, value_name = "X", value_parser = mpp)]
    mpp: Option<Mpp>,
    /// short (9 changes) or full (25)
    #[arg(long, value_name = "GRID", default_value = "short")]
    grid: Grid,
    /// These changes instead of a grid, by name; clean alone for none
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    changes: Vec<Perturbation>,
    /// Folder for the results
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    #[command(flatten)]
    engine: EngineArgs,
}

pub fn run(args: &Args) -> Result<()> {
    let truth = args
        .truth
        .as_deref()
        .map(|path| read_truth(path, &mithras::evaluate::TruthOptions::default()))
        .transpose()?;
    let wanted = |name: &str| {
        (args.only.is_empty() || args.only.iter().any(|o| name.starts_with(o)))
            && truth.as_ref().is_none_or(|t| t.contains_key(name))
    };
    let images = robustness::images(&args.images, args.every, wanted)?;
    let mut detector = args.engine.detector()?;
    let changes =
        if args.changes.is_empty() { args.grid.changes().to_vec() } else { args.changes.clone() };
    let options = Options { mpp: args.mpp, changes, ..Options::default() };
    std::fs::create_dir_all(&args.out).with_context(|| args.out.display().to_string())?;
    let say = &mut |line: &str| eprintln!("{line}");
    let result = robustness::run(&mut detector, &images, truth.as_ref(), &options, say)?;
    result.write(&args.out)?;
    print!("{result}");
    Ok(())
}

/// Choose operating points over left-out folds and perturbations together, on calibrated scores
#[derive(clap::Args, Debug)]
pub struct PointArgs {
    /// NAME=DIR: a fold and the folder of its robustness.json
    #[arg(long, value_name = "NAME=DIR", required = true)]
    fold: Vec<String>,
    /// NAME=DIR: the same fold on tissue without figures that it never saw
    #[arg(long, value_name = "NAME=DIR")]
    foreign: Vec<String>,
    /// Count every fold as one mm2 of tissue with so many figures, whatever it holds
    ///
    /// For folds cut around figures, which hold hundreds per mm2, beside whole frames. The scale of
    /// the scores is for tissue of that density, too.
    #[arg(long, value_name = "PER_MM2", value_parser = density)]
    density: Option<f64>,
    /// File to write
    #[arg(long, value_name = "JSON")]
    out: PathBuf,
}

fn density(text: &str) -> Result<f64, String> {
    let value = text.parse().ok().filter(|v| (0.01..=1e4).contains(v));
    value.ok_or_else(|| "figures per mm2, from 0.01 to 10000".into())
}

pub fn choose(args: &PointArgs) -> Result<()> {
    let chosen = point::choose(&FoldRun::read(&args.fold, &args.foreign)?, args.density)?;
    print!("{chosen}");
    Ok(artifact::json::write(&args.out, &chosen)?)
}
