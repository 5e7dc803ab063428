//! One module per verb.

pub mod audit;
pub mod bench;
pub mod classify;
pub mod corpus;
pub mod demo;
pub mod detect;
pub mod doctor;
pub mod embed;
mod engine;
pub mod evaluate;
pub mod evaluate_classification;
mod limits;
pub mod robustness;
pub mod slide;
pub mod survival;
#[cfg(feature = "train")]
pub mod train;
#[cfg(not(feature = "train"))]
#[path = "train_missing.rs"]
pub mod train;
pub mod view;
