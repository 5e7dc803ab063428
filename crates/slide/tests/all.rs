//! Slides: readers, limits, tissue.
//!
//! One binary for all files here: linking each by itself takes minutes.

#![expect(clippy::print_stderr, reason = "helpers print why a test skips")]

mod dicom;
mod layouts;
mod limits;
mod parity;
mod real;
mod remote;
mod tissue;
