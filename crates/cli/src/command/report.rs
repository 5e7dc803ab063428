//! `mithras report`: one page per case.

use crate::show::result;
use review::view::Grading;
use std::path::PathBuf;

/// Write one page per case, as PDF and HTML
///
/// A case is what the run's list names in the column `case`, else `patient`; a slide without one is a case of its own.
/// The page has the case's fields as given, every slide with um/px, regions and mm2, and the hotspot with its picture.
/// Counts with intervals, the counted figures, reviewer, signature and versions follow. Reviewed numbers are shown
/// where `mithras recount` was run and one reviewer's verdicts count on all slides of the case. Research use only.
#[derive(clap::Args)]
pub struct Args {
    /// Folder of `mithras detect`
    run: PathBuf,
    /// Folder for CASE.pdf and CASE.html; made if missing
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Folder with the slides, if they have moved, for pictures of hotspot and figures [default: as in the run]
    #[arg(long, value_name = "DIR")]
    slides: Option<PathBuf>,
    /// Mitotic score of the hotspot by a scheme: nottingham, fnclcc, gist, who-net, or a TOML file of the same form
    #[arg(long, value_name = "SCHEME")]
    mitotic_score: Option<String>,
    /// Field diameter in mm (Nottingham)
    #[arg(long, value_name = "MM", requires = "mitotic_score")]
    field_diameter: Option<f64>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(a: Args) -> anyhow::Result<std::process::ExitCode> {
    let grading = a.mitotic_score.map(|s| Grading::load(&s, a.field_diameter)).transpose()?;
    let written = clinic::report(&a.run, &a.out, a.slides.as_deref(), grading.as_ref())?;
    result(a.json, &written)?;
    let (missing, cases) = (written.missing.len(), written.cases.len());
    Ok(super::exit(missing, missing + cases))
}
