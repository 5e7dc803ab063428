//! Weights in several files under one index, as Hugging Face writes large ones.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path};

use serde::Deserialize;
use tch::Tensor;

use crate::error::{NetError, Result};

/// `*.index.json`; other keys are remarks.
#[derive(Deserialize)]
struct Index {
    /// Tensor to file.
    weight_map: BTreeMap<String, String>,
}

/// Every tensor of the index's files, which lie beside it; `one` reads a file.
pub(crate) fn read(
    path: &Path,
    one: impl Fn(&Path) -> Result<BTreeMap<String, Tensor>>,
) -> Result<BTreeMap<String, Tensor>> {
    let wrong = |reason: String| NetError::file(path, reason, "fetch the whole folder again");
    let text = std::fs::read(path).map_err(|e| NetError::io(path, e))?;
    let index: Index = serde_json::from_slice(&text)
        .map_err(|e| wrong(format!("no readable index of weights ({e})")))?;
    if index.weight_map.is_empty() {
        return Err(wrong("an index of no weights".into()));
    }
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut all = BTreeMap::new();
    for file in index.weight_map.values().collect::<BTreeSet<_>>() {
        let mut parts = Path::new(file).components();
        let plain = matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None));
        if !plain || file.ends_with(".index.json") {
            return Err(wrong(format!("names `{file}`, which is no file beside it")));
        }
        for (name, tensor) in one(&folder.join(file))? {
            if index.weight_map.get(&name) != Some(file) {
                return Err(wrong(format!(
                    "`{name}` lies in {file}, and the index says otherwise"
                )));
            }
            all.insert(name, tensor);
        }
    }
    match index.weight_map.keys().find(|n| !all.contains_key(*n)) {
        Some(name) => Err(wrong(format!("`{name}` is in none of its files"))),
        None => Ok(all),
    }
}
