//! Presets: everything that changes a number, in one TOML file for each experiment.
//!
//! Every verb that takes one reads it here: unknown keys are errors that name the path and the
//! nearest key, changes of single keys go through the same deserialiser, and what is recorded is
//! the resolved text and its digest.

use crate::renamed;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// A value that the deserialiser takes and that makes no sense.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Path of the key, e.g. `train.lr`.
    pub key: String,
    /// What is wrong with it.
    pub reason: String,
}

impl Fault {
    /// A reason for a key.
    pub fn new(key: impl Into<String>, reason: impl ToString) -> Self {
        Self { key: key.into(), reason: reason.to_string() }
    }

    /// The same below a table of this name.
    #[must_use]
    pub fn below(self, table: &str) -> Self {
        Self { key: format!("{table}.{}", self.key), ..self }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.reason)
    }
}

/// Why a preset cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {reason}", path.display())]
pub struct PresetError {
    /// Path of the preset.
    pub path: PathBuf,
    /// The key and what is wrong.
    pub reason: String,
}

/// A kind of preset.
pub trait Preset: Serialize + DeserializeOwned {
    /// Checks that the deserialiser cannot make.
    ///
    /// # Errors
    /// The first value out of range.
    fn check(&self) -> Result<(), Fault>;

    /// Reads a file and applies `key=value` changes.
    ///
    /// # Errors
    /// [`PresetError`] with the file, the key's path, and for unknown keys the nearest one.
    fn load(path: &Path, changes: &[String]) -> Result<Self, PresetError> {
        let bad = |reason: String| PresetError { path: path.to_path_buf(), reason };
        let text = crate::file::read_string(path).map_err(|e| bad(e.to_string()))?;
        Self::parse(&text, changes).map_err(bad)
    }

    /// [`Self::load`] from text; the error is the reason alone.
    ///
    /// # Errors
    /// As there.
    fn parse(text: &str, changes: &[String]) -> Result<Self, String> {
        let mut table: toml::Table = text.parse().map_err(|e: toml::de::Error| e.to_string())?;
        for change in changes {
            apply(&mut table, change)?;
        }
        let table = toml::Value::Table(table);
        let preset: Self = serde_path_to_error::deserialize(table).map_err(|e| {
            let at = e.path().to_string();
            let reason = e.into_inner().to_string().trim().to_string();
            let nearest = nearest(&reason);
            let hint = nearest.map(|n| format!("; did you mean `{n}`?")).unwrap_or_default();
            format!("{at}: {reason}{hint}")
        })?;
        preset.check().map_err(|e| e.to_string())?;
        Ok(preset)
    }

    /// The resolved preset as TOML.
    fn to_toml(&self) -> String {
        toml::to_string(self).expect("a preset is plain data")
    }

    /// SHA-256 of the resolved preset, the same for both names of a key that was [`renamed`].
    fn digest(&self) -> String {
        renamed::digest(&self.to_toml())
    }
}

/// Sets one key of a table, making the tables above it.
fn apply(table: &mut toml::Table, change: &str) -> Result<(), String> {
    let (key, value) = change
        .split_once('=')
        .ok_or_else(|| format!("change `{change}`: write key=value, e.g. train.lr=1e-4"))?;
    let value = format!("v = {value}")
        .parse::<toml::Table>()
        .ok()
        .and_then(|mut t| t.remove("v"))
        .unwrap_or_else(|| toml::Value::String(value.to_string()));
    let mut at = table;
    let (folders, leaf) = key.rsplit_once('.').map_or((None, key), |(f, l)| (Some(f), l));
    for part in folders.into_iter().flat_map(|f| f.split('.')) {
        at = at
            .entry(part)
            .or_insert_with(|| toml::Value::Table(toml::Table::new()))
            .as_table_mut()
            .ok_or_else(|| format!("change of {key}: `{part}` is not a table"))?;
    }
    // A key that was renamed may be in the file by its other name.
    at.retain(|key, _| renamed::current(key) != renamed::current(leaf));
    at.insert(leaf.to_string(), value);
    Ok(())
}

/// The expected key nearest to the unknown one, out of serde's message.
fn nearest(message: &str) -> Option<String> {
    let rest = message.strip_prefix("unknown field ")?;
    let mut names = rest.split('`').skip(1).step_by(2);
    let unknown = names.next()?;
    names.min_by_key(|n| edits(unknown, n)).map(str::to_string)
}

fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let change = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = change.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Small {
        name: String,
        train: Train,
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Train {
        steps: usize,
        warmup: usize,
    }

    impl Preset for Small {
        fn check(&self) -> Result<(), Fault> {
            if self.train.warmup > self.train.steps {
                return Err(Fault::new("warmup", "is longer than the run").below("train"));
            }
            Ok(())
        }
    }

    const TEXT: &str = "name = \"a\"\n[train]\nsteps = 5\nwarmup = 1\n";

    fn parse(changes: &[&str]) -> Result<Small, String> {
        Small::parse(TEXT, &changes.iter().map(|c| (*c).to_string()).collect::<Vec<_>>())
    }

    #[test]
    fn changes_go_through_the_same_checks_as_the_file() {
        assert_eq!(parse(&["train.steps=7"]).unwrap().train.steps, 7);
        assert_eq!(parse(&["name=b c"]).unwrap().name, "b c");
        assert!(parse(&["train.warm_up=3"]).unwrap_err().contains("did you mean `warmup`"));
        assert_eq!(parse(&["train.warmup=6"]).unwrap_err(), "train.warmup: is longer than the run");
        assert!(parse(&["train.steps=x"]).unwrap_err().starts_with("train.steps: "));
        assert!(
            parse(&["train.steps"]).unwrap_err().contains("write key=value, e.g. train.lr=1e-4")
        );
        assert_eq!(parse(&["train.steps=8"]).unwrap().train.steps, 8);
        assert!(parse(&["name.b=3"]).unwrap_err().contains("`name` is not a table"));
    }

    #[test]
    fn the_digest_is_of_the_resolved_text() {
        let (a, b) = (parse(&[]).unwrap(), parse(&["train.steps=6"]).unwrap());
        assert_ne!(a.digest(), b.digest());
        assert_eq!(Small::parse(&a.to_toml(), &[]).unwrap(), a);
        let commented = Small::parse(&format!("# why\n{TEXT}"), &[]).unwrap();
        assert_eq!(a.digest(), commented.digest());
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let e = Small::load(Path::new("no/such.toml"), &[]).unwrap_err();
        assert!(e.to_string().starts_with("no/such.toml: "), "{e}");
    }
}
