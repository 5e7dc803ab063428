//! The networks of a package, ready to run.

use super::options::EngineReport;
use mitosis::{Classifier, Encoder, Segmenter};
use std::fmt;

/// The networks of a package, ready to run, and what runs them.
pub struct Models {
    /// First stage, where the package has one.
    pub segmenter: Option<Box<dyn Segmenter>>,
    /// Second stage, where the package has one.
    pub classifier: Option<Box<dyn Classifier>>,
    /// The encoder, where the package is one.
    pub encoder: Option<Box<dyn Encoder>>,
    /// What runs.
    pub report: EngineReport,
}

impl fmt::Debug for Models {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Models")
            .field("segmenter", &self.segmenter.is_some())
            .field("classifier", &self.classifier.is_some())
            .field("encoder", &self.encoder.is_some())
            .field("report", &self.report)
            .finish()
    }
}
