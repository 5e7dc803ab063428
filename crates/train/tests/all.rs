//! Training loops and protocols.
//!
//! One binary for all files here: linking each by itself takes minutes.

#![allow(clippy::print_stdout, reason = "processes of a test print what they end with")]

mod common;
mod fit;
mod frozen;
mod loops;
mod one_input;
mod pretrain_ranks;
mod protocol;
mod ranks;
mod same_weights;
mod start;
