//! The `mithras` command line: main -> run -> one match.

#![forbid(unsafe_code)]

#[macro_use]
mod show;
mod command;
mod examples;
mod hint;
mod interrupt;
mod progress;

use base::text::joined_once;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use std::process::{ExitCode, Termination};

/// Mitotic-figure analysis of H&E slides: detection, counts, training, survival.
#[derive(Parser)]
#[command(name = "mithras", version, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// The verbs and what runs them: one line each, and each in `command/<verb>.rs`.
macro_rules! verbs {
    ($($(#[$about:meta])* $verb:ident: $args:ty => $run:expr,)+) => {
        #[derive(Subcommand)]
        #[allow(clippy::large_enum_variant, reason = "parsed once per process; builds differ in sizes")]
        enum Command { $($(#[$about])* $verb($args),)+ }

        fn run(cli: Cli) -> anyhow::Result<ExitCode> {
            // A file above `ulimit -f` is an error of the write, which names it, and not the end of the process.
            #[cfg(unix)]
            signal_hook::flag::register(signal_hook::consts::SIGXFSZ, std::sync::Arc::default())?;
            command::limits::from_environment()?;
            Ok(match cli.command { $(Command::$verb(args) => $run(args)?.report(),)+ })
        }
    };
}

verbs! {
    Audit: command::audit::Args => command::audit::run,
    Bench: command::bench::Args => command::bench::run,
    Calibrate: command::calibrate::Args => command::calibrate::run,
    Challenge: command::challenge::Args => command::challenge::run,
    Classify: command::classify::Args => command::classify::run,
    Corpus: command::corpus::Args => command::corpus::run,
    Data: command::data::Args => command::data::run,
    Demo: command::demo::Args => command::demo::run,
    Detect: command::detect::Args => command::detect::run,
    Detectors: command::detectors::Args => command::detectors::run,
    Evaluate: command::evaluate::Args => command::evaluate::run,
    Doctor: command::doctor::Args => command::doctor::run,
    Embed: command::embed::Args => command::embed::run,
    Encoders: command::encoders::Args => command::encoders::run,
    Experiment: command::experiment::Args => command::experiment::run,
    /// Write a run for another program
    #[command(subcommand)]
    Export: command::view::ExportArgs => command::view::export,
    Gather: command::gather::Args => command::gather::run,
    #[command(hide = true)]
    Manual: command::manual::Args => |a| command::manual::run(&a, Cli::command()),
    Quality: command::quality::Args => command::quality::run,
    Recount: command::view::RecountArgs => command::view::recount,
    Report: command::report::Args => command::report::run,
    Slide: command::slide::Args => command::slide::run,
    Slurm: command::slurm::Args => |a| command::slurm::run(a, Cli::command()),
    Start: command::start::Args => command::start::run,
    Survival: command::survival::Args => command::survival::run,
    Train: command::train::Args => command::train::run,
    View: command::view::Args => command::view::run,
}

fn main() -> ! {
    let words = command::start::with_verb(std::env::args_os().collect(), cfg!(windows));
    let typed = examples::with_examples(Cli::command()).try_get_matches_from(words);
    let typed = typed.unwrap_or_else(|e| show::answer(&e));
    let cli = Cli::from_arg_matches(&typed).unwrap_or_else(|e| e.exit());
    progress::begin(&typed);
    hint::begin(&Cli::command(), &typed);
    progress::end(run(cli).unwrap_or_else(|error| {
        progress::print_message("error", &joined_once(error.chain()));
        hint::print_hints(&hint::hint(&error));
        ExitCode::FAILURE
    }))
}
