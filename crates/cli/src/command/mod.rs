//! One module per verb.

pub mod audit;
pub mod bench;
pub mod calibrate;
pub mod challenge;
pub mod classify;
mod columns;
pub mod corpus;
pub mod data;
pub mod demo;
pub mod detect;
pub mod detectors;
pub mod doctor;
pub mod embed;
pub mod encoders;
mod engine;
pub mod evaluate;
pub mod evaluate_classification;
pub mod experiment;
pub mod gather;
pub mod limits;
pub mod manual;
pub mod quality;
pub mod report;
pub mod robustness;
pub mod slide;
pub mod slurm;
pub mod start;
pub mod survival;
#[cfg(feature = "train")]
pub mod train;
#[cfg(not(feature = "train"))]
#[path = "train_missing.rs"]
pub mod train;
pub mod view;

/// The exit code when some slides failed and others did not.
const SOME_FAILED: u8 = 3;

/// The exit code of work on `all` pieces of which some failed.
fn exit(failed: usize, all: usize) -> std::process::ExitCode {
    match failed {
        0 => std::process::ExitCode::SUCCESS,
        n if n == all => std::process::ExitCode::FAILURE,
        _ => std::process::ExitCode::from(SOME_FAILED),
    }
}
