//! What the `mithras` binary is made of: drawn slides, exports, reports and runs.

pub mod demo;
pub mod file;
pub mod progress;
