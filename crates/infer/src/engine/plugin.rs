//! An engine that the binary brings: this crate links no libtorch, the training build does.

use super::choice::Provider;
use super::error::EngineError;
use crate::session::{Network, Session};
use std::fmt;
use std::sync::Arc;

/// An engine from outside this crate.
pub trait Plugin: Send + Sync {
    /// Its word on the command line and in `run.json`.
    fn name(&self) -> &'static str;

    /// Its version.
    fn version(&self) -> String;

    /// Takes a device.
    ///
    /// # Errors
    /// [`EngineError`] when the provider cannot be had.
    fn start(&self, provider: Provider, threads: usize) -> Result<Started, EngineError>;
}

/// Makes a session of a network.
///
/// # Errors
/// The engine's own words.
pub type Load = Box<dyn Fn(&Network<'_>) -> Result<Box<dyn Session>, String>>;

/// An engine on its device.
pub struct Started {
    /// What it runs on: [`Provider::Cpu`] or [`Provider::Cuda`].
    pub provider: Provider,
    /// Makes a session of a network.
    pub load: Load,
}

/// A [`Plugin`] as an option; two are equal when their names are.
#[derive(Clone)]
pub struct Plug(pub Arc<dyn Plugin>);

impl fmt::Debug for Plug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name())
    }
}

impl PartialEq for Plug {
    fn eq(&self, other: &Self) -> bool {
        self.0.name() == other.0.name()
    }
}

impl Eq for Plug {}
