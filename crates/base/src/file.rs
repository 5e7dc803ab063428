//! Files that are there whole or not at all, and folders with one writer.

use crate::text::EncodingError;
use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tempfile::NamedTempFile;

/// How the names of files begin that are being written.
const UNFINISHED: &str = ".writing-";

/// Removes what killed processes left half written in a folder: files whose lock nobody holds, and
/// folders. With `alone`, the caller holds the folder's lock, and all of it goes.
fn sweep(folder: &Path, alone: bool) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let ours = entry.file_name().to_string_lossy().starts_with(UNFINISHED);
        let Ok(kind) = entry.file_type() else { continue };
        let path = entry.path();
        // What stays does no harm. The lock is held until it is gone, so that nobody fills it meanwhile.
        if ours && kind.is_file() {
            let lock = lock_left_over(&path);
            let _ = (alone || lock.is_some()).then(|| fs::remove_file(path));
        } else if ours && kind.is_dir() {
            let lock = lock_left_over(&path.join(LOCK));
            let removed = (alone || lock.is_some()).then(|| fs::remove_dir_all(&path));
            // Its lock may never have been made. An empty one has none for a moment before it gets its name, too.
            let _ = (removed.is_none() && is_old(&path)).then(|| fs::remove_dir(path));
        }
    }
}

/// The lock of a file that nobody holds.
fn lock_left_over(path: &Path) -> Option<File> {
    File::open(path).ok().filter(|file| file.try_lock().is_ok())
}

/// Whether a folder has not changed for a while.
fn is_old(folder: &Path) -> bool {
    let changed = fs::metadata(folder).and_then(|data| data.modified()).ok();
    changed.and_then(|time| time.elapsed().ok()).is_some_and(|age| age > Duration::from_secs(10))
}

/// How often a name is chosen again that a sweep took away before it was locked.
const TRIES: usize = 20;

/// Locks what was just made at `path`; false where a sweep removed it before. Without locks it is not swept.
fn lock_new(file: &File, path: &Path) -> bool {
    let locked = file.lock();
    locked.is_err() || path.exists()
}

/// Removes what killed processes left half written in a folder that nobody needs to lock, as that of
/// finished results. What a living process is writing stays.
pub fn remove_leftovers(folder: &Path) {
    sweep(folder, false);
}

/// Sweeps a folder once in the life of this process.
fn sweep_once(folder: &Path) {
    static SWEPT: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    if SWEPT.lock().unwrap_or_else(PoisonError::into_inner).insert(folder.to_owned()) {
        sweep(folder, false);
    }
}

/// Why a file could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {source}", path.display())]
pub struct WriteError {
    /// Path of the file that was to be written.
    pub path: PathBuf,
    /// Error of the operating system.
    pub source: io::Error,
}

/// Why a file could not be read.
#[derive(Debug, thiserror::Error)]
#[error("{}: cannot be read: {source}", path.display())]
pub struct ReadError {
    /// Path of the file that was to be read.
    pub path: PathBuf,
    /// Error of the operating system.
    pub source: io::Error,
}

/// What to do about a file that the system does not let be read, as the end of a message; none for one that is missing
/// or in whose place something else is, for one whose content is the cause, and for other errors. The system's error is
/// looked for in the whole chain.
#[must_use]
pub fn read_step(error: &(dyn std::error::Error + 'static)) -> Option<&'static str> {
    use io::ErrorKind::{FileTooLarge, InvalidData, IsADirectory, NotADirectory, NotFound, Other};
    let mut chain = std::iter::successors(Some(error), |e| e.source());
    match chain.find_map(|e| e.downcast_ref::<io::Error>())?.kind() {
        NotFound | NotADirectory | IsADirectory | InvalidData | FileTooLarge | Other => None,
        io::ErrorKind::PermissionDenied => {
            Some("; give this account the right to read it, then run this again")
        }
        _ => Some("; check the disk or network drive that it is on, then run this again"),
    }
}

/// Opens a regular file. Anything else that a path can lead to, such as a pipe or a device, may never
/// end or never answer.
///
/// # Errors
/// [`ReadError`] when it cannot be opened or is not a regular file.
pub fn open(path: &Path) -> Result<File, ReadError> {
    open_regular(path).map_err(|source| ReadError { path: path.to_owned(), source })
}

/// Like [`open`], for callers that name the file themselves.
///
/// # Errors
/// The system's, or that it is not a regular file.
pub fn open_regular(path: impl AsRef<Path>) -> io::Result<File> {
    let kind = fs::metadata(&path)?.file_type();
    if kind.is_dir() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "is a folder, not a file"));
    }
    if !kind.is_file() {
        let what = "not a regular file (a pipe or device); save it as a file first";
        return Err(io::Error::other(what));
    }
    File::open(path)
}

/// Reads a regular file of at most `largest` bytes.
///
/// # Errors
/// [`ReadError`] when it cannot be read, is not a regular file, or is larger.
pub fn read(path: &Path, largest: u64) -> Result<Vec<u8>, ReadError> {
    read_up_to(path, largest).map_err(|source| ReadError { path: path.to_owned(), source })
}

fn read_up_to(path: &Path, largest: u64) -> io::Result<Vec<u8>> {
    let file = open_regular(path)?;
    let size = file.metadata()?.len();
    let mut bytes = Vec::new();
    if size <= largest {
        bytes.try_reserve_exact(size.try_into().unwrap_or(usize::MAX))?;
        // It may grow while it is read.
        file.take(largest + 1).read_to_end(&mut bytes)?;
    }
    if size > largest || bytes.len() as u64 > largest {
        let what = format!("is larger than the {} MiB that are read of such a file", largest >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, what));
    }
    Ok(bytes)
}

/// Most bytes that [`read_whole`] reads: weights of the largest encoders are half of it.
pub const MOST_BYTES: u64 = 8 << 30;

/// Most bytes that [`read_string`] reads.
pub const MOST_TEXT: u64 = 512 << 20;

/// Reads a regular file of at most [`MOST_BYTES`], for callers that name the file themselves.
///
/// # Errors
/// The system's, or that it is not a regular file or is larger.
pub fn read_whole(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    read_up_to(path.as_ref(), MOST_BYTES)
}

/// Like [`read_whole`] for UTF-8 text of at most [`MOST_TEXT`].
///
/// # Errors
/// As there, and for bytes that are not UTF-8.
pub fn read_string(path: impl AsRef<Path>) -> io::Result<String> {
    text(read_up_to(path.as_ref(), MOST_TEXT)?)
}

/// Bytes as text, with a byte-order mark that they have.
pub(crate) fn text(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|e| {
        io::Error::new(io::ErrorKind::InvalidData, EncodingError::of_bytes(e.as_bytes()))
    })
}

/// Like [`read`] for UTF-8 text.
///
/// # Errors
/// [`ReadError`], for bytes that are not UTF-8, too.
pub fn read_text(path: &Path, largest: u64) -> Result<String, ReadError> {
    text(read(path, largest)?).map_err(|source| ReadError { path: path.to_owned(), source })
}

/// Who may read a new file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Whom the process's umask lets.
    Umask,
    /// Its owner alone.
    Private,
}

/// Writes `bytes` to `path` through a temporary file in the same folder: no reader ever sees half a
/// file, and a killed process leaves the old one. Its rights stay; the umask decides who may read a new one.
///
/// # Errors
/// [`WriteError`] when the folder is missing or not writable, the disk is full, or `path` is a device or a pipe.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), WriteError> {
    write_with(path, bytes, Access::Umask)
}

/// Like [`write()`]; `access` decides who may read the file.
///
/// # Errors
/// [`WriteError`].
pub fn write_with(path: &Path, bytes: &[u8], access: Access) -> Result<(), WriteError> {
    let mut file = temporary(path, access)?;
    let written = file.write_all(bytes).and_then(|()| file.as_file().sync_all());
    written.map_err(|source| WriteError { path: path.to_owned(), source })?;
    persist(file, path)
}

/// A temporary file in the folder of `path`, to be filled and handed to [`persist`].
///
/// # Errors
/// [`WriteError`] when the folder is missing or not writable.
pub fn new_temporary(path: &Path) -> Result<NamedTempFile, WriteError> {
    temporary(path, Access::Umask)
}

/// The rights of the file that is replaced, or an error where that is a device, a pipe, or a link to what a process has
/// open (`/dev/stdout`): taking its place would break it, and nothing would arrive.
fn replaced(path: &Path) -> io::Result<Option<fs::Permissions>> {
    if fs::read_link(path).is_ok_and(|to| to.starts_with("/proc")) {
        return Err(io::Error::other("is not a regular file (a link to an open one)"));
    }
    match fs::metadata(path) {
        Ok(data) if data.is_file() => Ok(Some(data.permissions())),
        // A folder is refused when the name is given.
        Ok(data) if data.is_dir() => Ok(None),
        Ok(_) => Err(io::Error::other("is not a regular file (a pipe or device)")),
        Err(_) => Ok(None),
    }
}

fn temporary(path: &Path, access: Access) -> Result<NamedTempFile, WriteError> {
    let fail = |source| WriteError { path: path.to_owned(), source };
    let rights = replaced(path).map_err(fail)?.filter(|_| access == Access::Umask);
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    sweep_once(folder);
    let mut builder = tempfile::Builder::new();
    builder.prefix(UNFINISHED);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = if access == Access::Private { 0o600 } else { 0o666 };
        builder.permissions(fs::Permissions::from_mode(mode));
    }
    // Elsewhere a file has the rights of its folder.
    #[cfg(not(unix))]
    let _ = access;
    let mut tries = (0..TRIES).map(|_| builder.tempfile_in(folder));
    let kept = tries.find(|made| made.as_ref().map_or(true, |f| lock_new(f.as_file(), f.path())));
    let file = kept.unwrap_or_else(|| Err(io::ErrorKind::ResourceBusy.into())).map_err(fail)?;
    if let Some(rights) = rights {
        // Those of another owner's file cannot be had everywhere.
        let _ = file.as_file().set_permissions(rights);
    }
    Ok(file)
}

/// Gives a temporary file its name.
///
/// # Errors
/// [`WriteError`] when it cannot be renamed.
pub fn persist(file: NamedTempFile, path: &Path) -> Result<(), WriteError> {
    file.persist(path).map_err(|e| WriteError { path: path.to_owned(), source: e.error })?;
    Ok(())
}

/// A folder that is being filled; it goes when dropped, and what a killed process left of one goes
/// when the next is made in the same place.
#[derive(Debug)]
pub struct Unfinished {
    folder: tempfile::TempDir,
    lock: File,
}

impl Unfinished {
    /// Makes one in `parent`.
    ///
    /// # Errors
    /// [`WriteError`] when it cannot be made.
    pub fn new(parent: &Path) -> Result<Self, WriteError> {
        let fail = |source| WriteError { path: parent.to_owned(), source };
        sweep_once(parent);
        let mut builder = tempfile::Builder::new();
        builder.prefix(UNFINISHED);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            builder.permissions(fs::Permissions::from_mode(0o777));
        }
        let mut tries = (0..TRIES).map(|_| -> io::Result<Option<Self>> {
            let folder = builder.tempdir_in(parent)?;
            let path = folder.path().join(LOCK);
            match File::create(&path) {
                Ok(lock) => Ok(lock_new(&lock, &path).then_some(Self { folder, lock })),
                // A sweep took the empty folder.
                Err(_) if !folder.path().exists() => Ok(None),
                Err(e) => Err(e),
            }
        });
        let made = tries.find_map(Result::transpose);
        made.unwrap_or_else(|| Err(io::ErrorKind::ResourceBusy.into())).map_err(fail)
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Gives it its name.
    ///
    /// # Errors
    /// [`WriteError`] when it cannot be renamed, for example because `path` exists and is not empty.
    pub fn persist(self, path: &Path) -> Result<(), WriteError> {
        let fail = |source| WriteError { path: path.to_owned(), source };
        fs::remove_file(self.folder.path().join(LOCK)).map_err(fail)?;
        fs::rename(self.folder.path(), path).map_err(fail)?;
        // There is nothing left to remove.
        let _ = self.folder.keep();
        drop(self.lock);
        Ok(())
    }
}

/// The file that is locked while a process works in a folder.
const LOCK: &str = ".lock";

/// Why a folder cannot be had alone.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Somebody else writes there.
    #[error(
        "another process is at work in {}; wait until it ends, or choose another folder", path.display()
    )]
    Busy {
        /// Folder in which another process works.
        path: PathBuf,
    },
    /// The lock file cannot be made.
    #[error("cannot write into {}: {source}", path.display())]
    Io {
        /// Folder of the lock file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
}

/// One writer per folder, as long as this lives. The system lets go of it when the process ends,
/// however it ends; the empty file `.lock` stays.
#[derive(Debug)]
pub struct Lock {
    file: File,
    /// Whether the file system locks at all.
    is_alone: bool,
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
        let open =
            OpenOptions::new().create(true).truncate(false).read(true).write(true).to_owned();
        let path = folder.join(LOCK);
        // A pipe of that name would never open.
        if fs::metadata(&path).is_ok_and(|m| !m.is_file()) {
            return Err(fail(io::Error::other(".lock is not a regular file; remove it")));
        }
        let file = open.open(path).map_err(fail)?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => Err(LockError::Busy { path: folder.to_owned() }),
            // Without locks it is unknown whose half-written files these are.
            Err(TryLockError::Error(_)) => Ok(Self { file, is_alone: false }),
            Ok(()) => {
                sweep(folder, true);
                Ok(Self { file, is_alone: true })
            }
        }
    }

    /// An empty standard input for a process that writes for the holder: until it has ended, too, nobody else takes the
    /// folder, though the holder was killed. Only Unix lets a process inherit a lock.
    #[must_use]
    pub fn input(&self) -> Stdio {
        let file = cfg!(unix).then(|| self.file.try_clone().ok()).flatten();
        file.map_or_else(Stdio::null, Stdio::from)
    }

    /// Removes what killed processes left half written in another folder that only holders of this lock write to.
    pub fn clear(&self, folder: &Path) {
        sweep(folder, self.is_alone);
    }

    /// Whether a process holds the folder now; `false` where that cannot be known.
    #[must_use]
    pub fn is_taken(folder: &Path) -> bool {
        let path = folder.join(LOCK);
        let file = fs::metadata(&path).is_ok_and(|m| m.is_file()).then(|| File::open(path));
        let locked = |f: File| matches!(f.try_lock_shared(), Err(TryLockError::WouldBlock));
        file.and_then(Result::ok).is_some_and(locked)
    }
}

/// A file or folder that cannot be read, written or used: the one error of everything that names one.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "fields whose names state what they are")]
pub enum FileError {
    /// The operating system refused.
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    /// It holds something else than asked for.
    #[error("{}: {reason}", path.display())]
    Content {
        /// Path of the file.
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
        let reason = reason.to_string();
        // Errors of tables begin with the file's path, too.
        let own = format!("{}: ", path.display());
        let reason = reason.strip_prefix(&own).map_or(reason.clone(), str::to_owned);
        Self::Content { path: path.to_path_buf(), reason }.into()
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
    fn a_step_is_given_for_what_the_system_refuses_wherever_it_is_in_the_chain() {
        let of = |kind: io::ErrorKind| {
            let read = ReadError { path: "a".into(), source: kind.into() };
            read_step(&crate::table::TableError::from(read))
        };
        assert!(of(io::ErrorKind::PermissionDenied).unwrap().contains("the right to read it"));
        let broken = io::Error::from_raw_os_error(5);
        let log = crate::log::LogError::Io { path: "a".into(), source: broken };
        assert!(read_step(&log).unwrap().contains("disk or network drive"));
        for kind in [io::ErrorKind::NotFound, io::ErrorKind::InvalidData] {
            assert_eq!(of(kind), None, "{kind}");
        }
        let folder = open(Path::new(".")).unwrap_err();
        assert_eq!(read_step(&folder), None);
        assert_eq!(read_step(&crate::log::NameError::Empty), None);
    }

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
    #[cfg(unix)]
    fn pipes_and_devices_are_not_replaced_and_rights_stay() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let link = dir.path().join("link");
        symlink("/dev/null", &link).unwrap();
        let open = dir.path().join("stdout");
        symlink("/proc/self/fd/1", &open).unwrap();
        for path in [&pipe, &link, &open] {
            let refused = write(path, b"x").unwrap_err().to_string();
            assert!(refused.contains("is not a regular file"), "{refused}");
            assert!(!fs::symlink_metadata(path).unwrap().is_file());
        }
        let path = dir.path().join("a.txt");
        write(&path, b"one").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        write(&path, b"two").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        write_with(&path, b"three", Access::Private).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn what_a_killed_process_left_goes_when_the_folder_is_taken() {
        let dir = tempfile::tempdir().unwrap();
        let half = new_temporary(&dir.path().join("a.json")).unwrap().keep().unwrap().1;
        fs::write(dir.path().join("mine.txt"), "x").unwrap();
        let held = Lock::take(dir.path()).unwrap();
        assert!(!half.exists());
        // A process that does not get the folder touches nothing in it.
        let busy = new_temporary(&dir.path().join("a.json")).unwrap();
        assert!(Lock::take(dir.path()).is_err());
        assert!(busy.path().exists() && dir.path().join("mine.txt").exists());
        drop(held);
    }

    #[test]
    #[cfg(unix)]
    fn the_umask_is_kept_and_private_files_are_private() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let mode =
            |name: &str| fs::metadata(dir.path().join(name)).unwrap().permissions().mode() & 0o777;
        fs::write(dir.path().join("plain"), "x").unwrap();
        write(&dir.path().join("a"), b"x").unwrap();
        write_with(&dir.path().join("b"), b"x", Access::Private).unwrap();
        assert_eq!((mode("a"), mode("b")), (mode("plain"), 0o600));
        fs::create_dir(dir.path().join("folder")).unwrap();
        let made = Unfinished::new(dir.path()).unwrap();
        fs::write(made.path().join("x"), "x").unwrap();
        made.persist(&dir.path().join("made")).unwrap();
        assert_eq!(mode("made"), mode("folder"));
        assert_eq!(fs::read_dir(dir.path().join("made")).unwrap().count(), 1);
    }

    #[test]
    fn what_another_process_left_goes_and_what_it_writes_stays() {
        let dir = tempfile::tempdir().unwrap();
        let name = |n: &str| dir.path().join(n);
        fs::write(name(".writing-dead"), "half").unwrap();
        fs::create_dir(name(".writing-folder")).unwrap();
        fs::write(name(".writing-folder/.lock"), "\n").unwrap();
        // Killed before anything was written, or locked.
        fs::write(name(".writing-empty"), "").unwrap();
        fs::create_dir(name(".writing-bare")).unwrap();
        let old = std::time::SystemTime::now() - Duration::from_secs(60);
        File::open(name(".writing-bare")).unwrap().set_modified(old).unwrap();
        fs::write(name(".writing-alive"), "half").unwrap();
        let alive = File::open(name(".writing-alive")).unwrap();
        alive.try_lock().unwrap();
        write(&name("a"), b"x").unwrap();
        for gone in [".writing-dead", ".writing-folder", ".writing-empty", ".writing-bare"] {
            assert!(!name(gone).exists(), "{gone}");
        }
        assert!(name(".writing-alive").exists());
    }

    #[test]
    fn a_sweep_takes_nothing_that_is_being_written() {
        let dir = tempfile::tempdir().unwrap();
        let is_done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_done.load(std::sync::atomic::Ordering::Relaxed) {
                    sweep(dir.path(), false);
                }
            });
            let written = (0..200).try_for_each(|k| {
                write(&dir.path().join(format!("{k}.txt")), b"x")?;
                let folder = Unfinished::new(dir.path())?;
                folder.persist(&dir.path().join(format!("{k}")))
            });
            is_done.store(true, std::sync::atomic::Ordering::Relaxed);
            written.unwrap();
        });
        let left = fs::read_dir(dir.path()).unwrap().count();
        assert_eq!(left, 400);
    }

    #[test]
    fn only_regular_files_of_a_size_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        fs::write(&path, "four").unwrap();
        assert_eq!(read(&path, 4).unwrap(), b"four");
        assert!(read(&path, 3).unwrap_err().to_string().contains("larger than"));
        assert!(read(dir.path(), 3).unwrap_err().to_string().contains("is a folder"));
        assert_eq!(
            (read_whole(&path).unwrap(), read_string(&path).unwrap()),
            (b"four".into(), "four".into())
        );
        #[cfg(unix)]
        for special in [read_whole("/dev/zero").map(drop), read_string("/dev/tty").map(drop)] {
            assert!(special.unwrap_err().to_string().contains("not a regular"));
        }
        #[cfg(unix)]
        assert!(read(Path::new("/dev/zero"), 3).unwrap_err().to_string().contains("not a regular"));
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

    #[test]
    #[cfg(unix)]
    fn a_process_that_was_begun_holds_the_folder_to_its_end() {
        use std::process::Command;
        let dir = tempfile::tempdir().unwrap();
        let lock = Lock::take(dir.path()).unwrap();
        let mut child = Command::new("sleep").arg("60").stdin(lock.input()).spawn().unwrap();
        drop(lock);
        assert!(Lock::is_taken(dir.path()) && Lock::take(dir.path()).is_err());
        child.kill().unwrap();
        child.wait().unwrap();
        Lock::take(dir.path()).unwrap();
        // It reads as an empty file.
        let lock = Lock::take(dir.path()).unwrap();
        let out = Command::new("cat").stdin(lock.input()).output().unwrap();
        assert!(out.status.success() && out.stdout.is_empty(), "{out:?}");
    }
}
