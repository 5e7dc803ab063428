//! Jobs, protocols and the rules of the workspace.
//!
//! One binary for all files here: linking each by itself takes minutes.

mod architecture;
mod circles;
mod common;
mod detector_chain;
mod detector_formats;
mod dicom;
#[cfg(feature = "train")]
mod drawn;
#[cfg(feature = "train")]
mod encoder_parts;
mod exports;
mod families;
#[cfg(feature = "train")]
mod fast;
mod flaws;
mod fuzz;
#[cfg(feature = "train")]
mod headed;
mod job;
mod paper_map;
mod protocol;
mod regions;
mod sampling;
mod scale;
mod supply_chain;
mod unsafe_list;
