//! Digests by which the graph sees what changed.
//!
//! A result's files are read whole. Of data and weights that somebody brought, files above 1 MiB are
//! read at their beginning and end alone, so that a terabyte of slides is looked at in seconds.

use crate::error::{ExperimentError, Result};
use base::digest::sha256;
use base::walk;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

const WHOLE: u64 = 1 << 20;
const END: u64 = 1 << 16;

/// Digest of a file or a folder that somebody brought.
///
/// # Errors
/// A file that cannot be read.
pub fn of_input(path: &Path) -> Result<String> {
    over(path, &|file| {
        let bad = |e| ExperimentError::path(file, e);
        let mut f = base::file::open_regular(file).map_err(bad)?;
        let length = f.metadata().map_err(bad)?.len();
        let mut bytes = vec![];
        if length <= WHOLE {
            f.read_to_end(&mut bytes).map_err(bad)?;
        } else {
            (&mut f).take(END).read_to_end(&mut bytes).map_err(bad)?;
            f.seek(SeekFrom::End(-(END as i64))).map_err(bad)?;
            f.read_to_end(&mut bytes).map_err(bad)?;
        }
        Ok(format!("{length}:{}", sha256(&bytes)))
    })
}

/// Digest of what a step made.
///
/// # Errors
/// A file that cannot be read, or is missing.
pub fn of_result(folder: &Path, makes: &[String]) -> Result<String> {
    let each = makes
        .iter()
        .map(|m| {
            let digest = over(&folder.join(m), &|file| {
                let (length, sha) = base::digest::sha256_file(file)
                    .map_err(|e| ExperimentError::path(file, e.source))?;
                Ok(format!("{length}:{sha}"))
            })?;
            Ok(format!("{m} {digest}\n"))
        })
        .collect::<Result<String>>()?;
    Ok(sha256(each.as_bytes()))
}

fn over(path: &Path, one: &dyn Fn(&Path) -> Result<String>) -> Result<String> {
    if path.is_file() {
        return one(path);
    }
    if !path.is_dir() {
        return Err(ExperimentError::path(path, "is not there"));
    }
    let mut lines = vec![];
    for file in files(path)? {
        let below = file.strip_prefix(path).unwrap_or(&file).to_string_lossy().replace('\\', "/");
        lines.push(format!("{below} {}\n", one(&file)?));
    }
    lines.sort();
    Ok(sha256(lines.concat().as_bytes()))
}

/// The files below a folder; what begins with a dot is left out.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let shown = |p: &Path| !p.file_name().is_some_and(|n| n.to_string_lossy().starts_with('.'));
    let mut all =
        walk::files(folder, &shown).map_err(|e| ExperimentError::path(&e.path, &e.source))?;
    all.retain(|p| p.is_file());
    Ok(all)
}
