//! Images of an import, found below a folder by the names that the annotations use.

use crate::annotations::{ImportError, Problem};
use base::table::Unmatched;
use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};

/// Endings of other files that are next to images, often under the same name.
const OTHERS: [&str; 10] =
    ["csv", "tsv", "json", "geojson", "xml", "sqlite", "txt", "gz", "zip", "md"];

/// Files below a folder, found by name, by folders and name, or by name without extension.
pub(crate) struct ImageIndex {
    root: PathBuf,
    /// The folder's own name.
    own: String,
    /// Names of the folders below it.
    folders: HashSet<String>,
    /// The file of a name, and another one of the same name.
    by_key: HashMap<String, (PathBuf, Option<PathBuf>)>,
}

fn text(name: Option<&std::ffi::OsStr>) -> String {
    name.map(|s| s.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Folders and file name of a path in annotations.
fn parts(name: &str) -> Vec<&str> {
    let mut parts: Vec<&str> = Vec::new();
    for part in name.split('/').filter(|p| !p.is_empty() && *p != ".") {
        if part == ".." {
            parts.pop();
        } else {
            parts.push(part);
        }
    }
    if parts.is_empty() { vec![name] } else { parts }
}

impl ImageIndex {
    pub fn below(root: &Path) -> Result<Self, ImportError> {
        let whole = root.canonicalize().unwrap_or_else(|_| root.to_owned());
        let (own, root) = (text(whole.file_name()), root.to_owned());
        let (folders, by_key) = (HashSet::new(), HashMap::new());
        let mut index = Self { root, own, folders, by_key };
        for file in files_below(&index.root)? {
            index.add(file);
        }
        Ok(index)
    }

    fn add(&mut self, file: PathBuf) {
        let below = file.strip_prefix(&self.root).unwrap_or(&file);
        let mut path: Vec<String> = below.iter().map(|part| text(Some(part))).collect();
        let Some(name) = path.pop() else { return };
        self.folders.extend(path.iter().cloned());
        let (stem, kind) = (text(file.file_stem()), text(file.extension()).to_lowercase());
        if OTHERS.contains(&kind.as_str()) {
            return;
        }
        path.insert(0, self.own.clone());
        let mut keys = vec![];
        for name in [&name, &stem] {
            let tails = (0..path.len()).map(|from| format!("{}/{name}", path[from..].join("/")));
            keys.extend(tails.chain([name.clone()]));
            if path.len() == 1 {
                keys.push(format!("/{name}"));
            }
        }
        for key in keys {
            match self.by_key.entry(key) {
                Entry::Vacant(e) => drop(e.insert((file.clone(), None))),
                Entry::Occupied(mut e) if e.get().0 != file => e.get_mut().1 = Some(file.clone()),
                Entry::Occupied(_) => {}
            }
        }
    }

    /// The files of these names of one source.
    pub fn named<'n>(&self, names: impl Iterator<Item = &'n str>) -> NamedImages<'_> {
        let mut names: Vec<Vec<&str>> = names.map(parts).collect();
        names.retain(|parts| parts.len() > 1);
        let folders = |name: &[&'n str]| name[..name.len() - 1].to_vec();
        let mut common = names.first().map(|name| folders(name)).unwrap_or_default();
        for name in &names {
            let same = common.iter().zip(folders(name)).take_while(|(a, b)| *a == b).count();
            common.truncate(same);
        }
        let met = |from: usize| names.iter().any(|name| self.has_folder(name, from));
        let first = names.iter().any(|name| self.first_folder(name).is_some());
        let outside = match (0..=common.len()).find(|&from| met(from)) {
            Some(folders) => Outside::First(folders),
            None if first => Outside::Each,
            None => Outside::All,
        };
        NamedImages { index: self, outside }
    }

    fn first_folder(&self, name: &[&str]) -> Option<usize> {
        (0..name.len()).find(|&from| self.has_folder(name, from))
    }

    /// Whether the folder `from` of a name is below the images. The images' folder itself counts where the name
    /// is that of a file in it.
    fn has_folder(&self, name: &[&str], from: usize) -> bool {
        let Some(folder) = name[..name.len() - 1].get(from) else { return false };
        self.folders.contains(*folder)
            || self.root.join(folder).is_dir()
            || (*folder == self.own && self.by_key.contains_key(&name[from..].join("/")))
    }
}

/// Which folders of a source's names are outside the images' folder.
enum Outside {
    /// All of them: file names alone decide.
    All,
    /// So many leading ones, which the names share.
    First(usize),
    /// Those of each name that are before its first one below the images.
    Each,
}

/// Files by the names of one source. Where folders in these names are below the images, a name means the file in
/// its folder alone: a file of the same name elsewhere is another image.
pub(crate) struct NamedImages<'a> {
    index: &'a ImageIndex,
    outside: Outside,
}

impl NamedImages<'_> {
    fn files(&self, name: &str) -> Option<&(PathBuf, Option<PathBuf>)> {
        let (parts, by_key) = (parts(name), &self.index.by_key);
        let last = parts.len() - 1;
        let outside = match self.outside {
            _ if last == 0 => return by_key.get(parts[last]),
            Outside::All => return by_key.get(parts[last]),
            Outside::First(folders) => folders,
            Outside::Each => self.index.first_folder(&parts)?,
        };
        let exact = match outside < last {
            true => by_key.get(&parts[outside..].join("/")),
            false => by_key.get(&format!("/{}", parts[last])),
        };
        exact.or_else(|| self.deeper(&parts[outside..last], parts[last]))
    }

    /// The only file of a name, where it is somewhere below the folders that are named.
    fn deeper(&self, folders: &[&str], name: &str) -> Option<&(PathBuf, Option<PathBuf>)> {
        let only = self.index.by_key.get(name).filter(|(_, other)| other.is_none())?;
        let below = only.0.strip_prefix(&self.index.root).unwrap_or(&only.0);
        let mut path = below.parent()?.iter();
        let is_below = folders.iter().all(|folder| path.any(|part| part.to_str() == Some(folder)));
        (!folders.is_empty() && is_below).then_some(only)
    }

    pub fn get(&self, name: &str) -> Option<&PathBuf> {
        self.files(name).map(|(file, _)| file)
    }

    /// Of labels' names without an image, and of images that none of `all` the names mean: the first ones, and the
    /// rule by which they would meet; begins with a semicolon.
    pub fn unmatched<'a>(&self, missing: &[&str], all: impl Iterator<Item = &'a str>) -> String {
        let elsewhere = missing.iter().find_map(|name| {
            let (file, _) = self.index.by_key.get(*parts(name).last()?)?;
            Some(format!(
                "; {} is in another folder than `{name}` and may be another image: correct the folder in the \
                 labels if it is the same, or add the image",
                file.display()
            ))
        });
        if let Some(elsewhere) = elsewhere {
            return elsewhere;
        }
        let used: HashSet<&PathBuf> = all.filter_map(|name| self.get(name)).collect();
        let files = self.index.by_key.values().map(|(file, _)| file);
        let idle = files.filter(|file| !used.contains(file));
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
