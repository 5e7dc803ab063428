//! One run at a time, and how far it is.

use crate::error::{PageError, full_message};
use detect::CancelToken;
use infer::{EngineOptions, ModelPackage};
use mithras::batch::{Existing, Input, OutFolder, StartError};
use mithras::progress::{Event, Listener, SlideStatus};
use mithras::run::{RunPlan, RunPlanError, run};
use mithras::{Builder, Thresholds};
use serde::Serialize;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Notes that are kept; a page is not a log.
const NOTES: usize = 200;

/// Phase of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// None was started.
    #[default]
    Idle,
    /// The networks are being opened and the slides checked.
    Opening,
    /// Slides are being searched.
    Running,
    /// It ends as soon as the current windows are done.
    Cancelling,
    /// It was cancelled; it can be resumed.
    Cancelled,
    /// It ended; slides may have failed.
    Done,
    /// It did not start, or its tables could not be written.
    Failed,
}

impl Phase {
    /// Whether something is at work.
    #[must_use]
    pub fn is_busy(self) -> bool {
        matches!(self, Self::Opening | Self::Running | Self::Cancelling)
    }
}

/// How far one slide is.
#[derive(Clone, Debug, Serialize)]
pub struct SlideState {
    /// Its name, that of its folder.
    pub name: String,
    /// `waiting`, `running`, or how it ended: `finished`, `no-tissue`, `kept`, `failed`, `interrupted`, `elsewhere`.
    pub status: &'static str,
    /// Why it failed.
    pub reason: Option<String>,
    /// Units that are done.
    pub done: u64,
    /// All units.
    pub total: u64,
    /// What is counted.
    pub unit: String,
    /// Units per second.
    pub rate: f64,
    /// Seconds that the rest will take.
    pub eta_seconds: Option<f64>,
    /// Seconds that it took.
    pub seconds: f64,
}

/// How far a run is.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Progress {
    /// Its phase.
    pub phase: Phase,
    /// Number of the run since the server began.
    pub number: u64,
    /// Its folder.
    #[serde(serialize_with = "base::json::lossy")]
    pub out: Option<PathBuf>,
    /// Its slides.
    pub slides: Vec<SlideState>,
    /// Slides that are behind us.
    pub done: usize,
    /// Seconds that the slides not yet begun will take; none before one is done.
    pub eta_seconds: Option<f64>,
    /// What of the choice of slides and tables is to be seen.
    pub remarks: Vec<String>,
    /// What runs the networks, and other lines.
    pub notes: Vec<String>,
    /// Why it did not start, or has no tables.
    pub error: Option<String>,
    /// Whether it did not start because the folder holds results of these slides.
    pub exists: bool,
}

/// What is to be run.
pub struct Plan {
    /// The slides, with their regions.
    pub slides: Vec<Input>,
    /// The package.
    pub package: ModelPackage,
    /// The operating point.
    pub thresholds: Thresholds,
    /// Where to.
    pub out: PathBuf,
    /// What to do about results that are there.
    pub existing: Existing,
    /// How networks run.
    pub engine: EngineOptions,
    /// The command line that the run's files name.
    pub command: Vec<String>,
    /// What of the choice is to be shown with the run.
    pub remarks: Vec<String>,
}

/// The desk at which one run at a time is done.
#[derive(Clone, Default)]
pub struct Desk(Arc<Mutex<(Progress, CancelToken)>>);

impl Desk {
    fn lock(&self) -> MutexGuard<'_, (Progress, CancelToken)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How far the run is.
    pub fn progress(&self) -> Progress {
        self.lock().0.clone()
    }

    /// Ends the run as soon as the current windows are done; nothing where none runs.
    pub fn cancel(&self) -> Progress {
        let mut held = self.lock();
        if held.0.phase.is_busy() {
            held.1.cancel();
            held.0.phase = Phase::Cancelling;
        }
        held.0.clone()
    }

    /// Begins a run on a thread of its own.
    ///
    /// # Errors
    /// [`PageError::Busy`] or [`PageError::Thread`].
    pub fn begin(&self, plan: Plan) -> Result<Progress, PageError> {
        let cancel = CancelToken::new();
        let begun = {
            let mut held = self.lock();
            if held.0.phase.is_busy() {
                return Err(PageError::Busy);
            }
            let number = held.0.number + 1;
            let slides = plan.slides.iter().map(|s| waiting(&s.name)).collect();
            let (phase, out) = (Phase::Opening, Some(plan.out.clone()));
            let remarks = plan.remarks.clone();
            held.0 = Progress { phase, number, out, slides, remarks, ..Progress::default() };
            held.1 = cancel.clone();
            held.0.clone()
        };
        let desk = self.clone();
        let spawned = std::thread::Builder::new().name("run".into()).spawn(move || {
            let mut end = End { desk: desk.clone(), how: None };
            end.how = Some(desk.work(plan, &cancel));
        });
        match spawned {
            Ok(_) => Ok(begun),
            Err(e) => {
                let error = PageError::Thread(e);
                let mut held = self.lock();
                held.0.phase = Phase::Failed;
                held.0.error = Some(full_message(&error));
                Err(error)
            }
        }
    }

    /// Does all of it, and returns the last phase.
    fn work(&self, plan: Plan, cancel: &CancelToken) -> Result<Phase, Fault> {
        let builder = Builder::default().run_with(plan.engine).thresholds(plan.thresholds);
        let mut detector = [builder
            .open(&plan.package)
            .map_err(|e| Fault { words: full_message(&e), exists: false })?];
        let mut listener = Watch(self.clone());
        let place = OutFolder { path: &plan.out, existing: plan.existing };
        let plan = RunPlan {
            slides: plan.slides,
            detectors: &mut detector,
            out: place,
            command: &plan.command,
        };
        let finished = run(plan, &mut listener, cancel).map_err(|e| Fault {
            exists: matches!(e, RunPlanError::Start(StartError::Exists { .. })),
            words: full_message(&e),
        })?;
        let stopped = finished.slides.iter().any(mithras::batch::Outcome::is_stopped);
        Ok(if stopped { Phase::Cancelled } else { Phase::Done })
    }
}

/// Why a run did not start, or has no tables.
struct Fault {
    words: String,
    exists: bool,
}

/// Records how the run ended, also where its thread panicked: else it would be at work for ever.
struct End {
    desk: Desk,
    how: Option<Result<Phase, Fault>>,
}

impl Drop for End {
    fn drop(&mut self) {
        let mut held = self.desk.lock();
        let how = self.how.take().unwrap_or_else(|| {
            let words = "the run ended by a fault of the program; its console has the details. What was found so far is kept".into();
            Err(Fault { words, exists: false })
        });
        match how {
            Ok(phase) => held.0.phase = phase,
            Err(fault) => {
                held.0.phase = Phase::Failed;
                held.0.error = Some(fault.words);
                held.0.exists = fault.exists;
            }
        }
    }
}

fn waiting(name: &str) -> SlideState {
    SlideState {
        name: name.to_owned(),
        status: "waiting",
        reason: None,
        done: 0,
        total: 0,
        unit: String::new(),
        rate: 0.0,
        eta_seconds: None,
        seconds: 0.0,
    }
}

/// Writes progress down where the page asks for it.
struct Watch(Desk);

impl Watch {
    fn slide(&self, name: &str, change: impl FnOnce(&mut SlideState)) {
        let mut held = self.0.lock();
        held.0.slides.iter_mut().find(|s| s.name == name).map(change);
    }

    fn remember(&self, line: &str) {
        let notes = &mut self.0.lock().0.notes;
        if notes.len() < NOTES {
            notes.push(base::text::plain_lines(line));
        }
    }
}

impl Listener for Watch {
    fn begin(&mut self, _: &str, _: &'static str) {}
    fn update(&mut self, _: u64, _: u64) {}
    fn finish(&mut self) {}
    fn report(&mut self, line: &str) {
        self.remember(line);
    }
    fn note(&mut self, text: &str) {
        self.remember(text);
    }

    fn event(&mut self, event: &Event<'_>) {
        match *event {
            Event::Slides { .. } => {
                let phase = &mut self.0.lock().0.phase;
                if *phase == Phase::Opening {
                    *phase = Phase::Running;
                }
            }
            Event::SlideBegun { slide } => self.slide(slide, |s| s.status = "running"),
            Event::Progress { of, done, total, unit, rate, eta_seconds } => self.slide(of, |s| {
                (s.done, s.total, s.rate, s.eta_seconds) = (done, total, rate, eta_seconds);
                unit.clone_into(&mut s.unit);
            }),
            Event::SlideEnded { slide, status, reason, seconds, done, eta_seconds, .. } => {
                self.slide(slide, |s| {
                    s.status = word(status);
                    s.reason = reason.map(base::text::plain_lines);
                    (s.seconds, s.eta_seconds) = (seconds, None);
                });
                let held = &mut self.0.lock().0;
                (held.done, held.eta_seconds) = (done, eta_seconds);
            }
            _ => {}
        }
    }
}

fn word(status: SlideStatus) -> &'static str {
    match status {
        SlideStatus::Finished => "finished",
        SlideStatus::NoTissue => "no-tissue",
        SlideStatus::Kept => "kept",
        SlideStatus::Failed => "failed",
        SlideStatus::Interrupted => "interrupted",
        SlideStatus::Elsewhere => "elsewhere",
    }
}
