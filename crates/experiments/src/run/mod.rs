//! Runs the graph: each step a process of this program, what is done is not done again.
//!
//! ```text
//! DIR/steps/NAME/...     what a step made
//! DIR/state/NAME.json    its record: key, result digest, seconds, reason
//! DIR/logs/NAME.log      the output of its process
//! DIR/presets/, files/   presets and tables that the program contains
//! DIR/run.json           the experiments, where data and encoders were, the machine
//! ```

mod child;
mod digest;
mod places;
mod schedule;
mod state;

pub use places::Places;
pub use schedule::{Ended, EndedStep, Summary, run};
pub use state::{Record, SCHEMA, StepState};

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Where a run is, and how much of the machine it takes.
#[derive(Clone, Debug)]
pub struct Options {
    /// The run folder.
    pub out: PathBuf,
    /// Folder of the data sets.
    pub data: Option<PathBuf>,
    /// Folder of encoders' weights.
    pub encoders: Option<PathBuf>,
    /// This program.
    pub program: PathBuf,
    /// Steps at once.
    pub jobs: usize,
    /// Threads that each step may use.
    pub threads: usize,
    /// auto, cpu, cuda, cuda:N.
    pub device: String,
    /// GiB of memory for all steps together.
    pub memory: f64,
    /// Set to end early.
    pub cancel: Arc<AtomicBool>,
    /// This step alone, which another program schedules; what it needs has to be done.
    pub alone: Option<String>,
}

/// The machine and the settings of a run, for the report: `run.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunNote {
    /// `mithras.experiments/1`.
    pub schema: String,
    /// Ids of the experiments.
    pub experiments: Vec<String>,
    /// Whether it is the shrink.
    pub shrink: bool,
    /// Version of this program.
    pub program: String,
    /// Name of the processor.
    pub processor: String,
    /// The processor's threads that this process may use.
    pub threads: usize,
    /// Memory of the machine; 0 where the system does not report it.
    pub memory_gib: f64,
    /// Device that networks were asked to run on.
    pub device: String,
    /// Folder of the data.
    #[serde(serialize_with = "base::json::lossy")]
    pub data: Option<PathBuf>,
    /// Folder of the encoders.
    #[serde(serialize_with = "base::json::lossy")]
    pub encoders: Option<PathBuf>,
    /// Steps that could not begin, and why.
    #[serde(default)]
    pub blocked: BTreeMap<String, String>,
}

/// Name of the file.
pub const NOTE: &str = "run.json";
/// Its form.
pub const NOTE_SCHEMA: &str = "mithras.experiments/1";

impl RunNote {
    /// A note of this machine.
    #[must_use]
    pub fn here(experiments: Vec<String>, shrink: bool, options: &Options) -> Self {
        let read = |file: &str| base::file::read_string(file).unwrap_or_default();
        let info = read("/proc/cpuinfo");
        let model = info.lines().find_map(|l| l.strip_prefix("model name")?.split_once(": "));
        Self {
            schema: NOTE_SCHEMA.into(),
            experiments,
            shrink,
            program: concat!("mithras ", env!("CARGO_PKG_VERSION")).into(),
            processor: model.map_or("unknown", |(_, name)| name).to_owned(),
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            memory_gib: memory_gib().unwrap_or(0.0),
            device: options.device.clone(),
            data: options.data.clone(),
            encoders: options.encoders.clone(),
            blocked: BTreeMap::new(),
        }
    }
}

/// GiB of memory of this machine, where the system reports it.
#[must_use]
pub fn memory_gib() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find(|l| l.starts_with("MemTotal:"))?;
    let kib: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib / (1024.0 * 1024.0))
}
