//! Networks against their references.
//!
//! One binary for all files here: linking each by itself takes minutes.

#![allow(clippy::print_stderr, reason = "helpers print why a test skips")]

mod checkpoint;
mod common;
mod conv_encoders;
mod device;
mod encoder_rows;
mod foreign;
mod lora;
mod losses;
mod models;
mod onnx;
mod optim;
mod pretraining;
mod probes;
mod pth;
mod text;
mod vit;
mod vit_layouts;
