//! The report of a run: a page, tables as CSV and LaTeX, figures as SVG and PNG, per experiment.
//!
//! ```text
//! DIR/report/index.html
//! DIR/report/ID/index.html, results.json, TABLE.csv, TABLE.tex, FIGURE.svg, FIGURE.png
//! ```

mod compare;
mod figure;
mod page;
mod results;
mod steps;
mod table;
mod text;

pub use compare::{Comparison, Pair};
pub use results::Results;
pub use steps::StepLine;
pub(crate) use steps::StepOutputs;
pub use table::{Cell, Column, Row, Table};

use crate::error::{ExperimentError, Result};
use crate::graph::{Graph, Step, read_dims};
use crate::run::{NOTE, NOTE_SCHEMA, Places, Record, RunNote, StepState};
use crate::spec::{self, Experiment};
use base::file::Lock;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Name of the report's folder in the run folder.
pub const FOLDER: &str = "report";

/// Writes the report of all experiments of a run; gives the page that leads to them.
///
/// # Errors
/// A folder that is not a run, a full disk.
pub fn write(out: &Path) -> Result<PathBuf> {
    let note: RunNote = base::json::read(&out.join(NOTE))
        .map_err(|e| ExperimentError::path(out, format!("is not the folder of a run: {e}")))?;
    if note.schema != NOTE_SCHEMA {
        return Err(ExperimentError::path(out.join(NOTE), format!("schema {}", note.schema)));
    }
    let folder = out.join(FOLDER);
    let mut all = vec![];
    for id in &note.experiments {
        let experiment = spec::find(id)?;
        let results = results(&experiment, &note, out)?;
        let own = folder.join(id);
        std::fs::create_dir_all(&own).map_err(|e| ExperimentError::path(&own, e))?;
        base::json::write(&own.join("results.json"), &results)?;
        for t in &results.tables {
            base::file::write(&own.join(format!("{}.csv", t.id)), &text::csv(t))?;
            base::file::write(&own.join(format!("{}.tex", t.id)), text::latex(t).as_bytes())?;
        }
        let found = StepOutputs { out, steps: results.steps.clone() };
        let figures = figure::write(&experiment, &results, &found, &own)?;
        let page = page::experiment(&experiment, &results, &figures);
        base::file::write(&own.join("index.html"), page.as_bytes())?;
        all.push(page::Reported { experiment, results });
    }
    let index = folder.join("index.html");
    base::file::write(&index, page::index(&all, &note).as_bytes())?;
    Ok(index)
}

/// Reads what the steps of an experiment made.
///
/// # Errors
/// A file of this program that does not follow its form.
pub fn results(experiment: &Experiment, note: &RunNote, out: &Path) -> Result<Results> {
    let graph = Graph::build(std::slice::from_ref(experiment), note.shrink)?;
    let places = Places::at(out, note.data.as_deref(), note.encoders.as_deref())?;
    let mut current = BTreeMap::new();
    let blocked = |s: &Step| note.blocked.get(&s.name).cloned();
    let steps: Vec<StepLine> =
        graph.steps().iter().map(|s| line(&places, s, blocked(s), &mut current)).collect();
    let shrink = if note.shrink { Some(spec::shrink_words()?) } else { None };
    let dims = read_dims(&experiment.dims, &experiment.shrink, shrink.as_ref())?;
    let found = StepOutputs { out, steps };
    let tables = experiment
        .tables
        .iter()
        .map(|t| table::compute(t, &dims, &found))
        .collect::<Result<Vec<_>>>()?;
    let comparisons = experiment
        .compares
        .iter()
        .map(|c| compare::compute(c, &dims, &found))
        .collect::<Result<Vec<_>>>()?;
    Ok(Results {
        schema: "mithras.experiment-results/1",
        experiment: experiment.id.clone(),
        run: note.clone(),
        steps: found.steps,
        tables,
        comparisons,
    })
}

/// Why a step is out of date.
const CHANGED: &str = "out of date: its command, a file of it or what it reads changed; the next run of the experiment does it again";

/// What came of a step; its result is added to the `current` ones if nothing changed since.
fn line(
    places: &Places,
    step: &Step,
    blocked: Option<String>,
    current: &mut BTreeMap<String, String>,
) -> StepLine {
    let (out, name) = (places.out(), &step.name);
    let record = Record::read(out, name);
    // A step that another program schedules has a lock of its own.
    let locks = [out.to_owned(), out.join("locks").join(name)];
    let under_way = || match locks.iter().any(|l| Lock::is_taken(l)) {
        true => "is running",
        false => "was stopped; the next run of the experiment continues it",
    };
    let (state, reason, digest) = match (record.as_ref().map(|r| &r.state), blocked) {
        (Some(StepState::Done { result }), None) => {
            // Where a folder is not known, as on another machine, nothing is compared.
            let known = places.has_folders(step);
            let found = if known { places.current(step, current) } else { Some(result.clone()) };
            current.extend(found.clone().map(|result| (name.clone(), result)));
            match found {
                Some(result) => ("done", None, Some(result)),
                None => ("out of date", Some(CHANGED.into()), Some(result.clone())),
            }
        }
        (Some(StepState::Failed { reason }), None) => ("failed", Some(reason.clone()), None),
        (Some(StepState::Running), None) => ("missing", Some(under_way().into()), None),
        (None, None) => ("missing", None, None),
        (_, Some(reason)) => ("missing", Some(reason), None),
    };
    StepLine {
        name: name.clone(),
        state,
        reason,
        seconds: record.as_ref().map_or(0.0, |r| r.seconds),
        processor_seconds: record.as_ref().and_then(|r| r.processor_seconds),
        peak_mib: record.and_then(|r| r.peak_mib),
        digest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_of_a_run_under_way_is_running_and_one_of_a_dead_run_was_stopped() {
        let dir = tempfile::tempdir().unwrap();
        let graph = Graph::build(&[spec::find("tumour-review").unwrap()], false).unwrap();
        let step: &Step = &graph.steps()[0];
        Record::begun(step, "key").write(dir.path()).unwrap();
        let places = Places::at(dir.path(), None, None).unwrap();
        let reason = || line(&places, step, None, &mut BTreeMap::new()).reason.unwrap();
        assert!(reason().contains("continues it"), "{}", reason());
        let lock = Lock::take(dir.path()).unwrap();
        assert_eq!(reason(), "is running");
        drop(lock);
        assert!(reason().contains("continues it"), "{}", reason());
        let alone = Lock::take(&dir.path().join("locks").join(&step.name)).unwrap();
        assert_eq!(reason(), "is running");
        drop(alone);
    }
}
