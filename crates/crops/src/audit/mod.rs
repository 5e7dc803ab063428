//! Blinded review: seeded stratified samples, packages without labels, verdict logs.
//!
//! A package is a folder with pictures and `audit.json`, safe to hand to a reviewer. The pipeline's
//! label of each crop is in `key.json` next to the package, never inside it.

mod package;
mod review;
mod sample;
mod tally;

pub use package::{Drawn, Item, Key, KeyItem, Package, PackageWriter, Pools, Question, Stratum};
pub use review::{BoxSize, Entry, ReviewLog, Verdict};
pub use sample::{CountsError, Quota, SampleOptions, StratumBy, counts, sample, sample_wider};
pub use tally::{ReviewCounts, Row, tally};
