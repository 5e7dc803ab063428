//! `mithras detectors`: detectors of others as packages, and of two packages one.

use super::detect::mpp;
use super::engine;
use evaluation::boxes::import;
use evaluation::combine::{Stages, combine};
use infer::boxes::BoxesDraft;
use mithras::detector::Thresholds;
use mitosis::{Mpp, OperatingPoint, Score};
use std::path::PathBuf;

/// Make detectors: of an ONNX file that gives boxes, or of two packages
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(clap::Subcommand, Debug)]
enum Verb {
    Import(Box<Import>),
    Combine(Combine),
}

/// Make a detector of the first stage of one package and the classifier of another
///
/// Any classifier package is a second stage: one of `train package`, of a published encoder with a
/// head that was trained on it, of `encoders convert`. The thresholds are not chosen here; `evaluate
/// robustness` and `evaluate operating-point` do it on slides that were left out.
#[derive(clap::Args, Debug)]
struct Combine {
    /// Detector that gives the first stage, its candidates, and the resolutions of slides
    #[arg(long, value_name = "PKG")]
    first: PathBuf,
    /// Classifier that becomes the second stage. Several, one --second each, give the mean of their
    /// probabilities, as of the models of folds, in as much time as all of them take
    #[arg(long, value_name = "PKG", required = true)]
    second: Vec<PathBuf>,
    /// Small classifier that is asked first: only candidates to which it gives --passes-from or more are asked of the
    /// second stage [default: that of --second, if it has one]
    #[arg(long, value_name = "PKG", requires = "passes_from")]
    screen: Option<PathBuf>,
    /// Probability from which on the screen passes a candidate on
    #[arg(long, value_name = "P", requires = "screen")]
    passes_from: Option<f32>,
    /// Package folder to make
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Name of the package
    #[arg(long)]
    name: String,
    /// Thresholds of both stages [default: the first stage's own, and the classifier's or even odds]
    #[arg(long, value_name = "SEG,CLS")]
    operating_point: Option<Thresholds>,
}

/// Make a package for `detect --model`, and try it on every available engine
///
/// The file takes one image f32 [N, 3, S, S], RGB in 0 to 1. It gives boxes f32 [N, boxes, 6] (x0 y0 x1 y1 score class)
/// or [N, 4 + classes, boxes] (centre, width, height, a score per class). Side and class names are read from the file
/// if it has them. A box becomes its centre, and its score `s_seg`; of close ones the highest counts. docs/training.md
#[derive(clap::Args, Debug)]
struct Import {
    /// The network
    #[arg(long, value_name = "FILE")]
    onnx: PathBuf,
    /// um/px that it was trained at
    #[arg(long, value_name = "X", value_parser = mpp)]
    mpp: Mpp,
    /// Package folder to make
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Name of the package
    #[arg(long)]
    name: String,
    /// Licence of the weights
    #[arg(long)]
    license: String,
    /// Description of the architecture
    #[arg(long, default_value = "yolov10")]
    architecture: String,
    /// Class names in the network's order, where the file has none
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    classes: Vec<String>,
    /// The class that counts [default: the first]
    #[arg(long, value_name = "CLASS")]
    positive: Option<String>,
    /// Side of a window, px, where the file does not state it
    #[arg(long, value_name = "PX")]
    window: Option<usize>,
    /// Distance of neighbouring windows, px [default: 20 um less than the window]
    #[arg(long, value_name = "PX")]
    stride: Option<usize>,
    /// Which output, of a file with several
    #[arg(long, value_name = "NAME")]
    output: Option<String>,
    /// Of boxes within this distance the highest counts, um
    #[arg(long, value_name = "UM", default_value_t = 7.5)]
    distance: f64,
    /// Boxes below this score are not listed
    #[arg(long, value_name = "T", default_value_t = 0.05)]
    threshold: f32,
    /// Figures are accepted from this score on
    #[arg(long, value_name = "T", default_value_t = 0.25)]
    confidence: f32,
    /// Points chosen on left-out slides (`evaluate operating-point`), in place of --confidence
    #[arg(long, value_name = "FILE", conflicts_with = "confidence")]
    points: Option<PathBuf>,
}

pub fn run(args: Args) -> anyhow::Result<()> {
    let a = match args.verb {
        Verb::Import(a) => a,
        Verb::Combine(a) => {
            let point = match a.operating_point {
                Some(Thresholds::Given(p)) => Some((p.seg, p.cls)),
                Some(_) => anyhow::bail!("--operating-point takes two numbers, as 0.5,0.3"),
                None => None,
            };
            let Combine { first, second, screen, passes_from, name, .. } = a;
            let stages = Stages { first, second, screen: screen.zip(passes_from), name, point };
            outln!("{}", combine(&stages, &a.out)?.origin);
            return Ok(());
        }
    };
    let provenance = format!("confidence {} as given, not chosen on slides", a.confidence);
    let seg = Score::new(a.confidence)?;
    let draft = BoxesDraft {
        name: a.name,
        license: a.license,
        architecture: a.architecture,
        mpp: a.mpp,
        classes: a.classes,
        positive: a.positive,
        window: a.window,
        stride: a.stride,
        output: a.output,
        threshold: a.threshold,
        distance_um: a.distance,
        operating_point: OperatingPoint { seg, cls: Score::ZERO, provenance },
        operating_points: Default::default(),
        results: None,
        training: Default::default(),
    };
    let made = import(&a.onnx, a.points.as_deref(), &a.out, draft, &engine::options())?;
    outln!("{}", made.origin);
    Ok(())
}
