//! `run.json`: what ran, on what, with what, and how it ended.

use crate::batch::state::Status;
use crate::detector::{Config, Detector};
use crate::export::CountsFile;
use crate::job::{Outcome, StageTime};
use infer::EngineReport;
use serde::Serialize;
use std::time::{SystemTime, UNIX_EPOCH};

/// The schema written.
pub const SCHEMA: &str = "mithras.run/1";

/// The file.
#[derive(Clone, Debug, Serialize)]
pub struct RunFile {
    /// Version of this format.
    pub schema: &'static str,
    /// Version of mithras.
    pub version: &'static str,
    /// The command line.
    pub command: Vec<String>,
    /// When it ended, seconds since 1970.
    pub finished_unix: u64,
    /// Everything that changes a number.
    pub config: Config,
    /// Digest of it.
    pub config_sha256: String,
    /// What ran the networks.
    pub engine: EngineReport,
    /// Threads and batches; they change no number.
    pub workers: Workers,
    /// Finished slides, those without tissue included.
    pub done: usize,
    /// Slides without tissue.
    pub without_tissue: usize,
    /// Failed slides.
    pub failed: usize,
    /// Every slide.
    pub slides: Vec<SlideLine>,
}

/// Threads and batches.
#[derive(Clone, Debug, Serialize)]
pub struct Workers {
    /// Decoding threads.
    pub readers: usize,
    /// Decoded windows that may wait.
    pub in_flight: usize,
    /// Windows per call of the first stage.
    pub segment_batch: usize,
    /// Crops per call of the second stage.
    pub classify_batch: usize,
    /// Processors of the machine.
    pub processors: usize,
}

/// One slide of a run.
#[derive(Clone, Debug, Serialize)]
pub struct SlideLine {
    /// Its folder's name.
    pub name: String,
    /// Its file, as given.
    pub path: String,
    /// `finished`, `no-tissue` or `failed`.
    pub status: String,
    /// Why it failed.
    pub reason: Option<String>,
    /// Finished by an earlier run and kept.
    pub kept: bool,
    /// Digest of the file.
    pub input_sha256: String,
    /// Seconds, all in all.
    pub seconds: f64,
    /// Busy time per stage.
    pub stages: Vec<StageTime>,
    /// Windows taken over from an interrupted run.
    pub resumed_windows: usize,
    /// Its count, also in its own `counts.json`.
    pub counts: Option<CountsFile>,
}

impl SlideLine {
    pub(super) fn new(outcome: &Outcome, counts: Option<&CountsFile>) -> Self {
        let state = &outcome.state;
        Self {
            name: outcome.input.name.clone(),
            path: outcome.input.path.display().to_string(),
            status: match state.status {
                Status::Running => "running",
                Status::Finished => "finished",
                Status::NoTissue => "no-tissue",
                Status::Failed => "failed",
            }
            .into(),
            reason: state.reason.clone(),
            kept: outcome.kept,
            input_sha256: state.input.sha256.clone(),
            seconds: state.seconds,
            stages: state.work.stages.clone(),
            resumed_windows: state.work.resumed_windows,
            counts: counts.cloned(),
        }
    }
}

impl RunFile {
    pub(super) fn new(slides: Vec<SlideLine>, detector: &Detector, command: &[String]) -> Self {
        let count = |status: &str| slides.iter().filter(|s| s.status == status).count();
        let w = &detector.workers;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
        Self {
            schema: SCHEMA,
            version: env!("CARGO_PKG_VERSION"),
            command: command.to_vec(),
            finished_unix: now,
            config: detector.config.clone(),
            config_sha256: detector.config.digest(),
            engine: detector.engine.clone(),
            workers: Workers {
                readers: w.readers,
                in_flight: w.in_flight,
                segment_batch: w.segment_batch,
                classify_batch: w.classify_batch,
                processors: std::thread::available_parallelism().map_or(1, usize::from),
            },
            done: count("finished") + count("no-tissue"),
            without_tissue: count("no-tissue"),
            failed: count("failed"),
            slides,
        }
    }
}
