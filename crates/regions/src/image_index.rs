//! Images of an import, found below a folder by the names that the annotations use.

use crate::annotations::{ImportError, Problem};
use base::table::Unmatched;
use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};

/// Files below a folder, found by name, by folder and name, or by name without extension.
pub(crate) struct ImageIndex {
    /// The file of a name, and another one of the same name.
    by_key: HashMap<String, (PathBuf, Option<PathBuf>)>,
}

impl ImageIndex {
    pub fn below(root: &Path) -> Result<Self, ImportError> {
        let files = files_below(root)?;
        let mut by_key = HashMap::new();
        for file in files {
            let text = |p: Option<&std::ffi::OsStr>| p.map(|s| s.to_string_lossy().into_owned());
            let (Some(name), Some(stem)) = (text(file.file_name()), text(file.file_stem())) else {
                continue;
            };
            // Annotations are often next to their images, under the same name.
            let kind = text(file.extension()).unwrap_or_default().to_lowercase();
            if ["csv", "tsv", "json", "geojson", "xml", "sqlite", "txt", "gz", "zip", "md"]
                .contains(&kind.as_str())
            {
                continue;
            }
            let folder = text(file.parent().and_then(Path::file_name)).unwrap_or_default();
            for key in [format!("{folder}/{name}"), format!("{folder}/{stem}"), name, stem] {
                match by_key.entry(key) {
                    Entry::Vacant(e) => drop(e.insert((file.clone(), None))),
                    Entry::Occupied(mut e) if e.get().0 != file => {
                        e.get_mut().1 = Some(file.clone())
                    }
                    Entry::Occupied(_) => {}
                }
            }
        }
        Ok(Self { by_key })
    }

    fn files(&self, name: &str) -> Option<&(PathBuf, Option<PathBuf>)> {
        let last = || name.rsplit('/').next().unwrap_or(name);
        self.by_key.get(name).or_else(|| self.by_key.get(last()))
    }

    pub fn get(&self, name: &str) -> Option<&PathBuf> {
        self.files(name).map(|(file, _)| file)
    }

    /// Of labels' names without an image, and of images that none of `all` the names mean: the first ones, and the
    /// rule by which they would meet; begins with a semicolon.
    pub fn unmatched<'a>(&self, missing: &[&str], all: impl Iterator<Item = &'a str>) -> String {
        let used: HashSet<&PathBuf> = all.filter_map(|name| self.get(name)).collect();
        let idle = self.by_key.values().map(|(file, _)| file).filter(|file| !used.contains(file));
        let idle: BTreeSet<&str> = idle.filter_map(|file| file.file_name()?.to_str()).collect();
        Unmatched::from_keys(("the labels", "the folder"), missing, &Vec::from_iter(idle))
            .map_or_else(String::new, |join| format!("; {join}"))
    }

    /// Why it is not certain which file the name means.
    pub fn two(&self, name: &str) -> Option<Problem> {
        let (one, Some(other)) = self.files(name)? else { return None };
        let (one, other) = (one.display(), other.display());
        Some(Problem {
            record: name.to_owned(),
            reason: format!(
                "{one} and {other} have this name; put the folder in front of it, or leave one out"
            ),
        })
    }

    /// Names that mean the file of a name before them: labels of one image, dealt as those of two.
    pub fn shared<'a>(&self, names: impl Iterator<Item = &'a str>) -> Vec<Problem> {
        let mut name_of = HashMap::new();
        let second = |name: &'a str| {
            let file = self.get(name)?;
            let first = *name_of.entry(file).or_insert(name);
            let reason = format!("is {}, and so is `{first}`: one name each", file.display());
            (first != name).then(|| Problem { record: name.to_owned(), reason })
        };
        names.filter_map(second).collect()
    }
}

/// Every file below a folder, sorted.
pub(crate) fn files_below(folder: &Path) -> Result<Vec<PathBuf>, ImportError> {
    base::walk::files(folder, &|_| true)
        .map_err(|e| ImportError::Io { file: e.path, reason: e.source })
}
