//! `run.json`: what ran, on what, with what, and how it ended.

use super::found::Found;
use super::record::{RunRecord, Workers};
use super::reviewed::Reviewed;
use crate::batch::state::Status;
use crate::export::CountsFile;
use crate::job::StageTime;
use infer::EngineReport;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

/// The schema written.
pub const SCHEMA: &str = "mithras.run/1";

/// The file.
#[derive(Clone, Debug, Serialize)]
pub struct RunFile {
    /// Version of this format.
    pub schema: &'static str,
    /// Version of mithras that did the slides.
    pub version: String,
    /// The command line; of several processes the first in the order of their words.
    pub command: Vec<String>,
    /// All command lines, where there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<Vec<String>>,
    /// When this was written, seconds since 1970.
    pub finished_unix: u64,
    /// Everything that changes a number: [`crate::detector::Config`].
    pub config: serde_json::Value,
    /// Digest of it.
    pub config_sha256: String,
    /// What ran the networks.
    pub engine: EngineReport,
    /// Threads and batches; they change no number.
    pub workers: Workers,
    /// Done slides by what ran the networks, where that is not the same for all.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub engines: BTreeMap<String, usize>,
    /// Finished slides, those without tissue included.
    pub done: usize,
    /// Slides without tissue.
    pub without_tissue: usize,
    /// Failed slides.
    pub failed: usize,
    /// Slides that are being worked on or were interrupted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unfinished: Vec<String>,
    /// Slides that lie here and were made with another configuration.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// Every slide that is done or failed, sorted by name.
    pub slides: Vec<SlideLine>,
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
    /// Further columns of the list that named it, with its cells.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<(String, String)>,
    /// What ran the networks, where that is not the same for all slides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// Its count, also in its own `counts.json`.
    pub counts: Option<CountsFile>,
    /// The same with a reviewer's words on top, where it was recounted (`mithras recount`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reviewed: Option<Reviewed>,
}

impl SlideLine {
    pub(super) fn new(slide: &Found) -> Self {
        let state = &slide.state;
        Self {
            name: slide.name.clone(),
            path: state.input.path.clone(),
            status: match state.status {
                Status::Running => "running",
                Status::Finished => "finished",
                Status::NoTissue => "no-tissue",
                Status::Failed => "failed",
            }
            .into(),
            reason: state.reason.clone(),
            kept: slide.kept,
            input_sha256: state.input.sha256.clone(),
            seconds: state.seconds,
            stages: state.work.stages.clone(),
            resumed_windows: state.work.resumed_windows,
            columns: state.columns.clone(),
            engine: slide.engine().cloned(),
            counts: slide.counts.clone(),
            reviewed: slide.reviewed.clone(),
        }
    }
}

impl RunFile {
    /// Of these slides and of the processes that did them, one at least.
    pub(super) fn new(mut slides: Vec<SlideLine>, records: &[RunRecord]) -> Self {
        let mut engines = BTreeMap::new();
        for engine in slides.iter().filter(|s| s.counts.is_some()).filter_map(|s| s.engine.clone())
        {
            *engines.entry(engine).or_insert(0) += 1;
        }
        if engines.len() < 2 {
            engines.clear();
            slides.iter_mut().for_each(|s| s.engine = None);
        }
        let count = |status: &str| slides.iter().filter(|s| s.status == status).count();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
        let run = records[0].clone();
        let mut commands: Vec<_> = records.iter().map(|r| r.command.clone()).collect();
        commands.dedup();
        if commands.len() == 1 {
            commands.clear();
        }
        Self {
            schema: SCHEMA,
            version: run.version,
            command: run.command,
            commands,
            finished_unix: now,
            config: run.config,
            config_sha256: run.config_sha256,
            engine: run.engine,
            workers: run.workers,
            engines,
            done: count("finished") + count("no-tissue"),
            without_tissue: count("no-tissue"),
            failed: count("failed"),
            unfinished: Vec::new(),
            left_out: Vec::new(),
            slides,
        }
    }
}
