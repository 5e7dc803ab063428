//! Packages and engines.
//!
//! One binary for all files here: linking each by itself takes minutes.

mod boxes;
mod card;
mod common;
mod engines;
mod ensemble;
mod preprocess;
