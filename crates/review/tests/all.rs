//! What other programs read and write back, and what is counted again.

mod dicom;
mod recount;
