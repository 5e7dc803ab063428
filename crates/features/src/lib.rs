//! Frozen features of crops and slide tiles.
//!
//! ```no_run
//! use features::{Frozen, Grid, Table, tiles};
//! use infer::EngineOptions;
//!
//! let mut encoder = Frozen::open("encoders/lunit".as_ref(), &EngineOptions::default())?;
//! let slide = slide::Slide::open("case.svs")?;
//! let grid = Grid::choose(&encoder, None, None)?;
//! let table: Table = tiles::embed(&mut encoder, &slide, grid, 32, &mut base::progress::Silent)?;
//! table.write("case.h5".as_ref())?;
//! # Ok::<(), features::FeatureError>(())
//! ```
//!
//! | module | what |
//! |---|---|
//! | [`package`] | encoders as packages: written, shown; [`Listing`] lists them |
//! | [`weights`] | encoders from files of weights |
//! | [`headed`], [`prompts`] | classifiers from files of weights, by a layer in the file or by texts |
//! | [`encoder`] | an encoder that is ready to run, on any engine |
//! | [`mod@classify`] | classes of crops, by classifier packages |
//! | [`crops`] | features of the crops of a dataset, of images |
//! | [`tiles`] | features of a slide's tissue |
//! | [`row`], [`table`], [`hdf5`] | what a vector is of; features on disk (`docs/artifacts.md`) |
//! | [`mod@files`] | images that folders hold |

#![forbid(unsafe_code)]

pub mod classify;
pub mod crops;
pub mod encoder;
mod error;
mod facts;
pub mod files;
pub mod hdf5;
pub mod headed;
mod listing;
pub mod package;
mod pipe;
pub mod prompts;
pub mod row;
pub mod table;
pub mod tiles;
pub mod weights;

pub use encoder::{Frozen, Grid};
pub use encoders::EncoderError;
pub use error::FeatureError;
pub use facts::{Facts, Known, Listed};
pub use listing::Listing;
pub use row::{About, Row, Tiles};
pub use table::{Form, Table, check_stored};
