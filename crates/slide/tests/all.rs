//! Slides: readers, limits, tissue.
//!
//! One binary for all files here: linking each by itself takes minutes.

mod dicom;
mod layouts;
mod limits;
mod parity;
mod real;
mod remote;
mod tissue;
