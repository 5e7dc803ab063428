//! The `mithras` command line: main -> run -> one match.

#![forbid(unsafe_code)]

mod command;
mod examples;
mod hint;
mod interrupt;
mod progress;
mod show;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use mitosis::text::{plain_lines, said_once};
use std::process::{ExitCode, Termination};

/// Mitotic-figure analysis of H&E slides: detection, counts, training, survival.
#[derive(Parser)]
#[command(name = "mithras", version, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

// One line per verb; each lives in `command/<verb>.rs` with its own `Args` and `run`.
#[derive(Subcommand)]
#[allow(clippy::large_enum_variant, reason = "parsed once per process; builds differ in sizes")]
enum Command {
    Audit(command::audit::Args),
    Bench(command::bench::Args),
    Challenge(command::challenge::Args),
    Classify(command::classify::Args),
    Corpus(command::corpus::Args),
    Demo(command::demo::Args),
    Detect(command::detect::Args),
    Evaluate(command::evaluate::Args),
    Doctor(command::doctor::Args),
    Embed(command::embed::Args),
    Encoders(command::encoders::Args),
    /// Write a run for another program
    #[command(subcommand)]
    Export(command::view::ExportArgs),
    Gather(command::gather::Args),
    #[command(hide = true)]
    Manual(command::manual::Args),
    Recount(command::view::RecountArgs),
    Slide(command::slide::Args),
    Survival(command::survival::Args),
    Train(command::train::Args),
    View(command::view::Args),
}

/// A reader that went away (`| head`) is no fault: end as other tools do, without a panic.
fn end_quietly_on_a_closed_pipe() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let text = panic.payload().downcast_ref::<String>();
        if text.is_some_and(|t| t.starts_with("failed printing to") && t.contains("Broken pipe")) {
            std::process::exit(141);
        }
        usual(panic);
    }));
}

fn main() -> ExitCode {
    end_quietly_on_a_closed_pipe();
    let typed = examples::with_examples(Cli::command()).get_matches();
    match run(Cli::from_arg_matches(&typed).unwrap_or_else(|e| e.exit())) {
        Ok(code) => code,
        Err(error) => {
            // A file's name must not reach the terminal as a command.
            eprintln!("error: {}", plain_lines(&said_once(error.chain())));
            if let Some(flags) = hint::hint(&error) {
                eprintln!("hint: see {flags}");
            }
            ExitCode::FAILURE
        }
    }
}

fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    command::limits::from_environment()?;
    Ok(match cli.command {
        Command::Audit(args) => command::audit::run(args)?.report(),
        Command::Bench(args) => command::bench::run(args)?.report(),
        Command::Challenge(args) => command::challenge::run(args)?.report(),
        Command::Classify(args) => command::classify::run(args)?.report(),
        Command::Corpus(args) => command::corpus::run(args)?.report(),
        Command::Demo(args) => command::demo::run(args)?.report(),
        Command::Detect(args) => command::detect::run(args)?.report(),
        Command::Evaluate(args) => command::evaluate::run(args)?.report(),
        Command::Doctor(args) => command::doctor::run(args)?.report(),
        Command::Embed(args) => command::embed::run(args)?.report(),
        Command::Encoders(args) => command::encoders::run(args)?.report(),
        Command::Export(args) => command::view::export(&args)?.report(),
        Command::Gather(args) => command::gather::run(&args)?.report(),
        Command::Manual(args) => {
            command::manual::run(&args, examples::with_examples(Cli::command()))?.report()
        }
        Command::Recount(args) => command::view::recount(&args)?.report(),
        Command::Slide(args) => command::slide::run(args)?.report(),
        Command::Survival(args) => command::survival::run(args)?.report(),
        Command::Train(args) => command::train::run(args)?.report(),
        Command::View(args) => command::view::run(&args)?.report(),
    })
}

#[cfg(test)]
mod tests {
    use anyhow::Context;
    use mitosis::text::said_once;

    #[test]
    fn a_reason_is_said_once() {
        let disk = || std::io::Error::other("no such file");
        let twice =
            anyhow::Error::new(artifact::file::ReadError { path: "a.csv".into(), source: disk() });
        assert_eq!(said_once(twice.chain()), "a.csv: cannot be read: no such file");
        let outer = Err::<(), _>(disk()).context("a.csv").unwrap_err();
        assert_eq!(said_once(outer.chain()), "a.csv: no such file");
    }
}
