//! Jobs and the rules of the workspace.
//!
//! One binary for all files here: linking each by itself takes minutes.

#![allow(clippy::disallowed_types, reason = "tests read tables back")]

mod architecture;
mod circles;
mod common;
mod damage;
mod examples;
mod exports;
mod flaws;
mod fuzz;
mod job;
mod paper_map;
mod regions;
mod resume;
mod sampling;
mod scale;
mod supply_chain;
mod unsafe_list;
