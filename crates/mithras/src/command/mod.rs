//! One module per verb.

pub mod demo;
