//! `mithras train`: the training build's verbs.

mod calibrate;
mod detector;
mod export;
mod fold;
mod images;
mod learn;
mod machine;
mod mine;
mod package;
mod pretrain;
mod protocol;
mod pseudo;

use anyhow::Result;

/// Train models: segmenter, classifier, hard negatives, operating point, package
///
/// Needs the training build (libtorch). Everything that changes a number is in a preset; flags hold
/// paths, device and threads.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(clap::Subcommand, Debug)]
enum Verb {
    Detector(detector::Args),
    Segment(learn::SegmentArgs),
    Finetune(learn::FinetuneArgs),
    Probe(protocol::ProbeArgs),
    Test(protocol::TestArgs),
    Package(package::Args),
    Mine(mine::Args),
    PseudoLabel(pseudo::Args),
    Pretrain(pretrain::Args),
    #[command(alias = "evaluate-folds")]
    Calibrate(calibrate::Args),
    Export(export::Args),
}

/// Runs one of the training verbs.
pub fn run(args: Args) -> Result<()> {
    match args.verb {
        Verb::Detector(a) => detector::run(a)?,
        Verb::Segment(a) => learn::segment(a)?,
        Verb::Finetune(a) if train::protocol::read_task(&a.common.preset)?.is_some() => {
            let own = a.mined.is_none() && a.pseudo.is_none();
            anyhow::ensure!(own, "--mined and --pseudo belong to presets without a task");
            protocol::finetune(&a.common)?;
        }
        Verb::Finetune(a) => learn::finetune(a)?,
        Verb::Probe(a) => protocol::probe(a)?,
        Verb::Test(a) => protocol::test(a)?,
        Verb::Package(a) => package::run(a)?,
        Verb::Mine(a) => mine::run(a)?,
        Verb::PseudoLabel(a) => pseudo::run(&a)?,
        Verb::Pretrain(a) => pretrain::run(&a)?,
        Verb::Calibrate(a) => calibrate::run(a)?,
        Verb::Export(a) => export::run(a)?,
    }
    Ok(())
}
