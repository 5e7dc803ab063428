//! Losses, always in f32.

pub mod classify;
pub mod mim;
pub mod objective;
pub mod scl;
pub mod segment;

pub use classify::{CrossEntropy, cross_entropy};
pub use mim::mim;
pub use objective::{Objective, Term};
pub use scl::{Scl, scl, scl_image, scl_token};
pub use segment::{SegmentLoss, SegmentTerms};
