//! Packages and engines.
//!
//! One binary for all files here: linking each by itself takes minutes.

#![expect(clippy::print_stderr, reason = "helpers print why a test skips")]

mod boxes;
mod card;
mod common;
mod engines;
mod ensemble;
mod preprocess;
