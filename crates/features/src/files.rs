//! Images that folders hold.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Why a folder gave no images.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    /// A folder without images.
    #[error("{}: no image in this folder", .0.display())]
    NoImage(PathBuf),
    /// Nothing is there.
    #[error("{}: no such file or folder", .0.display())]
    Missing(PathBuf),
    /// A folder cannot be listed.
    #[error("{}: {source}", path.display())]
    Io {
        /// The folder.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
}

fn is_image(path: &Path) -> bool {
    let suffix = path.extension().and_then(|e| e.to_str()).unwrap_or("").to_ascii_lowercase();
    ["png", "jpg", "jpeg", "tif", "tiff", "bmp", "webp"].contains(&suffix.as_str())
}

fn walk(dir: &Path, found: &mut BTreeSet<PathBuf>) -> Result<(), FilesError> {
    let fail = |source| FilesError::Io { path: dir.to_owned(), source };
    for entry in std::fs::read_dir(dir).map_err(fail)? {
        let path = entry.map_err(fail)?.path();
        if path.is_dir() {
            walk(&path, found)?;
        } else if is_image(&path) {
            found.insert(path);
        }
    }
    Ok(())
}

/// The images that `inputs` name, each once; folders are searched through.
///
/// # Errors
/// [`FilesError`].
pub fn images(inputs: &[PathBuf]) -> Result<Vec<PathBuf>, FilesError> {
    let mut all = Vec::new();
    let mut seen = BTreeSet::new();
    for input in inputs {
        let mut found = BTreeSet::new();
        if input.is_dir() {
            walk(input, &mut found)?;
            if found.is_empty() {
                return Err(FilesError::NoImage(input.clone()));
            }
        } else if input.exists() {
            found.insert(input.clone());
        } else {
            return Err(FilesError::Missing(input.clone()));
        }
        all.extend(found.into_iter().filter(|p| seen.insert(p.clone())));
    }
    Ok(all)
}
