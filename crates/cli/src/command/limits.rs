//! `--limit` and `--memory`: what one slide may ask of this machine.

use anyhow::{Context, Result};
use slide::Limits;

/// The environment variable with limits for every command, e.g. `pixels=2e11,memory=4G`.
const VARIABLE: &str = "MITHRAS_LIMITS";

/// Takes the environment's limits for every slide that any verb opens.
pub fn from_environment() -> Result<()> {
    let mut limits = Limits::default();
    limits.set_all(&std::env::var(VARIABLE).unwrap_or_default()).context(VARIABLE)?;
    limits.for_all();
    Ok(())
}

/// Limits on the slides that are read.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct LimitArgs {
    /// Another limit on what a slide may ask for, e.g. pixels=2e11; repeat for several
    /// [env: MITHRAS_LIMITS, separated by commas]
    #[arg(long = "limit", value_name = "NAME=VALUE")]
    limits: Vec<String>,
    /// Memory for decoded pixels, e.g. 4G [default: half of what is free]
    #[arg(long, value_name = "BYTES")]
    memory: Option<String>,
}

impl LimitArgs {
    /// The defaults, changed by the flags.
    pub fn limits(&self) -> Result<Limits> {
        let mut limits = Limits::default();
        for setting in &self.limits {
            limits.set(setting).context("--limit")?;
        }
        if let Some(memory) = &self.memory {
            limits.set(&format!("memory={memory}")).context("--memory")?;
        }
        Ok(limits)
    }
}
