//! Work on many slides that can be killed and taken up again: each slide in a folder of its own, with
//! its state; one that fails stops no other; several workers, in one process or in many.
//!
//! Detection ([`detect()`], after a check of all slides by [`preflight`]), features of slides ([`crate::embed`]) and
//! corpus construction (the crate `construct`) are such work.

mod detection;
mod finished;
mod former;
mod inputs;
mod list;
mod preflight;
mod run;
mod series;
pub mod state;

pub use crate::input::Input;
pub use base::shard::{Shard, ShardError};
pub(crate) use detection::result_files;
pub use detection::{
    DetectionOutcome, DetectionState, SlideFailure, StageTime, Work, clear, detect,
};
pub(crate) use finished::counts;
pub use finished::{Results, ResultsError, is_bound, results as finished_results};
pub use inputs::{InputError, Inputs, find, find_files, named_as_slide, read_mpp_table};
pub(crate) use list::{RECORDS, lists, record_lists};
pub use list::{folders_to_begin, read_list};
pub use preflight::{StartError, preflight};
pub use run::{Checked, Ended, Existing, Failure, Key, OutFolder, Outcome, Task, run};
