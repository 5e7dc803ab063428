//! `run.json`: what ran, on what, with what, and how it ended.

use super::cases::{CaseLine, Unfinished};
use super::record::{RunRecord, Workers};
use super::slide_line::{SlideLine, same_files};
use infer::EngineReport;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

/// The schema written.
pub const SCHEMA: &str = "mithras.run/1";

/// Content of `run.json`.
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
    /// SHA-256 of `config`, 64 hexadecimal digits.
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
    /// Slides without a result here, with their cells of the list: `unfinished`, those of another configuration, and
    /// those that the run names and that were not begun.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub without_result: Vec<Unfinished>,
    /// Slides in the folder that were made with another configuration.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// Cases, where a list names those of its slides.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cases: Vec<CaseLine>,
    /// Slides whose list names no case, where it names those of others.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub without_case: Vec<String>,
    /// Slides that are one file under several names, as far as their digests are known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub same_files: Vec<Vec<String>>,
    /// Every slide that is done or failed, sorted by name.
    pub slides: Vec<SlideLine>,
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
            without_result: Vec::new(),
            left_out: Vec::new(),
            cases: Vec::new(),
            without_case: Vec::new(),
            same_files: same_files(slides.iter()),
            slides,
        }
    }
}
