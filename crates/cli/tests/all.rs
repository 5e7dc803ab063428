//! The program as its users meet it.
//!
//! One binary for all files here: linking each by itself takes minutes.

#![allow(
    clippy::disallowed_types,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "helpers print why a test skips and read tables back"
)]

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
mod remedies_alone;
mod remedies_built;
mod remedies_colon;
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
/// training, and starts without libtorch, which takes 0.3 s.
fn program() -> &'static str {
    static NAMED: LazyLock<Option<String>> =
        LazyLock::new(|| std::env::var("MITHRAS_TEST_PROGRAM").ok());
    NAMED.as_deref().unwrap_or(env!("CARGO_BIN_EXE_mithras"))
}

/// The program that trains, too. scripts/test.sh names in `MITHRAS_TEST_TRAINS` a copy of it, because the wheel is made
/// meanwhile, whose program takes its place for a while.
fn training_program() -> &'static str {
    static NAMED: LazyLock<Option<String>> =
        LazyLock::new(|| std::env::var("MITHRAS_TEST_TRAINS").ok());
    NAMED.as_deref().unwrap_or(env!("CARGO_BIN_EXE_mithras"))
}

/// Each test is a process of its own, and one that loads libtorch takes 0.3 s longer. A path such as
/// `std::net::TcpStream` inside a function is enough to link it: the compiler looks whether `net` alone would do, and
/// finds our crate.
#[cfg(target_os = "linux")]
#[test]
fn these_tests_start_without_libtorch() {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    assert!(!maps.contains("libtorch"), "import `std::net::...` instead of writing the path out");
}
