//! What binds the files of a result to a record of it, and so to each other.

use crate::digest::sha256_file;
use crate::file::ReadError;
use crate::text::{Shown, plain};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The files of a slide's results, as they were when the slide was finished.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sealed {
    /// Name of the slide, which its folder is called.
    pub slide: String,
    /// SHA-256 of every file, by name.
    pub files: BTreeMap<String, String>,
}

/// Why the results of a slide cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    /// A file is not there.
    #[error("{} is missing", Shown(.0))]
    Missing(PathBuf),
    /// A file is another one than when the slide was finished.
    #[error(
        "{} is not the file that was written when the slide was finished: it is damaged, or of another \
         slide or run", Shown(.0)
    )]
    Changed(PathBuf),
    /// The folder holds the results of another slide.
    #[error("{} holds results of the slide `{}`", Shown(folder), plain(slide))]
    Foreign {
        /// Folder of the other slide's results.
        folder: PathBuf,
        /// Name of the slide.
        slide: String,
    },
    /// A file cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
}

impl Sealed {
    /// Takes the digests of those of `files` that are in a slide's folder.
    ///
    /// # Errors
    /// [`ReadError`] for one that is there and cannot be read.
    pub fn new(folder: &Path, slide: &str, files: &[&str]) -> Result<Self, ReadError> {
        let mut sealed = Self { slide: slide.to_owned(), files: BTreeMap::new() };
        for name in files {
            let path = folder.join(name);
            if path.is_file() {
                sealed.files.insert((*name).to_owned(), sha256_file(&path)?.1);
            }
        }
        Ok(sealed)
    }

    /// Checks that the folder is the slide's and that those of its files that are `wanted` are as they
    /// were.
    ///
    /// # Errors
    /// [`SealError`] for the first that is not.
    pub fn check(&self, folder: &Path, wanted: impl Fn(&str) -> bool) -> Result<(), SealError> {
        let name = folder.file_name().map(|n| n.to_string_lossy().into_owned());
        if name.is_some_and(|name| name != self.slide && name != "..") {
            let (folder, slide) = (folder.to_owned(), self.slide.clone());
            return Err(SealError::Foreign { folder, slide });
        }
        for (name, digest) in self.files.iter().filter(|(name, _)| wanted(name)) {
            let path = folder.join(name);
            match sha256_file(&path) {
                Ok((_, found)) if found == *digest => {}
                Ok(_) => return Err(SealError::Changed(path)),
                Err(e) if e.source.kind() == std::io::ErrorKind::NotFound => {
                    return Err(SealError::Missing(path));
                }
                Err(e) => return Err(e.into()),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_damaged_missing_or_of_another_slide_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let folder = |name: &str| {
            let folder = dir.path().join(name);
            std::fs::create_dir(&folder).unwrap();
            for file in ["a", "b"] {
                std::fs::write(folder.join(file), format!("{name} {file}")).unwrap();
            }
            let sealed = Sealed::new(&folder, name, &["a", "b", "none"]).unwrap();
            assert_eq!(sealed.files.len(), 2);
            (folder, sealed)
        };
        let (one, sealed) = folder("one");
        let (two, other) = folder("two");
        let check = |folder: &Path, sealed: &Sealed| {
            sealed.check(folder, |_| true).map_err(|e| e.to_string())
        };
        assert_eq!(check(&one, &sealed), Ok(()));
        assert!(check(&one, &other).unwrap_err().contains("results of the slide `two`"));
        std::fs::copy(two.join("a"), one.join("a")).unwrap();
        assert!(check(&one, &sealed).unwrap_err().contains("not the file"));
        assert!(sealed.check(&one, |name| name == "b").is_ok());
        std::fs::remove_file(one.join("a")).unwrap();
        assert!(check(&one, &sealed).unwrap_err().contains("missing"));
    }
}
