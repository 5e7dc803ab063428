//! The `mithras` command line: main -> run -> one match.

mod command;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Mitotic-figure analysis of H&E slides: detection, counts, training, survival.
#[derive(Parser)]
#[command(name = "mithras", version, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

// One line per verb; each lives in `command/<verb>.rs` with its own `Args` and `run`.
#[derive(Subcommand)]
enum Command {
    Demo(command::demo::Args),
}

fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    match cli.command {
        Command::Demo(args) => command::demo::run(args),
    }
}
