//! A result on standard output: as JSON or as text.

#![expect(clippy::disallowed_methods, reason = "escapes what it prints")]
use base::text::{plain_json, plain_lines};
use serde::Serialize;
use std::fmt::Display;
use std::io::Write;

/// Prints a formatted line on standard output as [`text`] does.
macro_rules! outln {
    ($($part:tt)*) => { $crate::show::text(&format!("{}\n", format_args!($($part)*))) };
}

/// Prints text on standard output; a name or a cell in it does not reach the terminal as a command.
pub fn text(text: &str) {
    written(&plain_lines(text));
}

/// Prints a result as indented JSON, or else in its own words, which end with a line break.
pub fn result(as_json: bool, result: &(impl Serialize + Display)) -> anyhow::Result<()> {
    if as_json {
        return json(result);
    }
    text(&result.to_string());
    Ok(())
}

pub fn json(result: &impl Serialize) -> anyhow::Result<()> {
    written(&plain_json(&(serde_json::to_string_pretty(result)? + "\n")));
    Ok(())
}

fn written(text: &str) {
    passed(std::io::stdout().write_all(text.as_bytes()).and_then(|()| std::io::stdout().flush()));
}

/// Ends the process with what was asked of it in place of work: help, the version, or what is wrong with its words.
pub fn answer(e: &clap::Error) -> ! {
    let printed = e.print().and_then(|()| std::io::stdout().flush());
    passed(if e.use_stderr() { Ok(()) } else { printed });
    std::process::exit(e.exit_code())
}

/// A closed output (`| head`) ends the process as it ends other tools; one that takes nothing more is the error.
fn passed(written: std::io::Result<()>) {
    let Err(e) = written else { return };
    if e.kind() == std::io::ErrorKind::BrokenPipe {
        std::process::exit(141);
    }
    crate::progress::print_message("error", &format!("standard output cannot be written: {e}"));
    std::process::exit(1);
}

/// Prints a server's line on standard output; a closed output is ignored.
pub fn print_line(text: &str) {
    let _ = writeln!(std::io::stdout(), "{}", plain_lines(text));
}

/// Notes and warnings on standard error, so that JSON on standard output stays clean.
pub fn print_messages(kind: &str, lines: &[String]) {
    for line in lines {
        crate::progress::print_message(kind, line);
    }
}
