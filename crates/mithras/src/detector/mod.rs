//! One slide's way: open, find tissue, plan windows, segment, classify, accept, count.

mod builder;
mod card;
mod config;
mod error;
mod opener;
mod options;
mod run;

pub use builder::Builder;
pub use config::Config;
pub(crate) use config::{ENGINE_SETTING, settings};
pub use error::{DetectorError, RunError};
pub use opener::Opener;
pub use options::{Stages, Thresholds};
pub use run::{Detector, Examined, Networks, Subject};
