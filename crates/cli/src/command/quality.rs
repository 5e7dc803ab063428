//! `mithras quality`: what is wrong with the slides of a cohort.

use super::detect::mpp;
use crate::progress::LogArgs;
use crate::show::{print_messages, result};
use anyhow::Result;
use mitosis::Mpp;
use std::path::PathBuf;
use std::process::ExitCode;

/// Check the quality of a cohort's slides, before anything is counted
///
/// Lists um/px, scanner, levels, tissue, shares out of focus, under pen, of dirt and of folds, missing tiles, and
/// whether the label is in the file. Stain vectors have their distance from the cohort's and the training data's.
/// Writes quality.csv and quality.html, a page that can be sorted, with pictures, outliers first. No network runs.
#[derive(clap::Args)]
pub struct Args {
    /// Slides, folders of slides, or patterns
    #[arg(required = true, value_name = "SLIDE|DIR")]
    slides: Vec<PathBuf>,
    /// Folder for quality.csv and quality.html; made if missing
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Micrometres per pixel of level 0, for slides that state none
    #[arg(long, value_name = "X", value_parser = mpp)]
    mpp: Option<Mpp>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    log: LogArgs,
}

pub fn run(a: Args) -> Result<ExitCode> {
    let found = mithras::batch::find_files(&a.slides)?;
    print_messages("note", &found.notes());
    let cohort = clinic::quality::cohort(&found.slides, a.mpp, &mut *a.log.listener(false));
    clinic::quality::write(&cohort, &a.out)?;
    result(a.json, &cohort)?;
    let failed = cohort.slides.iter().filter(|s| s.measured.is_none()).count();
    Ok(super::exit(failed, cohort.slides.len()))
}
