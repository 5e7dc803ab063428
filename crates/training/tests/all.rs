//! Trained, packaged, run: whole chains on drawn data.
//!
//! One binary for all files here: linking each by itself takes minutes.

#![allow(clippy::print_stderr, reason = "helpers print why a test skips")]

#[path = "../../mithras/tests/damage.rs"]
mod damage;
mod detector_chain;
mod detector_formats;
mod drawn;
mod encoder_parts;
mod families;
mod fast;
mod fuzz;
mod headed;
mod protocol;
