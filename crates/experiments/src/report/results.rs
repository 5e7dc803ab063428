//! What is known of an experiment.

use super::compare::Comparison;

use super::steps::StepLine;
use super::table::Table;
use crate::run::RunNote;
use serde::Serialize;

/// What is known of one experiment of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Results {
    /// `mithras.experiment-results/1`.
    pub schema: &'static str,
    /// Its id.
    pub experiment: String,
    /// The machine and the settings.
    pub run: RunNote,
    /// Steps, with what came of them.
    pub steps: Vec<StepLine>,
    /// In the order of the experiment.
    pub tables: Vec<Table>,
    /// Paired tests.
    pub comparisons: Vec<Comparison>,
}
