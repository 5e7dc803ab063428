//! Losses, always in f32.

pub mod classify;
pub mod segment;

pub use classify::{CrossEntropy, cross_entropy};
pub use segment::{SegmentLoss, SegmentTerms};
