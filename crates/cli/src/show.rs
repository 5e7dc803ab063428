//! A result on standard output: as JSON or in words.

use serde::Serialize;
use std::fmt::Display;

/// Prints a result as indented JSON, or else in its own words, which end with a line break.
pub fn result(as_json: bool, result: &(impl Serialize + Display)) -> anyhow::Result<()> {
    if as_json { json(result) } else { words(result) }
}

/// Prints a result as indented JSON.
pub fn json(result: &impl Serialize) -> anyhow::Result<()> {
    println!("{}", serde_json::to_string_pretty(result)?);
    Ok(())
}

/// Prints a result in its own words, which end with a line break.
pub fn words(result: &impl Display) -> anyhow::Result<()> {
    print!("{result}");
    Ok(())
}

/// Notes and warnings on standard error, so that JSON on standard output stays clean.
pub fn say(kind: &str, lines: &[String]) {
    for line in lines {
        eprintln!("{kind}: {line}");
    }
}
