//! Evaluation, survival and drawn slides. Results are JSON, as the binary prints it.

use crate::error::{Error, EvaluationError, SurvivalError, plain, with_path};
use evaluation::evaluate::{self as scores, TruthOptions};
use mithras::demo::{self, Container, Layout};
use mitosis::Microns;
use mitosis::matching::Rule;
use outcome::{Counts, CoxPlan, CutPoints, Roles, StudyPlan, Table};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// A result as JSON.
pub fn json(value: &impl Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|e| PyValueError::new_err(e.to_string()))
}

/// A table in a file, or as the CSV that Python made of its own.
#[derive(FromPyObject)]
pub enum Source {
    #[pyo3(transparent)]
    Memory(Vec<u8>),
    #[pyo3(transparent)]
    File(PathBuf),
}

impl Source {
    fn path(&self) -> &Path {
        match self {
            Self::Memory(_) => Path::new("table in memory"),
            Self::File(path) => path,
        }
    }

    fn table(&self, missing: &[String]) -> PyResult<Table> {
        match self {
            Self::Memory(bytes) => {
                Table::parse(self.path(), bytes).map(|table| table.with_missing(missing))
            }
            Self::File(path) => Table::read(path, missing),
        }
        .map_err(with_path::<SurvivalError, _>(self.path()))
    }
}

/// How detections and truth are compared.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Comparison {
    radius_um: f64,
    rule: String,
    label_column: Option<String>,
    figures: Vec<String>,
    only: Vec<String>,
}

/// Detections below a folder against true figures.
#[pyfunction]
pub fn evaluate(
    py: Python<'_>,
    predictions: PathBuf,
    truth: PathBuf,
    how: Comparison,
) -> PyResult<String> {
    let Comparison { radius_um, rule, label_column, figures, only } = how;
    let rules = match rule.as_str() {
        "both" => Rule::ALL.to_vec(),
        one => vec![one.parse::<Rule>().map_err(|e| PyValueError::new_err(e.to_string()))?],
    };
    let options = TruthOptions { column: label_column, figures, only };
    let work = || {
        let truth = scores::read_truth(&truth, &options)?;
        scores::evaluate(&predictions, &truth, Microns(radius_um), &rules)
    };
    json(&py.detach(work).map_err(with_path::<EvaluationError, _>(&predictions))?)
}

/// Columns and their parts.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct CoxColumns {
    time: String,
    event: String,
    covariates: Vec<String>,
    event_value: Option<String>,
    categorical: Vec<String>,
    strata: Vec<String>,
    cluster: Option<String>,
    patient: Option<String>,
    patient_rule: String,
    weights: Option<String>,
    ties: String,
    level: f64,
    baseline: bool,
    missing: Vec<String>,
}

/// Cox's model of a table.
#[pyfunction]
pub fn cox(py: Python<'_>, table: Source, columns: CoxColumns) -> PyResult<String> {
    let c = columns;
    let patient_rule = c.patient_rule.parse().map_err(PyValueError::new_err::<String>)?;
    let roles = Roles {
        time: c.time,
        event: c.event,
        event_value: c.event_value,
        covariates: c.covariates,
        categorical: c.categorical,
        groups: Vec::new(),
        strata: c.strata,
        cluster: c.cluster,
        patient: c.patient,
        patient_rule,
        weights: c.weights,
    };
    let wrong = |e: <outcome::Ties as std::str::FromStr>::Err| PyValueError::new_err(e.to_string());
    let ties = c.ties.parse().map_err(wrong)?;
    let plan = CoxPlan { roles, ties, level: c.level, baseline: c.baseline, ..CoxPlan::default() };
    let path = table.path().to_owned();
    let model = py.detach(|| {
        let table = table.table(&c.missing)?;
        outcome::cox(&table, &plan).map_err(with_path::<SurvivalError, _>(&path))
    })?;
    json(&model)
}

/// The settings of a study.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct StudyColumns {
    join: (String, String),
    time: String,
    event: String,
    event_value: Option<String>,
    covariates: Vec<String>,
    categorical: Vec<String>,
    boxes: Vec<String>,
    patient: Option<String>,
    train: Option<String>,
    cut: Vec<String>,
    name: String,
    replicates: usize,
    seed: u64,
    horizon: Option<f64>,
    time_unit: String,
    time_scale: f64,
    missing: Vec<String>,
}

/// The whole analysis of counts and a clinical table, with a report where a folder is given.
#[pyfunction]
pub fn study(
    py: Python<'_>,
    counts: Source,
    clinical: Source,
    columns: StudyColumns,
    out: Option<PathBuf>,
) -> PyResult<String> {
    let c = columns;
    let done = py.detach(|| {
        let plan = StudyPlan {
            methods: vec![Counts::new(&c.name, counts.table(&[])?)],
            join: c.join,
            time: c.time,
            event: c.event,
            event_value: c.event_value,
            covariates: c.covariates,
            categorical: c.categorical,
            boxes: c.boxes,
            patient: c.patient,
            cut: CutPoints::from_options(c.train.as_deref(), &c.cut)
                .map_err(plain::<SurvivalError, _>)?,
            replicates: c.replicates,
            seed: c.seed,
            horizon: c.horizon,
            time_unit: c.time_unit,
            time_scale: c.time_scale,
            ..StudyPlan::default()
        };
        let table = clinical.table(&c.missing)?;
        let fail = |e: &dyn std::fmt::Display| with_path::<SurvivalError, _>(clinical.path())(e);
        let study = outcome::study(&table, &plan).map_err(|e| fail(&e))?;
        if let Some(out) = &out {
            std::fs::create_dir_all(out).map_err(with_path::<SurvivalError, _>(out))?;
            outcome::write_report(out, &plan, &study).map_err(|e| fail(&e))?;
        }
        Ok::<_, PyErr>(study)
    })?;
    json(&done)
}

/// Draws a slide and its `truth.csv`, in the same folder.
#[pyfunction]
pub fn draw(
    py: Python<'_>,
    path: PathBuf,
    size: (u32, u32),
    figures: usize,
    seed: u64,
) -> PyResult<()> {
    py.detach(|| {
        let spec = demo::Spec::new(size.0, size.1, seed, figures);
        let layout = spec.and_then(Layout::new).map_err(with_path::<Error, _>(&path))?;
        demo::write(&layout, &path, Container::Auto, &mut mithras::progress::Silent)
            .map_err(with_path::<Error, _>(&path))?;
        let truth = path.with_file_name("truth.csv");
        let name = mithras::input::stem(&path);
        demo::write_truth(&layout, &name, &truth).map_err(with_path::<Error, _>(&truth))
    })
}
