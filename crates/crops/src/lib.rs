//! Crops on disk: schema, shards, checked reading, audit packages, view pairs.
//!
//! | module | does |
//! |---|---|
//! | [`schema`], [`manifest`] | one crop and one corpus on disk (`docs/corpus.md`) |
//! | [`writer`], [`reader`], [`shard`] | append-safe writing, checked and shuffled reading |
//! | [`slide_name`] | the one slide that names with and without a suffix mean |
//! | [`encoding`] | how a crop's pixels are stored |
//! | [`transform`], [`inspect`], [`contradiction`] | merging and label interchange, figures, repeated images |
//! | [`audit`] | blinded samples, packages, verdicts |
//! | [`pairs`] | view pairs for pretraining |

pub mod audit;
pub mod contradiction;
pub mod encoding;
pub mod error;
pub mod inspect;
pub mod manifest;
pub mod pairs;
pub mod reader;
pub mod schema;
pub mod shard;
pub mod slide_name;
pub mod transform;
pub mod writer;

pub use encoding::{EncodeError, Encoding};
pub use error::CorpusError;
pub use manifest::{Counts, Header, Manifest};
pub use reader::{Corpus, Stream, StreamOptions};
pub use schema::{Crop, CropBox, CropMeta, Label, SCHEMA_VERSION, Split};
pub use shard::Columns;
pub use writer::{CorpusWriter, Layout};
