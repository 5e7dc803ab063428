//! `mithras evaluate robustness` and `mithras evaluate operating-point`.

use super::detect::{EngineArgs, mpp};
use crate::progress::{LogArgs, print_message};
use anyhow::{Context, Result};
use evaluation::evaluate::read_truth;
use evaluation::robustness::crops;
use evaluation::robustness::fold::FoldRun;
use evaluation::robustness::point::Chosen;
use evaluation::robustness::{self, Options, Robustness};
use infer::ModelPackage;
use mithras::progress::Listener;
use mitosis::Mpp;
use pixels::perturb::{Grid, Perturbation};
use regions::task::Task;
use std::path::PathBuf;

/// F1 under changes that must not matter: JPEG, blur, noise, scale, light, stain
///
/// A detector: every image as it is and under each named change, through the same reader and pipeline as
/// a slide, at the package's operating point. A classifier: labelled crops (--crops), with F1, balanced
/// accuracy, AUC and calibration error. Writes robustness.csv, .json and .svg, of a detector candidates.csv,
/// too. The changes are fixed: the same name gives the same pixels.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Folder of flat images
    #[arg(long, value_name = "DIR", required_unless_present = "crops")]
    images: Option<PathBuf>,
    /// Labelled crops for a classifier: the folder of the task's data
    #[arg(long, value_name = "DIR", requires_all = ["task", "part"], conflicts_with_all = ["images", "truth", "no_figures", "only"])]
    crops: Option<PathBuf>,
    /// What the crops are: ami-br, ami-br-benchmark, ami-morph, crops (a dataset of them), folder (one per class)
    #[arg(long, requires = "crops")]
    task: Option<Task>,
    /// Which of the crops: those that train, or those that were never trained on
    #[arg(long, requires = "crops", value_parser = ["training", "test"])]
    part: Option<String>,
    /// True figures, as for `evaluate detections`; images that it does not name are left out
    #[arg(long, value_name = "CSV", required_unless_present_any = ["no_figures", "crops"])]
    truth: Option<PathBuf>,
    /// The images hold no figure: only the false ones per mm2 are measured
    #[arg(long, conflicts_with = "truth")]
    no_figures: bool,
    /// Areas of the images that were looked at, slide,x_px,y_px,width_px,height_px; nothing outside them counts
    #[arg(long, value_name = "CSV", conflicts_with = "crops")]
    within: Option<PathBuf>,
    /// Only images whose names begin with one of these
    #[arg(long, value_name = "PREFIX", value_delimiter = ',')]
    only: Vec<String>,
    /// Every N-th image or crop
    #[arg(long, value_name = "N", default_value_t = 1)]
    every: usize,
    /// Resolution in um/px of images that state none, of crops [default: the model's own]
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
    /// Also put the result into [results.robustness] of the card of --model, a package folder
    #[arg(long, requires = "model")]
    card: bool,
    #[command(flatten)]
    engine: EngineArgs,
    #[command(flatten)]
    log: LogArgs,
}

pub fn run(args: &Args) -> Result<()> {
    let changes =
        if args.changes.is_empty() { args.grid.changes().to_vec() } else { args.changes.clone() };
    std::fs::create_dir_all(&args.out).with_context(|| args.out.display().to_string())?;
    let mut listener = args.log.listener(false);
    let listener = &mut *listener;
    let command = crate::progress::typed_words();
    let measured = if let (Some(data), Some(task)) = (&args.crops, args.task) {
        let package = ModelPackage::find(args.engine.model())?;
        let test = args.part.as_deref() == Some("test");
        let part = crops::TaskPart { folder: data, task, test };
        let sampling = crops::Sampling { mpp: args.mpp, every: args.every };
        let model = crops::Model { package: &package, engine: &args.engine.options() };
        let result = crops::of_task(model, part, sampling, &changes, listener)?;
        result.write(&args.out)?;
        crate::show::text(&result.to_string());
        result.measured(&command)
    } else {
        let result = of_images(args, changes, listener)?;
        result.write(&args.out)?;
        crate::show::text(&result.to_string());
        result.measured(&command)
    };
    match args.engine.model().filter(|_| args.card) {
        Some(folder) => Ok(measured.put(folder)?),
        None => Ok(()),
    }
}

fn of_images(
    args: &Args,
    changes: Vec<Perturbation>,
    listener: &mut dyn Listener,
) -> Result<Robustness> {
    let truth = args
        .truth
        .as_deref()
        .map(|path| read_truth(path, &evaluation::evaluate::TruthOptions::default()))
        .transpose()?;
    if let Some(unread) = truth.as_ref().and_then(|t| t.unread_columns.as_ref()) {
        print_message("note", &unread.to_string());
    }
    let wanted = |name: &str| {
        (args.only.is_empty() || args.only.iter().any(|o| name.starts_with(o)))
            && truth.as_ref().is_none_or(|t| t.contains_key(name))
    };
    let folder = args.images.as_deref().context("--images is needed")?;
    let images = robustness::images(folder, args.every, wanted)?;
    let mut detector = args.engine.detector()?;
    let within = args.within.as_deref().map(robustness::read_areas).transpose()?;
    let options = Options { mpp: args.mpp, changes, within, ..Options::default() };
    Ok(robustness::run(&mut detector, &images, truth.as_ref(), &options, listener)?)
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
    /// NAME=DIR: the fold's model on tissue without figures that no model trained on, the same images for every fold
    ///
    /// Models that were trained apart rate the same nucleus differently. The score of 20 candidates per mm2 of this
    /// tissue becomes the zero of each; `train export --tissue` does so with the final one.
    #[arg(long, value_name = "NAME=DIR")]
    tissue: Vec<String>,
    /// Count every fold as one mm2 of tissue with so many figures, whatever it holds
    ///
    /// For folds of patches cut around figures, which have hundreds per mm2, next to folds of whole frames. The
    /// scale of the scores is for tissue of that density, too.
    #[arg(long, value_name = "PER_MM2", value_parser = density)]
    density: Option<f64>,
    /// Keep the scale of the scores that an earlier choice has, of a detector with the same second stage
    #[arg(long, value_name = "JSON")]
    scale: Option<PathBuf>,
    /// File to write
    #[arg(long, value_name = "JSON")]
    out: PathBuf,
}

fn density(text: &str) -> Result<f64, String> {
    let value = text.parse().ok().filter(|v| (0.01..=1e4).contains(v));
    value.ok_or_else(|| "figures per mm2, from 0.01 to 10000".into())
}

pub fn choose(args: &PointArgs) -> Result<()> {
    let scale = args.scale.as_ref().map(|file| base::json::read::<Chosen>(file)).transpose()?;
    let folds = FoldRun::read(&args.fold, &args.foreign, &args.tissue)?;
    let chosen = robustness::choose(&folds, args.density, scale.map(|c| c.scale()))?;
    crate::show::text(&chosen.to_string());
    Ok(base::json::write(&args.out, &chosen)?)
}
