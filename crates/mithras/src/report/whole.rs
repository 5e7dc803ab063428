//! A whole run: check, slides, tables.

use super::error::ReportError;
use super::gather::write;
use super::record::begin;
use super::run_file::RunFile;
use crate::detector::Detector;
use crate::job::{DetectionOutcome, Input, OutFolder, StartError, preflight, run_several};
use crate::progress::Listener;
use base::text::{Many, Shown};
use detect::CancelToken;
use std::path::PathBuf;

/// Why a run did not start, or left no tables.
#[derive(Debug, thiserror::Error)]
pub enum WholeError {
    /// It may not start.
    #[error("{0}")]
    Start(#[source] StartError),
    /// What it runs with cannot be written down.
    #[error("{0}")]
    Begin(#[source] ReportError),
    /// The slides are done, and their tables not.
    #[error("the slides are done, but not the files over the run in {}: {source}", Shown(out))]
    Tables {
        /// The folder.
        out: PathBuf,
        /// The reason.
        source: ReportError,
    },
}

/// Checks all slides, does them with as many at once as there are detectors, which must be alike, and
/// writes the files over the run. `command` is the command line that they name.
///
/// # Errors
/// [`WholeError`]; a slide that fails is an outcome.
///
/// # Panics
/// Without a detector.
pub fn run(
    slides: Vec<Input>,
    detectors: &mut [Detector],
    out: OutFolder<'_>,
    command: &[String],
    listener: &mut dyn Listener,
    cancel: &CancelToken,
) -> Result<(Vec<DetectionOutcome>, RunFile), WholeError> {
    let checked =
        preflight(&slides, &detectors[0], out.path, out.existing).map_err(WholeError::Start)?;
    let (all, usable) = (slides.len(), checked.iter().filter(|c| c.is_ok()).count());
    let all = Many(all, "slide");
    listener.report(&format!("{all} checked, {usable} usable; {}", detectors[0].engine));
    begin(out.path, &detectors[0], command).map_err(WholeError::Begin)?;
    let outcomes = run_several(slides, checked, detectors, out, listener, cancel);
    let run = write(out.path, &outcomes, &detectors[0], command)
        .map_err(|source| WholeError::Tables { out: out.path.to_owned(), source })?;
    Ok((outcomes, run))
}
