//! Which step runs when.

use super::child::{self, Done, End};
use super::{NOTE, Options, Places, Record, RunNote, StepState, digest};
use crate::error::{ExperimentError, Result};
use crate::graph::{Graph, Step};
use base::progress::{Event, Listener, Piece};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::time::Instant;

/// What came of a step.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "end", rename_all = "lowercase")]
pub enum Ended {
    /// It ran.
    Done {
        /// That it took.
        seconds: f64,
    },
    /// It was done before, and nothing that it reads changed.
    Before,
    /// It failed.
    Failed {
        /// Why.
        reason: String,
    },
    /// It could not begin.
    Blocked {
        /// Why.
        reason: String,
    },
    /// The run was cancelled first.
    Cancelled,
}

impl Ended {
    fn is_done(&self) -> bool {
        matches!(self, Self::Done { .. } | Self::Before)
    }
}

/// What came of a step; as JSON a list of the two.
#[derive(Clone, Debug, Serialize)]
#[serde(into = "(String, Ended)")]
pub struct EndedStep {
    /// Name of the step.
    pub name: String,
    /// How it ended.
    pub ended: Ended,
}

impl From<EndedStep> for (String, Ended) {
    fn from(step: EndedStep) -> Self {
        (step.name, step.ended)
    }
}

/// What came of all.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Summary {
    /// In the order of the steps.
    pub steps: Vec<EndedStep>,
}

impl Summary {
    /// Steps that fit.
    #[must_use]
    pub fn count(&self, fits: impl Fn(&Ended) -> bool) -> usize {
        self.steps.iter().filter(|s| fits(&s.ended)).count()
    }

    /// Steps that failed, could not begin or were cancelled.
    #[must_use]
    pub fn not_done(&self) -> usize {
        self.count(|e| !e.is_done())
    }
}

struct Work<'a> {
    graph: &'a Graph,
    places: &'a Places,
    options: &'a Options,
    ended: BTreeMap<String, Ended>,
    results: BTreeMap<String, String>,
    running: BTreeMap<String, (Instant, String)>,
    /// Why steps could not begin, as reported so far.
    reasons: BTreeSet<String>,
    piece: Piece<'a>,
}

/// Runs all steps of a graph; gives what came of each.
///
/// A failed step stops what needs it, and nothing else. `listener` gets a line when a step begins and one
/// for what came of it.
///
/// # Errors
/// A run folder that another process works in or that cannot be written. Failures of steps are not
/// errors: they are in the summary and in their records.
pub fn run(
    graph: &Graph,
    note: &RunNote,
    options: &Options,
    listener: &mut dyn Listener,
) -> Result<Summary> {
    let places = Places::new(options)?;
    // Steps that another program schedules run in parallel.
    let own = options.alone.as_ref().map(|name| places.out().join("locks").join(name));
    let lock = base::file::Lock::take(own.as_deref().unwrap_or(places.out()))?;
    if options.alone.is_none() || !places.out().join(NOTE).is_file() {
        base::json::write(&places.out().join(NOTE), note)?;
    }
    let mut work = Work {
        graph,
        places: &places,
        options,
        ended: BTreeMap::new(),
        results: BTreeMap::new(),
        running: BTreeMap::new(),
        reasons: BTreeSet::new(),
        piece: Piece::begin(listener, "experiment", "experiment", "steps"),
    };
    let of = graph.steps().len();
    work.others();
    let ran = std::thread::scope(|scope| -> Result<()> {
        let (sender, receiver) = mpsc::channel::<(String, Result<Done>)>();
        loop {
            work.settle()?;
            while let Some(step) = work.next() {
                let key = work.places.key(step, &work.results)?;
                if !work.begin(step, &key)? {
                    continue;
                }
                work.report(
                    "note",
                    &format!("step {} of {of}: {}", work.ended.len() + 1, step.name),
                );
                work.running.insert(step.name.clone(), (Instant::now(), key));
                let (sender, places, lock) = (sender.clone(), work.places, &lock);
                scope.spawn(move || {
                    let done = child::run(step, places, options, lock);
                    // The receiver lives until no step runs.
                    let _ = sender.send((step.name.clone(), done));
                });
            }
            if work.running.is_empty() {
                if work.ended.len() == of {
                    return Ok(());
                }
                work.settle()?;
                if work.next().is_none() && work.ended.len() < of {
                    work.cancel_rest();
                    return Ok(());
                }
                continue;
            }
            if let Ok((name, done)) = receiver.recv() {
                work.finish(&name, done)?;
            }
        }
    });
    let Work { ended, piece, .. } = work;
    piece.finish();
    ran?;
    let wanted = |s: &&Step| options.alone.as_ref().is_none_or(|a| s.name == *a);
    let order = graph.steps().iter().filter(wanted).map(|s| &s.name);
    let step = |n: &String| Some(EndedStep { name: n.clone(), ended: ended.get(n)?.clone() });
    let steps: Vec<EndedStep> = order.filter_map(step).collect();
    if options.alone.is_none() {
        let blocked = steps.iter().filter_map(|EndedStep { name, ended }| match ended {
            Ended::Blocked { reason } => Some((name.clone(), reason.clone())),
            _ => None,
        });
        let note = RunNote { blocked: blocked.collect(), ..note.clone() };
        base::json::write(&places.out().join(NOTE), &note)?;
    }
    Ok(Summary { steps })
}

impl<'a> Work<'a> {
    /// When one step runs alone, all others have the state in their records.
    fn others(&mut self) {
        let Some(alone) = &self.options.alone else { return };
        for step in self.graph.steps().iter().filter(|s| s.name != *alone) {
            let ended = match Record::read(self.places.out(), &step.name).map(|r| r.state) {
                Some(StepState::Done { result }) => {
                    self.results.insert(step.name.clone(), result);
                    Ended::Before
                }
                _ => Ended::Blocked { reason: format!("step {} is not done", step.name) },
            };
            self.ended.insert(step.name.clone(), ended);
        }
    }

    /// Ends all steps that cannot begin any more.
    fn settle(&mut self) -> Result<()> {
        for step in self.graph.steps() {
            if self.ended.contains_key(&step.name) || self.running.contains_key(&step.name) {
                continue;
            }
            let bad = step.needs.iter().find_map(|n| {
                let ended = self.ended.get(n)?;
                let reason = match ended {
                    Ended::Failed { reason } => format!("{n} failed: {reason}"),
                    // The first reason of a chain is the one that helps.
                    Ended::Blocked { reason } => reason.clone(),
                    Ended::Cancelled => return Some(Ended::Cancelled),
                    Ended::Done { .. } | Ended::Before => return None,
                };
                Some(Ended::Blocked { reason })
            });
            let lacks = self.places.lacks(step);
            let ended = match (bad, lacks.is_empty()) {
                (_, false) => Some(Ended::Blocked { reason: lacks.join("; ") }),
                (Some(bad), true) => Some(bad),
                (None, true) => None,
            };
            if let Some(ended) = ended {
                self.end(step, ended);
            }
        }
        Ok(())
    }

    /// A step that can begin now.
    fn next(&self) -> Option<&'a Step> {
        if self.options.cancel.load(Ordering::Relaxed)
            || self.running.len() >= self.options.jobs.max(1)
        {
            return None;
        }
        let running: Vec<&Step> = self.running.keys().filter_map(|n| self.graph.step(n)).collect();
        let locks: BTreeSet<&String> = running.iter().flat_map(|s| &s.lock).collect();
        let memory: f64 = running.iter().map(|s| s.memory).sum();
        let device = self.options.device.starts_with("cuda");
        let gpu = device && running.iter().any(|s| s.gpu);
        self.graph.steps().iter().find(|s| {
            !self.ended.contains_key(&s.name)
                && !self.running.contains_key(&s.name)
                && s.needs.iter().all(|n| self.ended.get(n).is_some_and(Ended::is_done))
                && s.lock.iter().all(|l| !locks.contains(l))
                && !(gpu && s.gpu)
                // A step alone always runs, however much it asks for.
                && (running.is_empty() || memory + s.memory <= self.options.memory)
        })
    }

    /// Prepares a step. False where it was done before or is done by hand.
    fn begin(&mut self, step: &Step, key: &str) -> Result<bool> {
        let out = self.places.out();
        let folder = self.places.step(&step.name);
        let before = Record::read(out, &step.name).filter(|r| r.key == key);
        if let Some(Record { state: StepState::Done { result }, .. }) = &before
            && digest::of_result(&folder, &step.makes).is_ok_and(|d| d == *result)
        {
            self.results.insert(step.name.clone(), result.clone());
            self.end(step, Ended::Before);
            return Ok(false);
        }
        if let Some(what) = &step.outside {
            self.outside(step, key, what)?;
            return Ok(false);
        }
        // A result that was whole and is damaged now is made from the start: what it was continued from may be, too.
        let is_done = |r: &Record| matches!(r.state, StepState::Done { .. });
        let continued = before.filter(|r| step.resumes && !is_done(r));
        if continued.is_none() && folder.exists() {
            std::fs::remove_dir_all(&folder).map_err(|e| ExperimentError::path(&folder, e))?;
        }
        self.places.write_files(step)?;
        let mut record = Record::begun(step, key);
        if let Some(before) = continued {
            (record.seconds, record.processor_seconds) = (before.seconds, before.processor_seconds);
        }
        record.write(out)?;
        Ok(true)
    }

    /// A step that somebody does by hand is done once its files are there.
    fn outside(&mut self, step: &Step, key: &str, what: &str) -> Result<()> {
        let folder = self.places.step(&step.name);
        match digest::of_result(&folder, &step.makes) {
            Ok(result) => {
                let state = StepState::Done { result: result.clone() };
                Record { state, ..Record::begun(step, key) }.write(self.places.out())?;
                self.results.insert(step.name.clone(), result);
                self.end(step, Ended::Before);
            }
            Err(_) => {
                let made = step.makes.join(", ");
                let reason = format!(
                    "another program does this: {what}; put {made} into {} once it has",
                    folder.display()
                );
                self.end(step, Ended::Blocked { reason });
            }
        }
        Ok(())
    }

    fn finish(&mut self, name: &str, done: Result<Done>) -> Result<()> {
        let Some((since, key)) = self.running.remove(name) else { return Ok(()) };
        let Some(step) = self.graph.step(name) else { return Ok(()) };
        let seconds = since.elapsed().as_secs_f64();
        // What an attempt that was stopped took belongs to the step, where it was continued.
        let before = Record::read(self.places.out(), name).filter(|r| r.key == key);
        let earlier = before.map_or((0.0, None), |r| (r.seconds, r.processor_seconds));
        let mut record = Record { seconds: earlier.0 + seconds, ..Record::begun(step, &key) };
        let end = match done {
            Ok(Done { end, peak_mib, processor_seconds }) => {
                record.peak_mib = peak_mib;
                record.processor_seconds = processor_seconds.map(|s| s + earlier.1.unwrap_or(0.0));
                end
            }
            Err(e) => End::Badly(e.to_string()),
        };
        let ended = match end {
            End::Well => match digest::of_result(&self.places.step(name), &step.makes) {
                Ok(result) => {
                    record.state = StepState::Done { result: result.clone() };
                    self.results.insert(name.to_owned(), result);
                    Ended::Done { seconds }
                }
                Err(e) => Ended::Failed { reason: e.to_string() },
            },
            End::Badly(reason) => Ended::Failed { reason },
            End::Cancelled => Ended::Cancelled,
        };
        if let Ended::Failed { reason } = &ended {
            record.state = StepState::Failed { reason: reason.clone() };
        }
        record.write(self.places.out())?;
        self.end(step, ended);
        Ok(())
    }

    fn end(&mut self, step: &Step, ended: Ended) {
        let name = &step.name;
        match &ended {
            Ended::Done { seconds } => {
                self.report("note", &format!("  done: {name} ({seconds:.1} s)"))
            }
            Ended::Failed { reason } => {
                self.report("error", &format!("  failed: {name}: {reason}"))
            }
            Ended::Blocked { reason } => {
                let line = format!("  not run: {name}: {reason}");
                // People read a reason once, however many steps it stops.
                if self.reasons.insert(reason.clone()) {
                    self.report("warning", &line);
                } else {
                    self.piece.event(&Event::Message { kind: "warning", text: line.trim_start() });
                }
            }
            Ended::Before | Ended::Cancelled => {}
        }
        self.ended.insert(name.clone(), ended);
        self.piece.update(self.ended.len() as u64, self.graph.steps().len() as u64);
    }

    /// A line for people, and the same as a message for scripts.
    fn report(&mut self, kind: &str, line: &str) {
        self.piece.report(line);
        self.piece.event(&Event::Message { kind, text: line.trim_start() });
    }

    fn cancel_rest(&mut self) {
        for step in self.graph.steps() {
            if !self.ended.contains_key(&step.name) {
                self.end(step, Ended::Cancelled);
            }
        }
    }
}
