//! `mithras challenge`: one job of a challenge on Grand Challenge.

use super::detect::{EngineArgs, mpp};
use super::engine::choice;
use crate::show;
use evaluation::challenge::{INPUT, Job, OUTPUT, Track};
use mitosis::Mpp;
use std::path::PathBuf;

/// Do one job of a challenge on Grand Challenge: MIDOG 2025, Track 1 or 2
///
/// Reads the image in the platform's input folder and writes the file that the platform expects. Without --model: the
/// package in /opt/ml/model, or the bundled one if that folder is empty. See docs/challenge.md.
#[derive(clap::Args)]
pub struct Args {
    /// The task
    #[arg(value_name = "TRACK", value_parser = choice::<Track>(Track::WORDS))]
    track: Track,
    /// Input folder
    #[arg(long, value_name = "DIR", default_value = INPUT)]
    input: PathBuf,
    /// Output folder
    #[arg(long, value_name = "DIR", default_value = OUTPUT)]
    output: PathBuf,
    /// um/px of an image that states none [default for crops: the model's own]
    #[arg(long, value_name = "X", value_parser = mpp)]
    mpp: Option<Mpp>,
    #[command(flatten)]
    engine: EngineArgs,
    /// Print what was done as JSON
    #[arg(long)]
    json: bool,
}

pub fn run(a: Args) -> anyhow::Result<()> {
    let (model, engine) = (a.engine.model().map(Into::into), a.engine.options());
    let job = Job { track: a.track, input: a.input, output: a.output, model, mpp: a.mpp, engine };
    show::result(a.json, &job.run()?)
}
