//! What one process runs with, written down before it begins, so that tables can be made without it.

use super::error::ReportError;
use crate::batch::RECORDS;
use crate::detector::{Detector, settings};
use crate::file::WriteError;
use base::digest::sha256;
use base::json::JsonError;
use base::walk::entries_if_any;
use infer::EngineReport;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::ErrorKind::NotFound;
use std::path::Path;

/// What one process runs with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Version of mithras.
    pub version: String,
    /// The command line, word by word.
    pub command: Vec<String>,
    /// Everything that changes a number: [`crate::detector::Config`].
    pub config: serde_json::Value,
    /// SHA-256 of `config`, 64 hexadecimal digits.
    pub config_sha256: String,
    /// What runs the networks.
    pub engine: EngineReport,
    /// Threads and batches; they change no number.
    pub workers: Workers,
    /// Whether results of another engine may be combined with those of this process.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub accepts_engine: bool,
}

/// How much ran at once: threads and batch sizes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workers {
    /// Threads that decode windows.
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

impl RunRecord {
    fn new(detector: &Detector, command: &[String]) -> Self {
        let w = &detector.workers;
        // By way of its text, so that scores, which are f32, keep the digits that they are written in.
        let text = serde_json::to_vec(&detector.config).expect("plain data becomes JSON");
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            // The signature of an address must not be stored with the results.
            command: command.iter().map(|w| remote::without_query(w)).collect(),
            config: serde_json::from_slice(&text).expect("JSON as it was just written"),
            config_sha256: detector.config.digest(),
            engine: detector.models.engine.clone(),
            workers: Workers {
                readers: w.readers,
                in_flight: w.in_flight,
                segment_batch: w.segment_batch,
                classify_batch: w.classify_batch,
                processors: std::thread::available_parallelism().map_or(1, usize::from),
            },
            accepts_engine: detector.models.accept_engine,
        }
    }

    /// The configuration by dotted names, as a slide's state has it.
    pub(super) fn settings(&self) -> BTreeMap<String, String> {
        settings(&self.config)
    }

    /// A text of the configuration, empty if it is missing.
    pub(super) fn text(&self, pointer: &str) -> &str {
        self.config.pointer(pointer).and_then(|v| v.as_str()).unwrap_or_default()
    }
}

/// Writes down what a process runs with, before its first slide: whenever it ends, tables can be made
/// of what is done ([`super::gather`]). The same again makes no second file.
///
/// # Errors
/// [`ReportError::Write`].
pub fn begin(out: &Path, detector: &Detector, command: &[String]) -> Result<(), ReportError> {
    write_record(out, &RunRecord::new(detector, command))
}

/// Writes a record into a run's folder. The same again makes no second file.
pub(super) fn write_record(out: &Path, record: &RunRecord) -> Result<(), ReportError> {
    let bytes = base::json::pretty(record);
    let folder = out.join(RECORDS);
    std::fs::create_dir_all(&folder)
        .map_err(|source| WriteError { path: folder.clone(), source })?;
    let path = folder.join(format!("{}.json", &sha256(&bytes)[..16]));
    if !path.is_file() {
        crate::file::write(&path, &bytes)?;
    }
    Ok(())
}

/// The records of a run's folder; without any, the one in its `run.json`, as earlier versions
/// wrote it. A damaged one is ignored.
///
/// # Errors
/// [`ReportError::Read`] for one that is there and cannot be read.
pub(super) fn records(out: &Path) -> Result<Vec<RunRecord>, ReportError> {
    let read = |path: &Path| match base::json::read::<RunRecord>(path) {
        Err(JsonError::Read(e)) if e.source.kind() != NotFound => Err(e),
        read => Ok(read.ok()),
    };
    let all = entries_if_any(&out.join(RECORDS))?;
    let found =
        all.iter().filter_map(|file| read(file).transpose()).collect::<Result<Vec<_>, _>>()?;
    match found.is_empty() {
        true => Ok(read(&out.join("run.json"))?.into_iter().collect()),
        false => Ok(found),
    }
}
