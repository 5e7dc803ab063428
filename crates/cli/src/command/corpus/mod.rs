//! `mithras corpus`: build, import, inspect, verify, split, merge, interchange.

mod build;
mod import;
mod inspect;
mod labelled;
mod page;
mod reshape;

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
    Import(import::Args),
    Inspect(inspect::Args),
    Labelled(labelled::Args),
    Verify(Verify),
    Split(reshape::Split),
    Overlap(reshape::Overlap),
    Merge(reshape::Merge),
    Interchange(reshape::Interchange),
}

/// Reads every byte of a corpus: checksums, digests, counts.
#[derive(clap::Args)]
struct Verify {
    /// Corpus folder.
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
        Verb::Split(a) => reshape::split(&a),
        Verb::Overlap(a) => reshape::overlap(&a),
        Verb::Merge(a) => reshape::merge(&a),
        Verb::Interchange(a) => reshape::interchange(&a),
    }
}

fn verify(a: &Verify) -> anyhow::Result<ExitCode> {
    let corpus = corpus::Corpus::open(&a.corpus)?;
    corpus.verify()?;
    let m = corpus.manifest();
    if a.json {
        println!(
            "{}",
            serde_json::json!({"verified": true, "crops": m.counts.crops, "shards": m.shards.len(), "digest": m.digest})
        );
    } else {
        println!("{} crops in {} shards hold", m.counts.crops, m.shards.len());
        println!("digest {}", m.digest);
    }
    Ok(ExitCode::SUCCESS)
}

/// Program and version, as manifests name it.
fn builder() -> String {
    concat!("mithras ", env!("CARGO_PKG_VERSION")).to_owned()
}
