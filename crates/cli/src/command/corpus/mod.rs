//! `mithras corpus`: build, import, inspect, verify, split, merge, interchange.

mod build;
mod import;
mod import_regions;
mod inspect;
mod labelled;
mod reshape;
mod shortcuts;

use clap::Subcommand;
use std::path::PathBuf;
use std::process::ExitCode;

/// Read annotations of other tools, build, check and reshape crop corpora.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Build(Box<build::Args>),
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

/// Runs a corpus verb.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.verb {
        Verb::Build(a) => build::run(&a),
        Verb::Import(a) => import::run(&a),
        Verb::Inspect(a) => inspect::run(&a),
        Verb::Labelled(a) => labelled::run(&a),
        Verb::Verify(a) => verify(&a),
        Verb::Shortcuts(a) => shortcuts::run(&a),
        Verb::Split(a) => reshape::split(&a),
        Verb::Overlap(a) => reshape::overlap(&a),
        Verb::Merge(a) => reshape::merge(&a),
        Verb::Interchange(a) => reshape::interchange(&a),
    }
}

fn verify(a: &Verify) -> anyhow::Result<ExitCode> {
    crate::show::result(a.json, &corpus::verified::verify(&a.corpus)?)?;
    Ok(ExitCode::SUCCESS)
}

/// Program and version, as manifests name it.
fn builder() -> String {
    mithras::program()
}
