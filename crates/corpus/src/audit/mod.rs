//! Blinded review: seeded stratified samples, packages without labels, verdict logs.
//!
//! A package is a folder with pictures and `audit.json`, safe to hand to a reviewer. What the
//! pipeline thought of each crop is in `key.json` beside the package, never inside it.

mod review;
mod sample;
mod tally;

pub use review::{BoxSize, Entry, ReviewLog, Verdict};
pub use sample::{
    CountsError, Item, Key, KeyItem, Package, Question, SampleOptions, Stratum, StratumBy, sample,
};
pub use tally::{Counts, Row, tally};
