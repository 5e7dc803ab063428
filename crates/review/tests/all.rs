//! What other programs read and write back, and what is counted again.

#![expect(clippy::print_stderr, reason = "helpers print why a test skips")]

mod dicom;
mod recount;
