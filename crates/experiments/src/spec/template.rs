//! Words with places to fill.
//!
//! `{list}` and `{list.property}` are filled when steps are made from families. What remains names
//! things that have a place on disk only when the step runs: [`Reference`].
//! `{=word}` becomes the literal `{word}`, as a command expects it.

use crate::error::{ExperimentError, Result};
use std::collections::BTreeMap;

/// The chosen entry of every list: its word under the list's name, its properties under
/// `list.property`.
pub type Env = BTreeMap<String, String>;

/// Something a step needs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reference {
    /// `{step:NAME}`: the folder of another step.
    Step(String),
    /// `{data:SET.PIECE}`: a file or folder of a data set.
    Data(String, String),
    /// `{preset:FILE}`: a preset that the program contains.
    Preset(String),
    /// `{file:FILE}`: a file of the experiment, or one of the same name below the data root.
    File(String),
    /// `{encoders:FILE}`: weights below the folder of encoders.
    Encoder(String),
    /// `{out}`, `{candidates}`, `{threads}`, `{device}`, `{data}`: settings of the run.
    Setting(String),
}

impl Reference {
    fn parse(inner: &str) -> Option<Self> {
        if matches!(inner, "out" | "candidates" | "threads" | "device" | "data") {
            return Some(Self::Setting(inner.into()));
        }
        let (kind, name) = inner.split_once(':')?;
        Some(match kind {
            "step" => Self::Step(name.into()),
            "data" => {
                let (set, piece) = name.rsplit_once('.')?;
                Self::Data(set.into(), piece.into())
            }
            // What a data set's import makes is a step of its own.
            "import" => Self::Step(import_step(name)?),
            "preset" => Self::Preset(name.into()),
            "file" => Self::File(name.into()),
            "encoders" => Self::Encoder(name.into()),
            _ => return None,
        })
    }
}

/// Name of the step that imports `SET.WHAT`.
fn import_step(name: &str) -> Option<String> {
    let (set, what) = name.rsplit_once('.')?;
    Some(format!("data/{set}/{what}"))
}

/// The end of the `{...}` that begins at byte `open`.
fn close(text: &str, open: usize) -> Option<usize> {
    let mut depth = 0;
    for (i, c) in text[open..].char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(open + i);
        }
    }
    None
}

/// Fills the places of lists and leaves references as they are.
///
/// # Errors
/// An unknown name between braces, or braces that do not close.
pub fn expand(text: &str, env: &Env) -> Result<String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        let bad = |reason: &str| ExperimentError::form("experiment", format!("`{text}`: {reason}"));
        let end = close(rest, open).ok_or_else(|| bad("a brace does not close"))?;
        out.push_str(&rest[..open]);
        let inner = expand(&rest[open + 1..end], env)?;
        match env.get(&inner) {
            // A property may name entries of other lists. It cannot name itself.
            Some(value) if value.contains('{') => {
                let others = env.iter().filter(|(name, _)| **name != inner);
                let others = others.map(|(n, v)| (n.clone(), v.clone())).collect();
                out.push_str(&expand(value, &others)?);
            }
            Some(value) => out.push_str(value),
            None if inner.starts_with('=') => out.push_str(&format!("{{{inner}}}")),
            None if Reference::parse(&inner).is_some() => out.push_str(&format!("{{{inner}}}")),
            None => return Err(bad(&format!("`{inner}` is neither a list nor a reference"))),
        }
        rest = &rest[end + 1..];
    }
    out.push_str(rest);
    Ok(out)
}

/// Calls `fill` for every reference of an expanded word.
///
/// # Errors
/// Those of `fill`.
pub fn references(text: &str, mut fill: impl FnMut(Reference) -> Result<String>) -> Result<String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        let Some(end) = close(rest, open) else { break };
        out.push_str(&rest[..open]);
        let inner = &rest[open + 1..end];
        match (inner.strip_prefix('='), Reference::parse(inner)) {
            (Some(word), _) => out.push_str(&format!("{{{word}}}")),
            (None, Some(reference)) => out.push_str(&fill(reference)?),
            (None, None) => out.push_str(&rest[open..=end]),
        }
        rest = &rest[end + 1..];
    }
    out.push_str(rest);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_filled_inside_references_and_references_stay() {
        let env = Env::from([("row".into(), "uni".into()), ("row.name".into(), "UNI".into())]);
        let word = expand("{row.name}={step:train/{row}}/fold-{=fold}/x", &env).unwrap();
        assert_eq!(word, "UNI={step:train/uni}/fold-{=fold}/x");
        let mut seen = vec![];
        let filled = references(&word, |r| {
            seen.push(r);
            Ok("DIR".into())
        });
        assert_eq!(filled.unwrap(), "UNI=DIR/fold-{fold}/x");
        assert_eq!(seen, [Reference::Step("train/uni".into())]);
        let step = Reference::parse("import:MIDOG22.crops");
        assert_eq!(step, Some(Reference::Step("data/MIDOG22/crops".into())));
        assert!(expand("{col}", &env).is_err() && expand("{row", &env).is_err());
        // Properties are filled, too; one that contains itself is an error and not a loop.
        let env = Env::from([
            ("row.start".into(), "{step:train/{seed}}/x".into()),
            ("seed".into(), "3".into()),
            ("row.self".into(), "{row.self}".into()),
        ]);
        assert_eq!(expand("{row.start}", &env).unwrap(), "{step:train/3}/x");
        assert!(expand("{row.self}", &env).is_err());
    }
}
