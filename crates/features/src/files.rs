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
        /// Folder that cannot be listed.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
}

fn is_image(path: &Path) -> bool {
    let suffix = path.extension().and_then(|e| e.to_str()).unwrap_or("").to_ascii_lowercase();
    ["png", "jpg", "jpeg", "tif", "tiff", "bmp", "webp"].contains(&suffix.as_str())
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
            let files = base::walk::files(input, &|_| true)
                .map_err(|e| FilesError::Io { path: e.path, source: e.source })?;
            found.extend(files.into_iter().filter(|f| is_image(f)));
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
