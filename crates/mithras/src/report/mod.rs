//! What is written over a whole run: `counts.csv`, `run.json`, `summary.html`. All three are made of the
//! slides' folders and of what each process wrote down before it began, so that they can be made at any
//! time, by whichever process ends last, and of several folders.

mod assign;
mod at_point;
mod cases;
mod display;
mod error;
mod gather;
mod record;
mod region_table;
mod reviewed;
mod run_file;
mod slide_folder;
mod slide_line;
mod summary;
mod table;
mod view;

pub use crate::batch::{Results, ResultsError, finished_results as results, is_bound};
pub use assign::{AssignError, assign};
pub use at_point::{AtPoint, PointError, at_point};
pub use cases::{
    CASE_COLUMNS, CaseCount, CaseLine, DENSITY_RULE, HOTSPOT_RULE, PlacedOn, Unfinished, case_name,
    cases, one_reviewer, written_columns,
};
pub use error::{ReportError, gathered_runs};
pub use gather::{check_alike, gather, write};
pub use record::{RunRecord, Workers, begin};
pub use reviewed::{PlacedCount, Reviewed};
pub use run_file::RunFile;
pub use slide_folder::counts;
pub use slide_line::SlideLine;
