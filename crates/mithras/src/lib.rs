//! Mitotic-figure analysis of H&E slides as a library: drawn slides, runs, exports, reports, evaluation.
//!
//! | module | what |
//! |---|---|
//! | [`demo`] | drawn slides with known figures |
//! | [`job`] | inputs, preflight, one slide after the other, resume |
//! | [`evaluate`] | detections and classes against ground truth |
//! | [`export`] | files per slide, one table [`export::EXPORTS`] |
//! | [`robustness`] | detections under changes that must not matter, and the operating points |
//! | [`subtypes`] | subtypes of accepted figures |
//! | [`progress`] | who is told how far a piece of work is |
//! | `train` | training a detector on a regions dataset (cargo feature `train`) |
//! | [`report`] | `counts.csv`, `run.json`, `summary.html` |

pub mod demo;
pub mod evaluate;
pub mod export;
pub mod job;
pub mod progress;
pub mod report;
pub mod robustness;
pub mod subtypes;
#[cfg(feature = "train")]
pub mod train;

pub use artifact::file;
