//! What happens during work, for scripts.

use serde::Serialize;

/// The schema of a log of events.
pub const SCHEMA: &str = "mithras.log/1";

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case", rename_all_fields = "snake_case")]
pub enum Event<'a> {
    /// The process begins.
    Started {
        /// Program and version.
        program: &'a str,
        /// The command line.
        command: &'a [String],
        /// Number of the process.
        process: u32,
    },
    /// Work on slides begins.
    Slides {
        /// How many.
        total: usize,
        /// How many at once.
        workers: usize,
    },
    /// A slide is taken in hand.
    SlideBegun {
        /// Its name, that of its folder.
        slide: &'a str,
    },
    /// How far one slide, or another piece of work, is; at most once a second.
    Progress {
        /// The slide, or the work.
        of: &'a str,
        /// Units that are done.
        done: u64,
        /// All units.
        total: u64,
        /// What is counted.
        unit: &'a str,
        /// Units per second since the piece began.
        rate: f64,
        /// Seconds that the rest will take at this rate.
        eta_seconds: Option<f64>,
    },
    /// A slide ended, and how far all of them are.
    SlideEnded {
        /// Its name.
        slide: &'a str,
        /// How.
        status: SlideStatus,
        /// Why it failed.
        reason: Option<&'a str>,
        /// Seconds that it took, all in all.
        seconds: f64,
        /// Slides that are behind us.
        done: usize,
        /// All slides.
        total: usize,
        /// Slides per second; none before one was worked on.
        rate: Option<f64>,
        /// Seconds that the others will take at this rate.
        eta_seconds: Option<f64>,
    },
    /// An epoch of a training ended.
    EpochEnded {
        /// The run, by the name of its stage.
        of: &'a str,
        /// Steps that are done.
        step: usize,
        /// Mean training loss since the last epoch.
        loss: f64,
        /// Loss on what is held out, where anything is.
        validation_loss: Option<f64>,
        /// The stage's metric on it.
        validation_metric: Option<f64>,
        /// Training images per second.
        images_per_second: f64,
    },
    /// A step of a chain of trainings begins, or was done before.
    Step {
        /// Its name.
        name: &'a str,
        /// Number of the step, from 1.
        number: usize,
        /// All steps.
        total: usize,
        /// Whether an earlier process did it.
        done_before: bool,
        /// Estimated seconds to the end of the chain.
        eta_seconds: f64,
    },
    /// A line that people see.
    Message {
        /// `note`, `warning`, `error` or `hint`.
        kind: &'a str,
        /// The message, one line.
        text: &'a str,
    },
    /// The process ends.
    Ended {
        /// With this code.
        exit_code: u8,
        /// Slides that are done, those without tissue included.
        done: usize,
        /// Of them, those that an earlier process did.
        kept: usize,
        /// Slides that failed.
        failed: usize,
        /// Slides that were interrupted, or not begun before the work was to end.
        interrupted: usize,
        /// Slides that another process is at work on.
        elsewhere: usize,
        /// Seconds since the start.
        seconds: f64,
    },
}

/// How a slide ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SlideStatus {
    /// Its files are written.
    Finished,
    /// They are complete, and no tissue was found.
    NoTissue,
    /// An earlier process did it.
    Kept,
    /// See the reason.
    Failed,
    /// It can be resumed.
    Interrupted,
    /// Another process is at work on it.
    Elsewhere,
}
