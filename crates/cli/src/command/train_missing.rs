//! `mithras train` in a build without libtorch: explains how to get the training build.

use anyhow::Result;

/// Train models (this build has no libtorch; the verb explains how to get the training build)
#[derive(clap::Args, Debug)]
pub struct Args {
    /// What would be trained
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    _rest: Vec<String>,
}

/// Explains how to get the training build.
pub fn run(_: Args) -> Result<()> {
    Err(missing("train"))
}

/// Why a verb of the training build cannot `act` here, and how to get that build.
pub fn missing(act: &str) -> anyhow::Error {
    anyhow::anyhow!(
        "this build has no libtorch, so it cannot {act}. The training build:\n  \
         pip install torch==2.11.0\n  \
         LIBTORCH_USE_PYTORCH=1 cargo install --path crates/cli --features train\n\
         It serves CPU and GPU and does everything that this build does."
    )
}
