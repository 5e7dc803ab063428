//! Weights in several files under one index, as Hugging Face writes large ones.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use serde::Deserialize;

use super::Arrays;
use crate::error::{EncoderError, Result};

/// `*.index.json`; other keys are remarks.
#[derive(Deserialize)]
struct Index {
    /// Tensor to file.
    weight_map: BTreeMap<String, String>,
}

/// Whether a file states in which others the weights are.
pub(super) fn is_index(path: &Path) -> bool {
    path.to_string_lossy().ends_with(".index.json")
}

fn wrong(path: &Path, reason: String) -> EncoderError {
    EncoderError::file(path, reason, "fetch the whole folder again if its source is whole")
}

fn open(path: &Path) -> Result<Index> {
    let text = base::file::read_whole(path).map_err(|e| EncoderError::io(path, e))?;
    let index: Index = base::json::parse(&text)
        .map_err(|e| wrong(path, format!("no readable index of weights ({e})")))?;
    if index.weight_map.is_empty() {
        return Err(wrong(path, "an index of no weights".into()));
    }
    for file in index.weight_map.values() {
        let mut parts = Path::new(file).components();
        let plain = matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None));
        if !plain || is_index(Path::new(file)) {
            return Err(wrong(path, format!("names `{file}`, which is not a file next to it")));
        }
    }
    Ok(index)
}

impl Index {
    /// Its files by name.
    fn files(&self) -> BTreeSet<&String> {
        self.weight_map.values().collect()
    }
}

fn folder(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}

/// The files that weights are in: the one that is named, and of an index those that it names, in the
/// order of their names. What digests weights digests all of them.
///
/// # Errors
/// [`EncoderError::Io`], and [`EncoderError::File`] for an index that cannot be.
pub fn files(path: &Path) -> Result<Vec<PathBuf>> {
    let mut all = vec![path.to_path_buf()];
    if is_index(path) {
        let index = open(path)?;
        all.extend(index.files().into_iter().map(|file| folder(path).join(file)));
    }
    Ok(all)
}

/// Every tensor of the index's files, which are next to it; `one` reads a file.
pub(super) fn read(path: &Path, one: impl Fn(&Path) -> Result<Arrays>) -> Result<Arrays> {
    let index = open(path)?;
    let mut all = Arrays::new();
    for file in index.files() {
        for (name, tensor) in one(&folder(path).join(file))? {
            if index.weight_map.get(&name) != Some(file) {
                let reason = format!("`{name}` is in {file}, and the index states otherwise");
                return Err(wrong(path, reason));
            }
            all.insert(name, tensor);
        }
    }
    match index.weight_map.keys().find(|n| !all.contains_key(*n)) {
        Some(name) => Err(wrong(path, format!("`{name}` is in none of its files"))),
        None => Ok(all),
    }
}
