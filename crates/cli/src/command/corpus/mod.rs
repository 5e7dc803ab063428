//! `mithras corpus`: build, import, inspect, verify, split, merge, interchange.

mod build;
mod import;
mod import_regions;
mod inspect;
mod labelled;
mod reshape;
mod shortcuts;

use clap::Subcommand;
use corpus::regions::Dataset;
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

#[derive(serde::Serialize)]
struct VerifiedRegions<'a> {
    verified: bool,
    images: usize,
    digest: &'a str,
}

#[derive(serde::Serialize)]
struct VerifiedCrops<'a> {
    verified: bool,
    crops: u64,
    shards: usize,
    digest: &'a str,
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
    if Dataset::is_at(&a.corpus) {
        let set = Dataset::open(&a.corpus)?;
        set.verify()?;
        let images = set.images().len();
        if a.json {
            let report = VerifiedRegions { verified: true, images, digest: set.digest() };
            println!("{}", serde_json::to_string(&report)?);
        } else {
            println!("{images} images hold\ndigest {}", set.digest());
        }
        return Ok(ExitCode::SUCCESS);
    }
    let corpus = corpus::Corpus::open(&a.corpus)?;
    corpus.verify()?;
    let m = corpus.manifest();
    if a.json {
        let (crops, shards) = (m.counts.crops, m.shards.len());
        let report = VerifiedCrops { verified: true, crops, shards, digest: &m.digest };
        println!("{}", serde_json::to_string(&report)?);
    } else {
        println!("{} crops in {} shards hold", m.counts.crops, m.shards.len());
        println!("digest {}", m.digest);
    }
    Ok(ExitCode::SUCCESS)
}

/// Program and version, as manifests name it.
fn builder() -> String {
    mithras::program()
}
