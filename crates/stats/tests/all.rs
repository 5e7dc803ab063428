//! Figures against their references.
//!
//! One binary for all files here: linking each by itself takes minutes.

#![expect(clippy::disallowed_types, reason = "tests read tables of references")]

mod common;
mod metrics;
mod properties;
mod survival;
