//! The program as its users meet it.
//!
//! One binary for all files here: linking each by itself takes minutes.

mod audit;
mod challenge;
mod classify;
mod cli;
#[path = "../../mithras/tests/common/mod.rs"]
mod common;
mod corpus_build;
mod corpus_cli;
mod detectors;
mod doctor;
mod embed_cli;
#[cfg(feature = "train")]
mod encoder_weights;
mod experiment;
mod names;
mod nextflow;
mod precision;
mod pretrain_cli;
mod privacy;
mod release;
mod remedies;
mod remote;
mod robustness;
mod scale;
mod slurm;
mod special;
mod survival;
mod survival_tables;
mod tables;
mod train_protocol;
mod upgrading;
mod view;
