//! `mithras corpus`: build, import, inspect, verify, split, merge, interchange.

mod build;
mod export;
mod import;
mod inspect;
mod labelled;
mod reshape;
mod shortcuts;

use clap::Subcommand;
use std::path::PathBuf;
use std::process::{ExitCode, Termination};

/// Read annotations of other tools, build, check and reshape crop corpora.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Build(Box<build::Args>),
    Export(export::Args),
    Import(Box<import::Args>),
    Inspect(inspect::Args),
    Labelled(labelled::Args),
    Verify(Verify),
    Shortcuts(shortcuts::Args),
    Split(reshape::Split),
    Overlap(reshape::Overlap),
    Merge(reshape::Merge),
    Interchange(reshape::Interchange),
}

/// Reads every byte of a dataset: checksums, digests, counts.
#[derive(clap::Args)]
struct Verify {
    /// Dataset of crops or regions.
    corpus: PathBuf,
    /// Prints JSON.
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    Ok(match args.verb {
        Verb::Build(a) => build::run(&a)?.report(),
        Verb::Export(a) => export::run(&a)?.report(),
        Verb::Import(a) => import::run(&a)?.report(),
        Verb::Inspect(a) => inspect::run(&a)?.report(),
        Verb::Labelled(a) => labelled::run(&a)?.report(),
        Verb::Verify(a) => {
            crate::show::result(a.json, &construct::inspect::verify(&a.corpus)?)?.report()
        }
        Verb::Shortcuts(a) => shortcuts::run(&a)?.report(),
        Verb::Split(a) => reshape::split(&a)?.report(),
        Verb::Overlap(a) => reshape::overlap(&a)?.report(),
        Verb::Merge(a) => reshape::merge(&a)?.report(),
        Verb::Interchange(a) => reshape::interchange(&a)?.report(),
    })
}
