//! Crop corpora: manifests, shards, importers, folds, augmentation.
//!
//! | module | does |
//! |---|---|
//! | [`schema`], [`manifest`] | one crop and one corpus on disk (`docs/corpus.md`) |
//! | [`import`] | annotations of other tools |
//! | [`cut`] | crops from annotations and images |
//! | [`overlap`], [`transform`], [`inspect`], [`contradiction`] | overlap, merging and label interchange, figures, repeated images |
//! | [`regions`] | images and slides with exhaustive labels |
//! | [`folds`] | the one manifest of folds, for both kinds |
//! | [`export`], [`yolo`], [`sheets`] | a regions dataset in other forms |
//! | [`task`] | labelled crops of a classification task, training and test as two types, folds |
//! | [`preset`] | what every preset file has in common |
//! | [`ahead`] | a loop whose next steps are drawn while this one works |
//! | [`audit`] | blinded samples, packages, verdicts |
//! | [`augment`], [`pairs`], [`labelled`] | augmentation, view pairs for pretraining, a corpus of the figures at hand |
//! | [`writer`], [`reader`], [`shard`] | append-safe writing, checked and shuffled reading |
//! | [`mod@file`] | files that are there whole or not at all, folders with one writer |

pub mod ahead;
pub mod audit;
pub mod augment;
pub mod contradiction;
pub mod crops;
pub mod cut;
pub mod error;
pub mod export;
pub mod file;
pub mod fold;
pub mod folds;
mod found;
pub mod import;
pub mod inspect;
pub mod labelled;
pub mod manifest;
pub mod overlap;
pub mod pairs;
pub mod preset;
pub mod reader;
pub mod regions;
pub mod schema;
pub mod shard;
pub mod sheets;
pub mod shortcuts;
pub mod task;
pub mod transform;
pub mod writer;
pub mod yolo;

pub use error::{CorpusError, FileError};
pub use manifest::{Counts, Header, Manifest};
pub use pixels::resize as resample;
pub use reader::{Corpus, Stream, StreamOptions};
pub use schema::{Crop, CropBox, CropMeta, Label, SCHEMA_VERSION, Split};
pub use shard::Columns;
pub use writer::{CorpusWriter, Layout};
