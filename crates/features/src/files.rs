//! Images that folders hold.

use base::text::Shown;
use mitosis::RgbTile;
use regions::scene::read_rgb;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Why a folder gave no images.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "fields whose names state what they are")]
pub enum FilesError {
    /// A folder without images.
    #[error("{}: no image in this folder", .0.display())]
    NoImage(PathBuf),
    /// Nothing is there.
    #[error("{}: no such file or folder", .0.display())]
    Missing(PathBuf),
    /// An image of a format that is not decoded.
    #[error(
        "{}: images of the format {format} are not read; save it as PNG, TIFF or JPEG",
        Shown(path)
    )]
    Format { path: PathBuf, format: &'static str },
    /// A folder cannot be listed.
    #[error("{}: {source}", path.display())]
    Io {
        /// Folder that cannot be listed.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
}

/// Formats of images that are listed, so that none is passed over in silence, but not decoded.
const UNREAD: [(&str, &str); 2] = [("bmp", "BMP"), ("webp", "WebP")];

fn suffix(path: &Path) -> String {
    path.extension().and_then(|e| e.to_str()).unwrap_or("").to_ascii_lowercase()
}

fn is_image(path: &Path) -> bool {
    let suffix = suffix(path);
    let read = ["png", "jpg", "jpeg", "tif", "tiff"];
    read.contains(&&*suffix) || UNREAD.iter().any(|(unread, _)| *unread == suffix)
}

/// Reads an image file.
///
/// # Errors
/// A sentence with its path: [`FilesError::Format`], or what is wrong with it.
pub(crate) fn image(path: &Path) -> Result<RgbTile, String> {
    let suffix = suffix(path);
    if let Some((_, format)) = UNREAD.into_iter().find(|(unread, _)| *unread == suffix) {
        return Err(FilesError::Format { path: path.to_owned(), format }.to_string());
    }
    read_rgb(path).map_err(|e| e.to_string())
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
