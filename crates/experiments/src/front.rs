//! What a face calls: plan, perform, report.

use crate::dataset;
use crate::drawn;
use crate::error::{ExperimentError, Result};
use crate::graph::Graph;
use crate::report;
use crate::run::{self, NOTE, Options, Places, Record, RunNote, StepState, Summary};
use crate::spec;
use base::progress::Listener;
use base::text::Many;
use base::walk;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// Experiments to run, whole or in part.
#[derive(Clone, Debug)]
pub struct Chosen {
    /// Their ids.
    pub experiments: Vec<String>,
    /// Steps or families of steps, with what they need; everything without any.
    pub only: Vec<String>,
    /// Drawn slides and tiny networks.
    pub shrink: bool,
}

/// Steps as they would run.
#[derive(Clone, Debug, Serialize)]
pub struct Planned {
    /// Each after those that it needs.
    pub steps: Vec<PlannedStep>,
    /// Bytes of the data sets that they read, where those are there.
    pub bytes: u64,
    /// Hours of one job that the estimate gives for what is to do.
    pub hours: f64,
    /// What the estimate rests on.
    pub rate: Rate,
}

/// How fast networks run: what the estimate of hours rests on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rate {
    /// 10^9 multiply-accumulates per second of one step.
    pub gmacs_per_second: f64,
    /// Steps of this run that it was measured on; without any it is assumed.
    pub measured_on: usize,
    /// `GPU`, or `processor, N threads`.
    pub device: String,
}

/// Assumed of a GPU, 10^9 multiply-accumulates per second.
const GPU_GMACS: f64 = 10_000.0;
/// Assumed of a thread of a processor with bf16 instructions: small networks spend much of their time on
/// memory and on changing images.
const THREAD_GMACS: f64 = 30.0;

impl Rate {
    /// The rate of the steps that this run has done, each given by its work (10^9 multiply-accumulates) and its
    /// seconds; an assumed rate without any.
    fn estimate(options: &Options, done: &[(f64, f64)]) -> Self {
        let gpu = match options.device.as_str() {
            "auto" => Path::new("/dev/nvidiactl").exists(),
            device => device.starts_with("cuda"),
        };
        let assumed = if gpu { GPU_GMACS } else { THREAD_GMACS * options.threads as f64 };
        let (gmacs, seconds) = done.iter().fold((0.0, 0.0), |a, d| (a.0 + d.0, a.1 + d.1));
        let measured = seconds > 0.0;
        Self {
            gmacs_per_second: if measured { gmacs / seconds } else { assumed },
            measured_on: if measured { done.len() } else { 0 },
            device: if gpu {
                "GPU".into()
            } else {
                format!("processor, {}", Many(options.threads as u64, "thread"))
            },
        }
    }

    fn hours(&self, gmacs: f64) -> f64 {
        gmacs / self.gmacs_per_second / 3600.0
    }
}

/// A step with what is left to do of it.
#[derive(Clone, Debug, Serialize)]
pub struct PlannedStep {
    /// Its name in the graph; its folder is `steps/NAME`.
    pub name: String,
    /// One line.
    pub about: String,
    /// `done`, `to do` or `blocked`.
    pub state: &'static str,
    /// Why it is blocked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Estimate of hours.
    pub hours: f64,
}

fn graph(chosen: &Chosen) -> Result<Graph> {
    let experiments =
        chosen.experiments.iter().map(|id| spec::find(id)).collect::<Result<Vec<_>>>()?;
    let graph = Graph::build(&experiments, chosen.shrink)?;
    if chosen.only.is_empty() { Ok(graph) } else { graph.only(&chosen.only) }
}

/// The options with the drawn data in place of the user's, in the shrink.
fn settled(chosen: &Chosen, options: &Options) -> Options {
    let mut options = options.clone();
    if chosen.shrink {
        options.data = Some(options.out.join("drawn"));
        options.encoders = None;
    }
    options
}

/// The steps, what is done of them and what they would take; writes nothing.
///
/// # Errors
/// Unknown names, a file of this program that does not follow its form.
pub fn plan(chosen: &Chosen, options: &Options) -> Result<Planned> {
    let options = settled(chosen, options);
    let (graph, places) = (graph(chosen)?, Places::new(&options)?);
    let rate = Rate::estimate(&options, &measured(&graph, &places));
    let mut results: BTreeMap<String, String> = BTreeMap::new();
    let mut blocked: BTreeMap<&str, String> = BTreeMap::new();
    let mut steps = vec![];
    for step in graph.steps() {
        // Data of the shrink are drawn when it runs.
        let lacks = if chosen.shrink { vec![] } else { places.lacks(step) };
        let before = step.needs.iter().find_map(|n| blocked.get(n.as_str()).cloned());
        let reason = if lacks.is_empty() { before } else { Some(lacks.join("; ")) };
        let current = if reason.is_none() { places.current(step, &results) } else { None };
        let done = current.is_some();
        results.extend(current.map(|result| (step.name.clone(), result)));
        if let Some(reason) = &reason {
            blocked.insert(&step.name, reason.clone());
        }
        let state = match (&reason, done) {
            (Some(_), _) => "blocked",
            (None, true) => "done",
            (None, false) => "to do",
        };
        steps.push(PlannedStep {
            name: step.name.clone(),
            about: step.about.clone(),
            state,
            reason,
            hours: rate.hours(step.gmacs),
        });
    }
    let to_do = steps.iter().filter(|s| s.state == "to do");
    // The sum of no numbers is -0.
    let hours = 0.0 + to_do.map(|s| s.hours).sum::<f64>();
    let bytes = options.data.as_deref().map_or(0, |data| bytes(&graph, data));
    Ok(Planned { steps, bytes, hours, rate })
}

/// Work and seconds of the steps with networks that this run has done.
fn measured(graph: &Graph, places: &Places) -> Vec<(f64, f64)> {
    let done = graph.steps().iter().filter(|s| s.gmacs > 0.0).filter_map(|s| {
        let record = Record::read(places.out(), &s.name)?;
        matches!(record.state, StepState::Done { .. }).then_some((s.gmacs, record.seconds))
    });
    done.filter(|(_, seconds)| *seconds > 0.0).collect()
}

/// Bytes of the pieces of data sets that a graph reads.
fn bytes(graph: &Graph, data: &Path) -> u64 {
    let Ok(sets) = dataset::all() else { return 0 };
    let mut paths: Vec<PathBuf> = graph
        .steps()
        .iter()
        .flat_map(|s| &s.data)
        .filter_map(|(set, piece)| sets.iter().find(|s| s.name == *set)?.piece(piece)?.find(data))
        .collect();
    paths.sort();
    paths.dedup();
    paths.iter().map(|p| size(p)).sum()
}

fn size(path: &Path) -> u64 {
    let bytes = |p: &Path| std::fs::metadata(p).ok().filter(|m| m.is_file()).map_or(0, |m| m.len());
    match walk::files(path, &|_| true) {
        Ok(files) => files.iter().map(|p| bytes(p)).sum(),
        Err(_) => bytes(path),
    }
}

/// Runs what was chosen and writes the report; gives what came of each step and the report's page.
///
/// # Errors
/// Unknown names, a run folder of another kind or in use, a full disk. Steps that fail are in the
/// summary.
pub fn perform(
    chosen: &Chosen,
    options: &Options,
    listener: &mut dyn Listener,
) -> Result<(Summary, PathBuf)> {
    let options = settled(chosen, options);
    let graph = graph(chosen)?;
    let mut experiments = chosen.experiments.clone();
    let before: Option<RunNote> = base::json::read(&options.out.join(NOTE)).ok();
    if let Some(before) = before {
        if before.shrink != chosen.shrink {
            let kind = if before.shrink { "a shrink" } else { "no shrink" };
            let reason = format!("holds {kind}; choose another folder if this run is meant");
            return Err(ExperimentError::path(&options.out, reason));
        }
        experiments.extend(before.experiments);
    }
    experiments.sort();
    experiments.dedup();
    if let (true, Some(data)) = (chosen.shrink, &options.data) {
        drawn::data(data)?;
        if graph.data_sets().contains("MITOS-ATYPIA-14") {
            drawn::public(data)?;
        }
    }
    let note = RunNote::here(experiments, chosen.shrink, &options);
    let summary = run::run(&graph, &note, &options, listener)?;
    if options.alone.is_some() {
        return Ok((summary, options.out.join(report::FOLDER).join("index.html")));
    }
    let page = report::write(&options.out)?;
    Ok((summary, page))
}

impl fmt::Display for Planned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for s in &self.steps {
            let hours =
                if s.hours > 0.0 { format!(", about {:.1} h", s.hours) } else { String::new() };
            let reason = s.reason.as_ref().map_or_else(String::new, |r| format!(": {r}"));
            writeln!(f, "{:<8} {}{hours}{reason}", s.state, s.name)?;
        }
        let count = |state| self.steps.iter().filter(|s| s.state == state).count();
        let gib = self.bytes as f64 / (1u64 << 30) as f64;
        let Rate { gmacs_per_second, measured_on, device } = &self.rate;
        let tmacs = gmacs_per_second / 1000.0;
        let source = match measured_on {
            0 => "assumed".to_owned(),
            n => format!("measured on {} of this run", Many(*n as u64, "step")),
        };
        writeln!(
            f,
            "{} steps: {} done, {} to do, {} blocked; {gib:.1} GiB of data; about {:.1} h of one {device}, at {tmacs:.3} \
             TMAC/s ({source})",
            self.steps.len(),
            count("done"),
            count("to do"),
            count("blocked"),
            self.hours,
        )
    }
}
