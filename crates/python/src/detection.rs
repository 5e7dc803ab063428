//! Detection: in memory, or as the resumable run that the binary does.

use crate::error::{DetectionError, ModelError, about, plain, with_path};
use crate::slides::mpp;
use crate::work::interruptible;
use ::detect::{CancelToken, Control};
use infer::{EngineChoice, EngineOptions, ModelPackage, Precision, Provider};
use mithras::batch::{self, Existing, Input, OutFolder};
use mithras::export::read_detections as read_table;
use mithras::progress::Listener;
use mithras::record::{COLUMNS, DetectionRow};
use mithras::run::{RunPlan, run};
use mithras::{Builder, Detector, Stages, Thresholds};
use mitosis::Mpp;
use numpy::{Element, IntoPyArray};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The engine settings that Python passes.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Engine {
    engine: String,
    provider: String,
    precision: String,
    threads: usize,
}

impl Engine {
    pub fn options(&self) -> PyResult<EngineOptions> {
        fn word<T: std::str::FromStr<Err: std::fmt::Display>>(text: &str) -> PyResult<T> {
            text.parse().map_err(|e: T::Err| PyValueError::new_err(e.to_string()))
        }
        Ok(EngineOptions {
            engine: word::<EngineChoice>(&self.engine)?,
            provider: word::<Provider>(&self.provider)?,
            precision: word::<Precision>(&self.precision)?,
            threads: self.threads,
            ..EngineOptions::default()
        })
    }
}

/// Which slides, with which detector.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Plan {
    inputs: Vec<PathBuf>,
    model: Option<PathBuf>,
    engine: Engine,
    mpp: Option<f64>,
    force_mpp: bool,
    any_mpp: bool,
    operating_point: Option<String>,
    stages: u8,
    subtypes: bool,
    openslide: Option<PathBuf>,
}

impl Plan {
    fn slides(&self, mpp: Option<Mpp>) -> PyResult<Vec<Input>> {
        let found = batch::find(&self.inputs, mpp, &BTreeMap::new());
        Ok(found.map_err(plain::<DetectionError, _>)?.slides)
    }

    fn builder(&self) -> PyResult<Builder> {
        let stages = match self.stages {
            1 => Stages::One,
            2 => Stages::Two,
            n => return Err(PyValueError::new_err(format!("stages is 1 or 2, and not {n}"))),
        };
        let point = self.operating_point.as_deref().map(str::parse::<Thresholds>).transpose();
        let point = point.map_err(|e| PyValueError::new_err(e.to_string()))?;
        Ok(Builder::default()
            .run_with(self.engine.options()?)
            .stages(stages)
            .thresholds(point.unwrap_or_default())
            .force_mpp(self.force_mpp)
            .any_mpp(self.any_mpp)
            .subtypes(self.subtypes)
            .openslide(self.openslide.clone()))
    }

    fn ready(&self, py: Python<'_>) -> PyResult<(Vec<Input>, Detector)> {
        let (mpp, builder) = (mpp(self.mpp)?, self.builder()?);
        let slides = py.detach(|| self.slides(mpp))?;
        let model = self.model.as_deref();
        let open = || builder.open(&ModelPackage::find(model)?);
        let detector = py.detach(open);
        let fail = |e: mithras::DetectorError| about::<ModelError>(model, &e);
        Ok((slides, detector.map_err(fail)?))
    }
}

/// Rows of several slides.
#[derive(Default)]
struct Rows {
    slides: Vec<String>,
    rows: Vec<DetectionRow>,
}

impl Rows {
    fn add(&mut self, slide: &str, rows: Vec<DetectionRow>) {
        self.slides.extend(std::iter::repeat_n(slide.to_owned(), rows.len()));
        self.rows.extend(rows);
    }

    /// Columns by name, in the order of `detections.csv`, with the slide in front; numbers that are
    /// not there are NaN.
    fn columns<'py>(&self, py: Python<'py>, subtypes: bool) -> PyResult<Bound<'py, PyDict>> {
        fn put<T: Element>(
            to: &Bound<'_, PyDict>,
            name: &str,
            values: impl Iterator<Item = T>,
        ) -> PyResult<()> {
            to.set_item(name, values.collect::<Vec<T>>().into_pyarray(to.py()))
        }
        let (to, rows) = (PyDict::new(py), || self.rows.iter());
        to.set_item("slide", PyList::new(py, &self.slides)?)?;
        put(&to, "x_px", rows().map(|r| r.x_px))?;
        put(&to, "y_px", rows().map(|r| r.y_px))?;
        put(&to, "x_um", rows().map(|r| r.x_um))?;
        put(&to, "y_um", rows().map(|r| r.y_um))?;
        put(&to, "s_seg", rows().map(|r| r.s_seg))?;
        put(&to, "s_cls", rows().map(|r| r.s_cls.unwrap_or(f32::NAN)))?;
        put(&to, "accepted", rows().map(|r| r.accepted))?;
        put(&to, "outside_tissue", rows().map(|r| r.outside_tissue))?;
        let flaws = rows().map(|r| r.flaw.map_or("", |f| f.name()));
        to.set_item("flaw", PyList::new(py, flaws.collect::<Vec<_>>())?)?;
        let subtypes = subtypes || rows().any(|r| r.subtypes.is_some());
        for (i, name) in COLUMNS.into_iter().enumerate().filter(|_| subtypes) {
            put(&to, name, rows().map(|r| r.subtypes.map_or(f32::NAN, |s| s.0[i])))?;
        }
        Ok(to)
    }
}

/// Keeps what a reader should know.
#[derive(Default)]
struct Notes(Vec<String>);

impl Listener for Notes {
    fn begin(&mut self, _: &str, _: &'static str) {}
    fn update(&mut self, _: u64, _: u64) {}
    fn finish(&mut self) {}
    fn report(&mut self, _: &str) {}
    fn note(&mut self, text: &str) {
        self.0.push(text.to_owned());
    }
}

/// Slides without a result: path and reason.
type Failed = Vec<(PathBuf, String)>;
/// Columns, failed slides, what should be known.
type DetectResult<'py> = (Bound<'py, PyDict>, Failed, Vec<String>);

/// Detects without writing a file.
#[pyfunction]
pub fn detect(py: Python<'_>, plan: Plan) -> PyResult<DetectResult<'_>> {
    let (slides, mut detector) = plan.ready(py)?;
    let cancel = CancelToken::new();
    let (mut rows, mut failed, mut notes) = (Rows::default(), Failed::new(), Vec::new());
    interruptible(py, &cancel, || {
        for input in slides {
            if cancel.is_cancelled() {
                break;
            }
            let control = Control::default().until(&cancel);
            let done = detector
                .opener
                .open(&input)
                .map_err(mithras::RunError::from)
                .and_then(|slide| detector.examine(&slide, &input.name, "", "", control));
            match done {
                Ok(done) => {
                    let note = done.record.condition.resolution_note;
                    notes.extend(note.map(|n| format!("{}: {n}", input.path.display())));
                    rows.add(&input.name, done.record.rows);
                }
                Err(e) => failed.push((input.path, e.to_string())),
            }
        }
    })?;
    Ok((rows.columns(py, plan.subtypes)?, failed, notes))
}

/// Detects as the binary does, into a folder that the binary can resume.
#[pyfunction]
pub fn detect_into(
    py: Python<'_>,
    plan: Plan,
    out: PathBuf,
    resume: bool,
    overwrite: bool,
) -> PyResult<DetectResult<'_>> {
    let (slides, detector) = plan.ready(py)?;
    let (cancel, mut notes) = (CancelToken::new(), Notes::default());
    let (detectors, command) = (&mut [detector], ["mithras.detect (Python)".to_owned()]);
    let existing = Existing::from_flags(resume, overwrite);
    let out_folder = OutFolder { path: &out, existing };
    let whole = RunPlan { slides, detectors, out: out_folder, command: &command };
    let finished = interruptible(py, &cancel, || run(whole, &mut notes, &cancel))?
        .map_err(with_path::<DetectionError, _>(&out))?;
    let (mut rows, mut failed) = (Rows::default(), Failed::new());
    for outcome in finished.slides {
        if outcome.is_done() {
            let file = outcome.folder.join("detections.csv");
            rows.add(
                &outcome.input.name,
                read_table(&file).map_err(with_path::<DetectionError, _>(&file))?,
            );
        } else {
            let reason = outcome.failure.map_or_else(String::new, |f| f.to_string());
            failed.push((outcome.input.path, outcome.state.reason.unwrap_or(reason)));
        }
    }
    Ok((rows.columns(py, plan.subtypes)?, failed, notes.0))
}

/// Reads a `detections.csv`.
#[pyfunction]
pub fn read_detections(
    py: Python<'_>,
    file: PathBuf,
    slide: String,
) -> PyResult<Bound<'_, PyDict>> {
    let mut rows = Rows::default();
    let read = py.detach(|| read_table(&file));
    rows.add(&slide, read.map_err(with_path::<DetectionError, _>(&file))?);
    rows.columns(py, false)
}
