//! Detection on a cluster that Slurm runs: an array job on the shards of a list, watched, with failed
//! shards begun once more, and gathered.

#![forbid(unsafe_code)]

mod error;
mod queue;
mod script;
mod shards;
mod watch;

pub use error::SlurmError;
pub use script::{Plan, write};
pub use watch::{Ended, run};
