//! `mithras train pretrain`.

use super::machine::Machine;
use anyhow::Result;
use std::path::PathBuf;
use train::preset::Preset as _;
use train::pretrain::{self, PretrainPreset};
use train::run::RunOptions;

/// Pretrain an encoder by masked reconstruction and contrast, or by a baseline (docs/pretraining.md)
///
/// Several processes: start one per GPU with torchrun-style variables (RANK, WORLD_SIZE, LOCAL_RANK,
/// MASTER_ADDR, MASTER_PORT) or by srun.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The experiment (TOML); its first line is the command
    #[arg(long, value_name = "FILE")]
    preset: PathBuf,
    /// Corpus folder; its training crops are used
    #[arg(long, value_name = "DIR")]
    corpus: PathBuf,
    /// Run directory
    #[arg(long, value_name = "RUN")]
    out: PathBuf,
    /// Continue a run that was killed
    #[arg(long)]
    resume: bool,
    /// Change a key of the preset, e.g. train.epochs=100
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    #[command(flatten)]
    machine: Machine,
    /// Threads of the loader; 0 = all cores
    #[arg(long, default_value_t = 0)]
    workers: usize,
}

pub fn run(a: &Args) -> Result<()> {
    let device = a.machine.set_up();
    let preset = PretrainPreset::load(&a.preset, &a.set)?;
    let options = RunOptions {
        out: a.out.clone(),
        resume: a.resume,
        device,
        init: None,
        allow_partial: false,
        stop_after: 0,
        reporter: a.machine.reporter(),
    };
    pretrain::run(&preset, &a.corpus, a.workers, &options)?;
    a.machine.print(&format!("the encoder: {}", a.out.join(pretrain::ENCODER).display()));
    Ok(())
}
