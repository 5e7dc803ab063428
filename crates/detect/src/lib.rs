//! Two-stage detection: segment, stitch, extract, classify, accept.

pub mod candidates;

pub use candidates::{CandidateRule, RawCandidate, extract};
