//! Folders: what they hold, in the order of names.

use crate::file::ReadError;
use std::path::{Path, PathBuf};

/// The entries of a folder, sorted by name.
///
/// # Errors
/// [`ReadError`] when the folder cannot be listed.
pub fn entries(folder: &Path) -> Result<Vec<PathBuf>, ReadError> {
    let fail = |source| ReadError { path: folder.to_owned(), source };
    let listed = std::fs::read_dir(folder).map_err(fail)?;
    let mut all: Vec<PathBuf> =
        listed.map(|e| e.map(|e| e.path())).collect::<Result<_, _>>().map_err(fail)?;
    all.sort();
    Ok(all)
}

/// The same; empty for a folder that is missing.
///
/// # Errors
/// [`ReadError`] when the folder is there and cannot be listed.
pub fn entries_if_any(folder: &Path) -> Result<Vec<PathBuf>, ReadError> {
    match entries(folder) {
        Err(e) if e.source.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        listed => listed,
    }
}

/// A folder's path relative to another folder, with `/`, wherever a link of its name leads; none where either place is
/// not there, or a name is not UTF-8.
#[must_use]
pub fn relative(folder: &Path, from: &Path) -> Option<String> {
    let folder = folder.parent()?.canonicalize().ok()?.join(folder.file_name()?);
    let from = from.canonicalize().ok()?;
    let shared = folder.components().zip(from.components()).take_while(|(a, b)| a == b).count();
    let up = std::iter::repeat_n(Some(".."), from.components().count() - shared);
    let down = folder.components().skip(shared).map(|part| part.as_os_str().to_str());
    Some(up.chain(down).collect::<Option<Vec<_>>>()?.join("/"))
}

/// Every file below a folder, sorted, the files of a folder in its place. Links to folders are not
/// followed, so that a circle of links cannot trap the search; links to files are files.
/// Entries that `wanted` refuses are left out, folders with all that is in them.
///
/// # Errors
/// [`ReadError`] when a folder cannot be listed.
pub fn files(folder: &Path, wanted: &dyn Fn(&Path) -> bool) -> Result<Vec<PathBuf>, ReadError> {
    let mut all = Vec::new();
    // Folders to list are kept in a vector, not on the call stack: a deep tree costs memory only.
    let mut open = vec![folder.to_owned()];
    while let Some(path) = open.pop() {
        if path != folder && !is_folder(&path)? {
            all.push(path);
            continue;
        }
        let mut inside = entries(&path)?;
        inside.retain(|p| wanted(p));
        open.extend(inside.into_iter().rev());
    }
    Ok(all)
}

/// Whether the entry itself is a folder, not a link to one.
fn is_folder(path: &Path) -> Result<bool, ReadError> {
    let kind = std::fs::symlink_metadata(path);
    kind.map(|m| m.is_dir()).map_err(|source| ReadError { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_come_sorted_and_refused_folders_stay_closed() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        for name in ["b.txt", "a/2.txt", "a/1.txt", "a.txt", "skip/3.txt", "c/d/4.txt"] {
            let path = root.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let found = files(root, &|p| !p.ends_with("skip")).unwrap();
        let names: Vec<_> = found.iter().map(|p| p.strip_prefix(root).unwrap()).collect();
        let expected = ["a/1.txt", "a/2.txt", "a.txt", "b.txt", "c/d/4.txt"].map(Path::new);
        assert_eq!(names, expected);
        let mut sorted = found.clone();
        sorted.sort();
        assert_eq!(found, sorted);
        assert_eq!(entries(&root.join("a")).unwrap().len(), 2);
    }

    #[cfg(unix)]
    #[test]
    fn a_circle_of_links_ends() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("a")).unwrap();
        std::os::unix::fs::symlink(dir.path(), dir.path().join("a/up")).unwrap();
        std::fs::write(dir.path().join("a/x"), "").unwrap();
        let found = files(dir.path(), &|_| true).unwrap();
        // The link itself is listed, not its target.
        assert_eq!(found, [dir.path().join("a/up"), dir.path().join("a/x")]);
    }

    #[test]
    fn a_missing_folder_is_named() {
        let e = files(Path::new("/no/such/folder"), &|_| true).unwrap_err();
        assert!(e.to_string().contains("/no/such/folder"), "{e}");
    }
}
