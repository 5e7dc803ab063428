//! Drives, folders and files of this computer, as a page can list them.

use crate::error::{ListError, PageError};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Entries of one folder that are sent; the rest is counted.
const MOST: usize = 5000;

/// What an entry is, by its kind and suffix alone: nothing is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A folder.
    Folder,
    /// A folder that `mithras detect` or this page wrote.
    Run,
    /// By its suffix a slide.
    Slide,
    /// By its suffix regions.
    Regions,
    /// By its suffix a table.
    Table,
    /// Anything else.
    Other,
}

/// A file or folder.
#[derive(Debug, Serialize)]
pub struct Entry {
    name: String,
    path: String,
    kind: Kind,
    /// Bytes of a file.
    size: Option<u64>,
}

/// What a folder holds.
#[derive(Debug, Serialize)]
pub struct Listing {
    path: String,
    /// The folder that it is in; none at the top.
    parent: Option<String>,
    kind: Kind,
    entries: Vec<Entry>,
    /// Entries beyond the first 5000.
    cut: usize,
    /// Entries whose names are not Unicode text, which a page cannot name.
    unnamed: usize,
}

/// A place to begin at.
#[derive(Debug, Serialize)]
pub struct Place {
    name: String,
    path: String,
}

/// The user's own folder.
pub fn home() -> Option<PathBuf> {
    std::env::home_dir().filter(|h| h.is_dir())
}

/// The user's own folders, and the drives of this computer.
pub fn places() -> Vec<Place> {
    let mut all = Vec::new();
    let mut add = |name: &str, path: &Path| {
        if let Some(text) = path.to_str().filter(|_| path.is_dir()) {
            all.push(Place { name: name.to_owned(), path: text.to_owned() });
        }
    };
    if let Some(home) = home() {
        add("Home", &home);
        for own in ["Desktop", "Documents", "Downloads"] {
            add(own, &home.join(own));
        }
    }
    if cfg!(windows) {
        for letter in 'A'..='Z' {
            add(&format!("Drive {letter}:"), Path::new(&format!("{letter}:\\")));
        }
    } else {
        add("This computer", Path::new("/"));
        for mounts in ["/Volumes", "/media", "/run/media", "/mnt"] {
            add(mounts, Path::new(mounts));
        }
    }
    all
}

/// The entries of a folder, folders first; hidden ones are left out.
///
/// # Errors
/// [`PageError::List`].
pub fn list(folder: &Path) -> Result<Listing, PageError> {
    let fail = |reason| PageError::List { path: folder.to_owned(), reason };
    if !folder.is_absolute() {
        return Err(fail(ListError::PartialPath));
    }
    if !folder.is_dir() {
        return Err(fail(if folder.exists() { ListError::File } else { ListError::Missing }));
    }
    let mut listed = base::walk::entries(folder).map_err(|e| fail(ListError::Io(e.source)))?;
    listed.retain(|p| !p.file_name().is_some_and(|n| n.to_string_lossy().starts_with('.')));
    let all = listed.len();
    let mut entries: Vec<Entry> = listed.iter().filter_map(|p| entry(p)).collect();
    let unnamed = all - entries.len();
    entries.sort_by_cached_key(|e| (e.kind > Kind::Run, e.name.to_lowercase(), e.name.clone()));
    let cut = entries.len().saturating_sub(MOST);
    entries.truncate(MOST);
    let text = |p: &Path| p.to_str().map(str::to_owned);
    Ok(Listing {
        path: text(folder).ok_or_else(|| fail(ListError::NotText))?,
        parent: folder.parent().and_then(text),
        kind: kind(folder),
        entries,
        cut,
        unnamed,
    })
}

fn entry(path: &Path) -> Option<Entry> {
    let name = path.file_name()?.to_str()?.to_owned();
    let kind = kind(path);
    // What vanished meanwhile, or is a broken link, is listed without a size.
    let size = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file).map(|m| m.len());
    Some(Entry { name, path: path.to_str()?.to_owned(), kind, size })
}

fn kind(path: &Path) -> Kind {
    if path.is_dir() {
        return if path.join("run.json").is_file() { Kind::Run } else { Kind::Folder };
    }
    if mithras::batch::named_as_slide(path) {
        return Kind::Slide;
    }
    match path.extension().and_then(|e| e.to_str()).map(str::to_ascii_lowercase).as_deref() {
        Some("geojson" | "json" | "xml") => Kind::Regions,
        Some("csv" | "tsv") => Kind::Table,
        _ => Kind::Other,
    }
}

/// A folder that does not exist yet, for the results of these slides: in `parent`, named after them.
pub fn fresh(parent: &Path, slides: &[PathBuf]) -> PathBuf {
    let name = match slides {
        [] => "results".to_owned(),
        [one] => mithras::input::stem(one),
        [first, ..] => {
            let folder = first.parent().and_then(Path::file_name).unwrap_or("slides".as_ref());
            // A suffix for `stem` to take off: the folder's own name may hold a dot.
            mithras::input::stem(Path::new(&format!("{}.x", folder.to_string_lossy())))
        }
    };
    let numbered = (2_u32..).map(|k| format!("{name}-{k}"));
    std::iter::once(name.clone())
        .chain(numbered)
        .map(|n| parent.join(n))
        .find(|p| !p.exists())
        .unwrap_or_else(|| parent.join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_listed_and_what_is_not_a_folder_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["b.SVS", "a.txt", "c.geojson", ".hidden.svs"] {
            std::fs::write(dir.path().join(name), b"x").unwrap();
        }
        std::fs::create_dir_all(dir.path().join("z/run")).unwrap();
        std::fs::write(dir.path().join("z/run/run.json"), b"{}").unwrap();
        let listing = list(dir.path()).unwrap();
        let seen: Vec<_> = listing.entries.iter().map(|e| (&*e.name, e.kind)).collect();
        use Kind::{Folder, Other, Regions, Run, Slide};
        assert_eq!(
            seen,
            [("z", Folder), ("a.txt", Other), ("b.SVS", Slide), ("c.geojson", Regions)]
        );
        assert_eq!(list(&dir.path().join("z")).unwrap().entries[0].kind, Run);
        let refused = |path: &Path| list(path).unwrap_err().to_string();
        for (path, why) in [("a.txt", "is a file"), ("none", "no such folder")] {
            let path = dir.path().join(path);
            let words = refused(&path);
            assert!(words.contains(why) && words.contains(path.to_str().unwrap()), "{words}");
        }
        assert!(refused(Path::new("z")).contains("whole path"));
    }

    #[test]
    fn results_never_go_into_a_folder_that_is_there() {
        let dir = tempfile::tempdir().unwrap();
        let one = [PathBuf::from("/slides/M\u{fc}ller 1.svs")];
        assert_eq!(fresh(dir.path(), &one), dir.path().join("M\u{fc}ller 1"));
        std::fs::create_dir(dir.path().join("M\u{fc}ller 1")).unwrap();
        assert_eq!(fresh(dir.path(), &one), dir.path().join("M\u{fc}ller 1-2"));
        let two = [PathBuf::from("/cohort.2/a.svs"), PathBuf::from("/cohort.2/b.svs")];
        assert_eq!(fresh(dir.path(), &two), dir.path().join("cohort.2"));
    }
}
