//! `mithras corpus shortcuts`.

use corpus::Corpus;
use corpus::regions::Dataset;
use corpus::shortcuts::{check, of_corpus, of_regions};
use std::path::PathBuf;
use std::process::ExitCode;

/// Whether anything but morphology tells figures from the others
///
/// Measures what cannot see a figure: fine detail per colour channel, JPEG blockiness and the phase
/// of its grid, chroma bandwidth, noise, size in bytes; and as context the colours of the border
/// with the centre masked, and the place. Each alone by ROC-AUC, all that sees neither nucleus nor
/// surroundings together by a linear model cross-validated over slides, per source. Above 0.65 by
/// more than its standard error (0.80 for what sees the nucleus or its surroundings) it warns and
/// names the feature: a network would learn it.
#[derive(clap::Args)]
#[command(after_long_help = "\
Examples:
  mithras corpus shortcuts crops/
  mithras corpus shortcuts regions/ --strict")]
pub struct Args {
    /// Dataset of crops or regions
    dataset: PathBuf,
    /// End with exit code 1 where anything warns
    #[arg(long)]
    strict: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let items = if Dataset::is_at(&args.dataset) {
        of_regions(&Dataset::open(&args.dataset)?)?
    } else {
        of_corpus(&Corpus::open(&args.dataset)?)?
    };
    let report = check(&items);
    let warnings = report.warnings();
    crate::show::result(args.json, &report)?;
    for warning in &warnings {
        eprintln!("warning: {warning}");
    }
    Ok(if args.strict && !warnings.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
