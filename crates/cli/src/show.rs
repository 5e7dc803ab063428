//! A result on standard output: as JSON or as text.

use anyhow::Context;
use base::text::plain_lines;
use serde::Serialize;
use std::fmt::Display;
use std::io::Write;

/// Prints a result as indented JSON, or else in its own words, which end with a line break.
pub fn result(as_json: bool, result: &(impl Serialize + Display)) -> anyhow::Result<()> {
    let text = match as_json {
        true => serde_json::to_string_pretty(result)? + "\n",
        // A cell of a table must not reach the terminal as a command.
        false => plain_lines(&result.to_string()),
    };
    let mut out = std::io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    match written {
        Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => std::process::exit(141),
        written => Ok(written.context("standard output cannot be written")?),
    }
}

/// Prints a server's line on standard output; a closed output is ignored.
pub fn print_line(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}

/// Notes and warnings on standard error, so that JSON on standard output stays clean.
pub fn print_messages(kind: &str, lines: &[String]) {
    for line in lines {
        crate::progress::print_message(kind, line);
    }
}
