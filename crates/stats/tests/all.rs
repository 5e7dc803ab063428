//! Figures against their references.
//!
//! One binary for all files here: linking each by itself takes minutes.

mod common;
mod metrics;
mod properties;
mod survival;
