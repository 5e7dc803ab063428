//! Writing files: to a temporary name beside the target, then renamed, so that no reader ever sees
//! half a file and an interrupted run leaves none.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Why a file could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {path}: {source}")]
pub struct WriteError {
    /// The file.
    pub path: PathBuf,
    /// The reason.
    pub source: io::Error,
}

/// Writes `bytes` to `path`.
///
/// # Errors
/// [`WriteError`] when the folder is missing or not writable, or the disk is full.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), WriteError> {
    let fail = |source| WriteError { path: path.to_owned(), source };
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file =
        tempfile::Builder::new().prefix(".writing-").tempfile_in(folder).map_err(fail)?;
    file.write_all(bytes).and_then(|()| file.flush()).map_err(fail)?;
    readable(file.path()).map_err(fail)?;
    file.persist(path).map_err(|e| fail(e.error))?;
    Ok(())
}

/// Temporary files are private; results are for everyone the folder is open to.
pub(crate) fn readable(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o644))?;
    }
    #[cfg(not(unix))]
    let _ = path;
    Ok(())
}

/// Writes a CSV file with a header.
///
/// # Errors
/// [`WriteError`] as for [`write()`].
pub fn write_csv<const N: usize>(
    path: &Path,
    header: &[&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> Result<(), WriteError> {
    let mut out = csv::Writer::from_writer(Vec::new());
    let fail = |e: csv::Error| WriteError { path: path.to_owned(), source: io::Error::other(e) };
    out.write_record(header).map_err(fail)?;
    for row in rows {
        out.write_record(&row).map_err(fail)?;
    }
    let bytes =
        out.into_inner().map_err(|e| fail(csv::Error::from(io::Error::other(e.to_string()))))?;
    write(path, &bytes)
}
