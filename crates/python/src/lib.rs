//! Python's face of the libraries: the extension module `mithras._mithras`.
//!
//! A function here turns arguments into a library's types, lets other Python threads run while the
//! library works, and hands the result over: pixels and columns as numpy arrays that take over the
//! library's own memory, everything else as JSON, which is what the binary prints with `--json`.
//! What only arranges values for readers of Python is Python (`mithras/`).

#![forbid(unsafe_code)]

mod corpora;
mod detection;
mod error;
mod image;
mod networks;
mod slides;
mod tables;
mod work;

use pyo3::prelude::*;

/// Compiled part of the package `mithras`, which is the one to import.
#[pymodule]
mod _mithras {
    use super::{Bound, PyModule, PyResult};
    use pyo3::prelude::{PyModuleMethods, pyfunction};

    #[pymodule_export]
    use super::corpora::Corpus;
    #[pymodule_export]
    use super::detection::{detect, detect_into, read_detections};
    #[pymodule_export]
    use super::error::{
        CorpusError, DetectionError, Error, EvaluationError, ModelError, SlideError, SurvivalError,
    };
    #[pymodule_export]
    use super::networks::{Classifier, Encoder};
    #[pymodule_export]
    use super::slides::Slide;
    #[pymodule_export]
    use super::tables::{cox, draw, evaluate, study};

    /// Sets the folder with the weights of the bundled packages.
    #[pyfunction]
    fn set_weights_folder(folder: std::path::PathBuf) {
        infer::package::set_weights_folder(folder);
    }

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
