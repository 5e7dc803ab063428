//! Detection end to end.
//!
//! One binary for all files here: linking each by itself takes minutes.

mod common;
mod failures;
mod invariance;
mod kept;
mod real_slide;
