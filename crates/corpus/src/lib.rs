//! Crop corpora: manifests, shards, importers, folds, augmentation.
//!
//! | module | does | requirement |
//! |---|---|---|
//! | [`schema`], [`manifest`] | one crop and one corpus on disk (`docs/corpus.md`) | C5 |
//! | [`writer`], [`reader`], [`shard`] | append-safe writing, checked and shuffled reading | C5 |

pub mod error;
pub mod manifest;
pub mod reader;
pub mod schema;
pub mod shard;
pub mod writer;

pub use error::CorpusError;
pub use manifest::{Counts, Header, Manifest};
pub use reader::{Corpus, Stream, StreamOptions};
pub use schema::{Crop, CropBox, CropMeta, Label, SCHEMA_VERSION, Split};
pub use shard::Columns;
pub use writer::{CorpusWriter, Layout};
