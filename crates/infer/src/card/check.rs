//! Why a text is not a model card, and the checks that parts of cards share.

use base::remedy::{Remedied, Remedy};

/// The only schema this build reads.
pub const SCHEMA: u32 = 1;

/// Why a text is not a model card.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "fields whose names state what they are")]
pub enum CardError {
    /// Not TOML of this schema: the parser's message names line, key and what was expected.
    #[error("not a model card: {0}")]
    Parse(String),
    /// Another schema.
    #[error("model card schema {found}, this build reads schema {SCHEMA}")]
    Schema { found: u32 },
    /// A value out of its range.
    #[error("model card key `{key}`: {reason}")]
    Value { key: String, reason: String },
    /// A part that the job needs is not in the card.
    #[error("model `{name}` has no [{part}] in its card, which {job} needs")]
    Missing {
        name: String,
        part: &'static str,
        /// What was asked for.
        job: &'static str,
    },
    /// No operating point of this name.
    #[error("model `{name}` has no operating point `{asked}`; it has: {known}")]
    NoPoint {
        /// Name of the package.
        name: String,
        asked: String,
        /// The names it has.
        known: String,
    },
}

impl Remedied for CardError {
    fn remedy(&self) -> Option<Remedy> {
        matches!(self, Self::NoPoint { .. }).then_some(Remedy::OperatingPoint)
    }
}

pub(super) fn ensure(
    holds: bool,
    key: &str,
    reason: impl FnOnce() -> String,
) -> Result<(), CardError> {
    if holds { Ok(()) } else { Err(CardError::Value { key: key.into(), reason: reason() }) }
}

/// A file of a package and its digest.
pub(super) fn file(table: &str, file: &str, sha256: &str) -> Result<(), CardError> {
    let plain =
        !file.is_empty() && !file.starts_with('.') && !file.contains(['/', '\\', ':', '\0']);
    ensure(plain, &format!("{table}.file"), || {
        format!("`{file}` is not a plain file name inside the package")
    })?;
    let hex = sha256.len() == 64 && sha256.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    ensure(hex, &format!("{table}.sha256"), || {
        format!("`{sha256}` is not 64 lower-case hex digits")
    })
}

pub(super) fn network(
    table: &str,
    name: &str,
    sha256: &str,
    mean: [f32; 3],
    std: [f32; 3],
) -> Result<(), CardError> {
    file(table, name, sha256)?;
    ensure(mean.iter().all(|m| (0.0..=1.0).contains(m)), &format!("{table}.mean"), || {
        format!("{mean:?} is not inside [0, 1]")
    })?;
    ensure(std.iter().all(|s| *s > 0.0 && *s <= 1.0), &format!("{table}.std"), || {
        format!("{std:?} is not inside (0, 1]")
    })
}
