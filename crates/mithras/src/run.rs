//! A whole run: check, slides, tables.

use crate::batch::{DetectionOutcome, OutFolder, StartError, detect, preflight, record_lists};
use crate::detector::Detector;
use crate::input::Input;
use crate::progress::Listener;
use crate::report::{ReportError, RunFile, begin, write};
use ::detect::CancelToken;
use base::text::{Many, Shown};
use std::path::PathBuf;

/// Detection on many slides into one folder.
pub struct RunPlan<'a> {
    /// The slides.
    pub slides: Vec<Input>,
    /// As many slides are done at once; they must be alike.
    pub detectors: &'a mut [Detector],
    /// Where results are written, and what happens to those that are there.
    pub out: OutFolder<'a>,
    /// The command line that the files over the run name.
    pub command: &'a [String],
}

/// What a run did.
#[derive(Debug)]
pub struct FinishedRun {
    /// How each slide ended, in the order of the plan.
    pub slides: Vec<DetectionOutcome>,
    /// The summary, as in `run.json`.
    pub file: RunFile,
}

/// Why a run did not start, or left no tables.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "fields whose names state what they are")]
pub enum RunPlanError {
    /// It may not start.
    #[error("{0}")]
    Start(#[source] StartError),
    /// What it runs with cannot be written down.
    #[error("{0}")]
    Begin(#[source] ReportError),
    /// The slides are done, and their tables not.
    #[error("the slides are done, but not the files over the run in {}: {source}", Shown(out))]
    Tables {
        out: PathBuf,
        /// Why they cannot be made.
        source: ReportError,
    },
}

/// Checks all slides, does them, and writes the files over the run. Once `cancel` is set, the current slides are
/// interrupted and can be resumed later, and no other is started.
///
/// # Errors
/// [`RunPlanError`]; a slide that fails is an outcome.
///
/// # Panics
/// Without a detector.
pub fn run(
    RunPlan { slides, detectors, out, command }: RunPlan<'_>,
    listener: &mut dyn Listener,
    cancel: &CancelToken,
) -> Result<FinishedRun, RunPlanError> {
    let checked =
        preflight(&slides, &detectors[0], out.path, out.existing).map_err(RunPlanError::Start)?;
    let (all, usable) = (Many(slides.len(), "slide"), checked.iter().filter(|c| c.is_ok()).count());
    listener.report(&format!("{all} checked, {usable} usable; {}", detectors[0].models.engine));
    begin(out.path, &detectors[0], command).map_err(RunPlanError::Begin)?;
    record_lists(out.path, &slides).map_err(|e| RunPlanError::Begin(e.into()))?;
    let slides = detect(slides, checked, detectors, out, listener, cancel);
    let file = write(out.path, &slides, &detectors[0], command)
        .map_err(|source| RunPlanError::Tables { out: out.path.to_owned(), source })?;
    Ok(FinishedRun { slides, file })
}
