//! `mithras audit`: blinded review of labels.

mod sample;
mod score;
mod serve;

use clap::Subcommand;

/// Draw a blinded sample, review it in the browser, score the verdicts.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Sample(sample::Args),
    Serve(serve::Args),
    Score(score::Args),
}

pub fn run(args: Args) -> anyhow::Result<()> {
    match args.verb {
        Verb::Sample(a) => sample::run(&a),
        Verb::Serve(a) => serve::run(&a),
        Verb::Score(a) => score::run(&a),
    }
}
