//! Files that are there whole or not at all, and folders with one writer.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// How the names of files begin that are being written.
const UNFINISHED: &str = ".writing-";

/// Removes what killed processes left half written in a folder. Only the holder of its lock may.
fn sweep(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let ours = entry.file_name().to_string_lossy().starts_with(UNFINISHED);
        if ours && entry.file_type().is_ok_and(|t| t.is_file()) {
            // One that stays does no harm.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Why a file could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {source}", path.display())]
pub struct WriteError {
    /// The file.
    pub path: PathBuf,
    /// The reason.
    pub source: io::Error,
}

/// Why a file could not be read.
#[derive(Debug, thiserror::Error)]
#[error("{}: cannot be read: {source}", path.display())]
pub struct ReadError {
    /// The file.
    pub path: PathBuf,
    /// The reason.
    pub source: io::Error,
}

/// Writes `bytes` to `path` by way of a temporary file beside it, so that no reader ever sees half a
/// file and a killed process leaves the old one.
///
/// # Errors
/// [`WriteError`] when the folder is missing or not writable, or the disk is full.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), WriteError> {
    let mut file = beside(path)?;
    let written = file.write_all(bytes).and_then(|()| file.as_file().sync_all());
    written.map_err(|source| WriteError { path: path.to_owned(), source })?;
    persist(file, path)
}

/// A temporary file in the folder of `path`, to be filled and handed to [`persist`].
///
/// # Errors
/// [`WriteError`] when the folder is missing or not writable.
pub fn beside(path: &Path) -> Result<NamedTempFile, WriteError> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    tempfile::Builder::new()
        .prefix(UNFINISHED)
        .tempfile_in(folder)
        .map_err(|source| WriteError { path: path.to_owned(), source })
}

/// Gives a temporary file its name. It was private; a result is for everyone the folder is open to.
///
/// # Errors
/// [`WriteError`] when it cannot be renamed.
pub fn persist(file: NamedTempFile, path: &Path) -> Result<(), WriteError> {
    let fail = |source| WriteError { path: path.to_owned(), source };
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        file.as_file().set_permissions(fs::Permissions::from_mode(0o644)).map_err(fail)?;
    }
    file.persist(path).map_err(|e| fail(e.error))?;
    Ok(())
}

/// Why a folder cannot be had alone.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Somebody else writes there.
    #[error(
        "another process is at work in {}; wait until it ends, or choose another folder", path.display()
    )]
    Busy {
        /// The folder.
        path: PathBuf,
    },
    /// The lock file cannot be made.
    #[error("cannot write into {}: {source}", path.display())]
    Io {
        /// The folder.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
}

/// One writer per folder, as long as this lives. The system lets go of it when the process ends,
/// however it ends; the empty file `.lock` stays.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Makes the folder where it is missing, and takes it.
    ///
    /// A file system without locks (some network mounts) gives none: there the folder is written to
    /// as if it were alone.
    ///
    /// # Errors
    /// [`LockError`].
    pub fn take(folder: &Path) -> Result<Self, LockError> {
        let fail = |source| LockError::Io { path: folder.to_owned(), source };
        fs::create_dir_all(folder).map_err(fail)?;
        let open = OpenOptions::new().create(true).truncate(false).write(true).to_owned();
        let file = open.open(folder.join(".lock")).map_err(fail)?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => Err(LockError::Busy { path: folder.to_owned() }),
            // Without locks nobody can tell whose half-written files these are.
            Err(TryLockError::Error(_)) => Ok(Self { _file: file }),
            Ok(()) => {
                sweep(folder);
                Ok(Self { _file: file })
            }
        }
    }
}

/// A file or folder that cannot be read, written or used: the one error of everything that names one.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The operating system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// File or folder.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// It holds something else than asked for.
    #[error("{}: {reason}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

impl FileError {
    /// Wraps the system's reason with its path.
    pub fn io<E: From<Self>>(path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> E {
        let path = path.as_ref().to_path_buf();
        move |source| Self::Io { path, source }.into()
    }

    /// What is wrong with a file.
    pub fn content<E: From<Self>>(path: &Path, reason: impl ToString) -> E {
        Self::Content { path: path.to_path_buf(), reason: reason.to_string() }.into()
    }
}

impl From<WriteError> for FileError {
    fn from(e: WriteError) -> Self {
        Self::Io { path: e.path, source: e.source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_a_failure_leaves_the_old_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.txt");
        write(&path, b"one").unwrap();
        write(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        let missing = write(&dir.path().join("no/b.txt"), b"x").unwrap_err();
        assert!(missing.to_string().contains("no/b.txt"), "{missing}");
    }

    #[test]
    fn what_a_killed_process_left_goes_when_the_folder_is_taken() {
        let dir = tempfile::tempdir().unwrap();
        let half = beside(&dir.path().join("a.json")).unwrap().keep().unwrap().1;
        fs::write(dir.path().join("mine.txt"), "x").unwrap();
        let held = Lock::take(dir.path()).unwrap();
        assert!(!half.exists());
        // Whoever does not get the folder touches nothing in it.
        let busy = beside(&dir.path().join("a.json")).unwrap();
        assert!(Lock::take(dir.path()).is_err());
        assert!(busy.path().exists() && dir.path().join("mine.txt").exists());
        drop(held);
    }

    #[test]
    fn a_folder_has_one_writer_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("run");
        let first = Lock::take(&folder).unwrap();
        let second = Lock::take(&folder).unwrap_err();
        assert!(second.to_string().contains("another process is at work in"), "{second}");
        drop(first);
        Lock::take(&folder).unwrap();
        fs::write(dir.path().join("file"), "").unwrap();
        assert!(matches!(Lock::take(&dir.path().join("file")), Err(LockError::Io { .. })));
    }
}
