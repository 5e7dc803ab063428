//! Mitotic-figure analysis of H&E slides as a library: drawn slides, runs, exports, reports, evaluation.
//!
//! | module | what |
//! |---|---|
//! | [`demo`] | drawn slides with known figures |
//! | [`job`] | inputs, preflight, one slide after the other, resume |
//! | [`privacy`] | what of a slide's properties may be shown |
//! | [`evaluate`] | detections against ground truth |
//! | [`export`] | files per slide, one table [`export::EXPORTS`] |
//! | [`subtypes`] | subtypes of accepted figures |
//! | [`report`] | `counts.csv`, `run.json`, `summary.html` |

#![forbid(unsafe_code)]

pub mod demo;
pub mod evaluate;
pub mod export;
pub mod file;
pub mod job;
pub mod privacy;
pub mod progress;
pub mod report;
pub mod subtypes;
