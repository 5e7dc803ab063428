//! Errors of the libraries as exceptions: one class per piece of work, the library's own words, and the
//! file that it was about.

use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use std::fmt::Display;
use std::path::Path;

create_exception!(mithras, Error, PyException, "What every error of mithras is.");
create_exception!(mithras, SlideError, Error, "A slide cannot be opened or read.");
create_exception!(mithras, ModelError, Error, "A model package or its engine cannot be used.");
create_exception!(mithras, DetectionError, Error, "Slides have no result; see `failed`.");
create_exception!(
    mithras,
    EvaluationError,
    Error,
    "Predictions cannot be compared with the truth."
);
create_exception!(mithras, SurvivalError, Error, "A table does not allow the analysis.");
create_exception!(mithras, CorpusError, Error, "A corpus cannot be opened or read.");

/// An exception of class `E` in the words of `reason`, about `path`: its attributes `path` and `reason`.
pub fn about<E: pyo3::PyTypeInfo>(path: Option<&Path>, reason: &dyn Display) -> PyErr {
    Python::attach(|py| {
        let reason = reason.to_string();
        let error = PyErr::from_type(py.get_type::<E>(), (reason.clone(),));
        let value = error.value(py);
        match value.setattr("path", path).and_then(|()| value.setattr("reason", reason)) {
            Ok(()) => error,
            Err(other) => other,
        }
    })
}

/// As [`about`], for `map_err`.
pub fn with_path<E: pyo3::PyTypeInfo, R: Display>(path: &Path) -> impl FnOnce(R) -> PyErr {
    move |reason| about::<E>(Some(path), &reason)
}

/// As [`with_path`], where no file is meant.
pub fn plain<E: pyo3::PyTypeInfo, R: Display>(reason: R) -> PyErr {
    about::<E>(None, &reason)
}
