//! Work on many slides that can be killed and taken up again: each slide in a folder of its own, with
//! its state; one that fails stops no other; several workers, in one process or in many.
//!
//! Detection ([`crate::job`]) and corpus construction (the crate `construct`) are such work.

mod inputs;
mod list;
mod pace;
pub mod results;
mod run;
mod series;
mod shard;
pub mod state;

pub use inputs::{InputError, Inputs, find, named_as_slide, read_mpp_table};
pub use list::read_list;
pub use run::{Checked, Ended, Existing, Failure, Key, Outcome, Task, run};
pub use shard::{Shard, ShardError};
