//! Detection on many slides: a check of all of them first, then one after the other, each on its own.

mod start;
mod task;

pub use crate::batch::{Existing, InputError, Inputs, find, read_mpp_table, state};
pub use crate::detector::Stages;
pub use crate::input::{Input, stem};
pub use start::{StartError, preflight};
pub(crate) use task::result_files;
pub use task::{SlideFailure, StageTime, Work, clear};

use crate::batch;
use crate::detector::Detector;
use crate::progress::Listener;
use detect::CancelToken;
use std::path::Path;

/// Where results are written, and what happens to those that are there.
#[derive(Clone, Copy, Debug)]
pub struct OutFolder<'a> {
    /// The folder.
    pub path: &'a Path,
    /// What happens to results that are there.
    pub existing: Existing,
}

/// A slide's state.
pub type DetectionState = state::State<Work>;
/// How one slide ended.
pub type DetectionOutcome = batch::Outcome<Work, SlideFailure>;

/// Does every slide, one after the other; a failing slide stops no other. `checked` comes from
/// [`preflight`]. Once `cancel` is set, the current slide is interrupted and can be resumed later,
/// and no other is started: [`batch::Outcome::is_stopped`].
pub fn run(
    inputs: Vec<Input>,
    checked: Vec<Result<(), SlideFailure>>,
    detector: &mut Detector,
    out: OutFolder<'_>,
    listener: &mut dyn Listener,
    cancel: &CancelToken,
) -> Vec<DetectionOutcome> {
    let detectors = std::slice::from_mut(detector);
    run_several(inputs, checked, detectors, out, listener, cancel)
}

/// As [`run`], with as many slides at once as there are detectors, which must be alike.
///
/// # Panics
/// Without a detector.
pub fn run_several(
    inputs: Vec<Input>,
    checked: Vec<Result<(), SlideFailure>>,
    detectors: &mut [Detector],
    out: OutFolder<'_>,
    listener: &mut dyn Listener,
    cancel: &CancelToken,
) -> Vec<DetectionOutcome> {
    let inputs = inputs.into_iter().zip(checked);
    let inputs = inputs.map(|(input, check)| batch::Checked { input, check }).collect();
    let worker = |detector| task::Detection { detector, cancel: cancel.clone() };
    let mut workers: Vec<_> = detectors.iter_mut().map(worker).collect();
    batch::run(inputs, &mut workers, out.path, out.existing, listener)
}
