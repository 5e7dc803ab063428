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
#[expect(clippy::large_enum_variant, reason = "parsed once per process")]
enum Command {
    Audit(command::audit::Args),
    Corpus(command::corpus::Args),
    Demo(command::demo::Args),
    Detect(command::detect::Args),
    Evaluate(command::evaluate::Args),
    Doctor(command::doctor::Args),
    Slide(command::slide::Args),
    Survival(command::survival::Args),
    Train(command::train::Args),
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
        Command::Audit(args) => command::audit::run(args),
        Command::Corpus(args) => command::corpus::run(args),
        Command::Demo(args) => command::demo::run(args),
        Command::Detect(args) => command::detect::run(args),
        Command::Evaluate(args) => command::evaluate::run(args),
        Command::Doctor(args) => command::doctor::run(args),
        Command::Slide(args) => command::slide::run(args),
        Command::Survival(args) => command::survival::run(args),
        Command::Train(args) => command::train::run(args),
    }
}
