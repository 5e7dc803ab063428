//! The paper as commands.
//!
//! | module | what |
//! |---|---|
//! | [`dataset`] | data sets by name: files, licence, expected counts, and what a folder contains of them |
//! | [`spec`] | an experiment as it is written down |
//! | [`graph`] | its steps, unfolded and in order |
//! | [`mod@run`] | runs them as processes of this program; what is done is not done again |
//! | [`report`] | tables next to the paper's, figures, paired tests |
//!
//! The form of the files and the flow are described in `docs/experiments.md`.
//!
//! ```
//! let set = experiments::dataset::find("MIDOG22")?;
//! assert_eq!(set.types().len(), 5);
//! let experiment = experiments::spec::find("pseudo-label-review")?;
//! let graph = experiments::graph::Graph::build(&[experiment], false)?;
//! assert_eq!(graph.steps()[0].name, "review/score");
//! # Ok::<(), experiments::ExperimentError>(())
//! ```

#![forbid(unsafe_code)]

pub mod dataset;
mod describe;
mod drawn;
mod embedded;
mod error;
mod front;
pub mod graph;
pub mod report;
pub mod run;
mod snakemake;
pub mod spec;
pub mod value;

pub use error::{ExperimentError, Result};
pub use front::{Chosen, Planned, PlannedStep, Rate, perform, plan};
pub use snakemake::{Workflow, workflow};

/// Checks every data set, or those named, below a data root, and lists the experiments that have their data.
///
/// # Errors
/// An unknown name, a folder that is not there.
pub fn check_data(root: &std::path::Path, only: &[String]) -> Result<dataset::Check> {
    if !root.is_dir() {
        return Err(ExperimentError::path(root, "is not a folder"));
    }
    let sets = match only {
        [] => dataset::all()?,
        names => names.iter().map(|n| dataset::find(n)).collect::<Result<_>>()?,
    };
    let sets: Vec<_> = sets.iter().map(|s| dataset::check(s, root)).collect();
    let complete = |name: &String| {
        sets.iter().find(|s| s.name == *name).is_some_and(|s| s.state == dataset::State::Complete)
    };
    let (mut can_run, mut cannot_run) = (vec![], vec![]);
    // With only some sets it is unknown what can run.
    if only.is_empty() {
        for experiment in spec::all()? {
            let lacking: Vec<String> =
                experiment.data_sets()?.into_iter().filter(|n| !complete(n)).collect();
            if lacking.is_empty() {
                can_run.push(experiment.id);
            } else {
                cannot_run.push(dataset::Lacking { experiment: experiment.id, data: lacking });
            }
        }
    }
    Ok(dataset::Check { root: root.to_owned(), sets, can_run, cannot_run })
}
