//! The program as its users meet it.
//!
//! One binary for all files here: linking each by itself takes minutes.

use std::sync::LazyLock;

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
mod experiment;
mod joins;
mod names;
mod nextflow;
mod precision;
mod pretrain_cli;
mod privacy;
mod release;
mod remedies;
mod remedies_prose;
mod remote;
mod robustness;
mod scale;
mod slurm;
mod snakemake;
mod special;
mod survival;
mod survival_tables;
mod tables;
mod train_protocol;
mod upgrading;
mod view;

/// The program. scripts/test.sh names in `MITHRAS_TEST_PROGRAM` the one that most users have: it was built without
/// training, and starts without libtorch, which takes 0.2 s. Tests of training take `CARGO_BIN_EXE_mithras`.
fn program() -> &'static str {
    static NAMED: LazyLock<Option<String>> =
        LazyLock::new(|| std::env::var("MITHRAS_TEST_PROGRAM").ok());
    NAMED.as_deref().unwrap_or(env!("CARGO_BIN_EXE_mithras"))
}
