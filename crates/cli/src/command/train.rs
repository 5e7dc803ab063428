//! `mithras train`: the training build's verbs. Without the cargo feature `train`
//! the verb says how to get that build.

use anyhow::Result;
use std::process::ExitCode;

#[cfg(feature = "train")]
mod calibrate;
#[cfg(feature = "train")]
mod detector;
#[cfg(feature = "train")]
mod export;
#[cfg(feature = "train")]
mod hint;
#[cfg(feature = "train")]
mod images;
#[cfg(feature = "train")]
mod learn;
#[cfg(feature = "train")]
mod mine;
#[cfg(feature = "train")]
mod package;
#[cfg(feature = "train")]
mod pretrain;
#[cfg(feature = "train")]
mod protocol;

#[cfg(feature = "train")]
pub use hint::hint;

/// Train models: segmenter, classifier, hard negatives, operating point, package
///
/// Needs the training build (libtorch). Everything that changes a number is in a preset; flags hold
/// paths, device and threads.
#[cfg(feature = "train")]
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[cfg(feature = "train")]
#[derive(clap::Subcommand, Debug)]
enum Verb {
    Detector(detector::Args),
    Segment(learn::SegmentArgs),
    Finetune(learn::FinetuneArgs),
    Probe(protocol::ProbeArgs),
    Test(protocol::TestArgs),
    Package(package::Args),
    Mine(mine::Args),
    Pretrain(pretrain::Args),
    #[command(alias = "evaluate-folds")]
    Calibrate(calibrate::Args),
    Export(export::Args),
}

/// Runs one of the training verbs.
#[cfg(feature = "train")]
pub fn run(args: Args) -> Result<ExitCode> {
    match args.verb {
        Verb::Detector(a) => detector::run(a)?,
        Verb::Segment(a) => learn::segment(a)?,
        Verb::Finetune(a) => learn::finetune(a)?,
        Verb::Probe(a) => protocol::probe(a)?,
        Verb::Test(a) => protocol::test(a)?,
        Verb::Package(a) => package::run(a)?,
        Verb::Mine(a) => mine::run(a)?,
        Verb::Pretrain(a) => pretrain::run(&a)?,
        Verb::Calibrate(a) => calibrate::run(a)?,
        Verb::Export(a) => export::run(a)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Train models (this build has no libtorch; the verb says how to get the training build)
#[cfg(not(feature = "train"))]
#[derive(clap::Args, Debug)]
pub struct Args {
    /// What would be trained
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    _rest: Vec<String>,
}

/// Says how to get the training build.
#[cfg(not(feature = "train"))]
pub fn run(_: Args) -> Result<ExitCode> {
    Err(missing("train"))
}

/// Why a verb of the training build cannot `act` here, and how to get that build.
#[cfg(not(feature = "train"))]
pub fn missing(act: &str) -> anyhow::Error {
    anyhow::anyhow!(
        "this build has no libtorch, so it cannot {act}. The training build:\n  \
         pip install torch==2.11.0\n  \
         LIBTORCH_USE_PYTORCH=1 cargo install --path crates/cli --features train\n\
         It serves CPU and GPU and does everything that this build does."
    )
}
