//! `mithras embed`: features of crops or slide tiles. Without the cargo feature `train` the verb says
//! how to get that build.

#[cfg(feature = "train")]
mod work;

#[cfg(feature = "train")]
pub use work::{Args, run};

/// Features of crops or slide tiles (no libtorch in this build; says how to get it)
#[cfg(not(feature = "train"))]
#[derive(clap::Args, Debug)]
pub struct Args {
    /// What would be embedded
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    _rest: Vec<String>,
}

/// Says how to get the training build.
#[cfg(not(feature = "train"))]
pub fn run(_: Args) -> anyhow::Result<std::process::ExitCode> {
    Err(super::train::missing("embed"))
}
