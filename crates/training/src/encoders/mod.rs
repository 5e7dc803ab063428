//! Packages of encoders and classifiers from files of weights.

pub mod headed;
pub mod weights;
