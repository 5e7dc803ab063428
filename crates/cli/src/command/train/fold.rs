//! One fold of a regions dataset, as flags.

use anyhow::Result;
use std::path::PathBuf;
use train::data::Source;

/// A dataset, its folds, and one of them.
#[derive(clap::Args, Debug)]
pub struct OneFold {
    /// Regions dataset
    #[arg(long, value_name = "DATASET")]
    data: PathBuf,
    /// Its folds, as `mithras corpus split` writes them
    #[arg(long, value_name = "FILE")]
    folds: PathBuf,
    /// The fold that the model left out, or none
    #[arg(long, value_name = "FOLD")]
    pub fold: String,
}

impl OneFold {
    /// Opens the dataset and its folds.
    pub fn source(&self) -> Result<Source> {
        Ok(Source::open(&self.data, &self.folds)?)
    }
}
