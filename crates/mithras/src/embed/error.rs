//! Why there are no features.

use corpus::CorpusError;
use slide::SlideError;
use std::path::PathBuf;

/// Why there are no features.
#[derive(Debug, thiserror::Error)]
pub enum EmbedError {
    /// The file is to be of no known form.
    #[error("{}: write to FILE.parquet or FILE.h5", .0.display())]
    Form(PathBuf),
    /// HDF5 holds a grid, which crops have not.
    #[error("{}: HDF5 is for slide tiles; crops go to FILE.parquet", .0.display())]
    Crops(PathBuf),
    /// The encoder does not open.
    #[error(transparent)]
    Encoder(#[from] train::TrainError),
    /// The crops cannot be read.
    #[error(transparent)]
    Corpus(#[from] CorpusError),
    /// The slide cannot be read.
    #[error(transparent)]
    Slide(#[from] SlideError),
    /// The table cannot be encoded.
    #[error("encoding the table: {0}")]
    Parquet(#[from] parquet::errors::ParquetError),
    /// The table cannot be encoded.
    #[error("encoding HDF5: {0}")]
    Hdf5(String),
    /// The file cannot be written.
    #[error(transparent)]
    Write(#[from] artifact::file::WriteError),
}
