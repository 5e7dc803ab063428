//! Logs of lines that are only ever appended to: a line is on disk before it is acknowledged, and
//! there whole or not at all.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Longest name of a log, letters.
pub const LONGEST_NAME: usize = 64;

/// Largest log that is read, bytes.
const LARGEST: u64 = 512 << 20;

/// Why a name cannot be a log's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Nothing.
    #[error("nothing was entered; a letter or digit will do")]
    Empty,
    /// More letters than a file's name should have.
    #[error("{0} characters are too many; take at most {LONGEST_NAME}")]
    Long(usize),
    /// It would be a hidden file.
    #[error("the first character is a dot; begin with a letter or digit")]
    Dot,
    /// What Windows takes for a device, whatever follows behind a dot.
    #[error("Windows reads `{0}` as a device and not as a file; add a letter or digit")]
    Device(String),
    /// Letters that mean something in a path, or that not every file system knows.
    #[error("{} cannot be used; take letters a to z, digits, `-`, `_` and `.`", listed(.0))]
    Letters(Vec<char>),
}

/// Names of devices on Windows, without the numbered ones.
const DEVICES: [&str; 4] = ["con", "prn", "aux", "nul"];

/// Whether Windows takes a name of letters and digits for a device: `con`, `AUX.x`, `com1`.
fn is_device(name: &str) -> bool {
    let first = name.split('.').next().unwrap_or_default().to_ascii_lowercase();
    let digit = |n: &str| n.len() == 1 && n.chars().all(|c| c.is_ascii_digit());
    let port = |p: &str| first.strip_prefix(p).is_some_and(digit);
    DEVICES.contains(&first.as_str()) || port("com") || port("lpt")
}

fn listed(letters: &[char]) -> String {
    let word = |c: &char| match c {
        ' ' => "a space".to_owned(),
        c if c.is_control() => format!("the character U+{:04X}", u32::from(*c)),
        c => format!("`{c}`"),
    };
    letters.iter().map(word).collect::<Vec<_>>().join(" and ")
}

/// Whether a name may be a log's, and leads nowhere: up to 64 letters, digits, `-`, `_` or `.`, which
/// is not the first.
///
/// # Errors
/// [`NameError`], with the reason.
pub fn check_name(name: &str) -> Result<(), NameError> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let mut letters: Vec<char> = name.chars().filter(|c| !allowed(*c)).collect();
    letters.dedup();
    match name.chars().count() {
        0 => Err(NameError::Empty),
        n if n > LONGEST_NAME => Err(NameError::Long(n)),
        _ if !letters.is_empty() => {
            letters.truncate(3);
            Err(NameError::Letters(letters))
        }
        _ if name.starts_with('.') => Err(NameError::Dot),
        _ if is_device(name) => Err(NameError::Device(name.to_owned())),
        _ => Ok(()),
    }
}

/// Why a log cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The log cannot be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// Path of the log.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// It is not the file that was opened, or not as long.
    #[error(
        "{}: another program moved, replaced or cut this file after it was opened, so nothing is saved until it is \
         opened again", path.display()
    )]
    Replaced {
        /// Path of the log.
        path: PathBuf,
    },
    /// Another process holds it.
    #[error("{}: another process is at work on it", path.display())]
    Busy {
        /// Path of the log.
        path: PathBuf,
    },
}

/// What a log is written to.
trait Disk: Send {
    /// Adds bytes at the end; on disk when this returns.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Cuts everything from `length` on.
    fn cut(&mut self, length: u64) -> io::Result<()>;
}

impl Disk for File {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_all(bytes)?;
        self.sync_data()
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)?;
        self.sync_data()
    }
}

/// A log that this process alone appends to, as long as this lives.
pub struct Log {
    path: PathBuf,
    disk: Box<dyn Disk>,
    /// Which file was opened.
    file: Identity,
    /// Length of the whole lines.
    good: u64,
    /// What follows them must go before anything is added.
    torn: bool,
}

impl Log {
    /// Opens a file, creating it when new, and returns its complete lines. A last line that a crash cut
    /// short is not returned, and is removed before the next one is appended.
    ///
    /// # Errors
    /// [`LogError`].
    pub fn open(path: &Path) -> Result<(Self, String), LogError> {
        let fail = |source| LogError::Io { path: path.to_owned(), source };
        check_kind(path).map_err(fail)?;
        let mut options = OpenOptions::new();
        options.create(true).read(true).append(true);
        // One person's review of a slide is not for everybody.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(path).map_err(fail)?;
        if file.try_lock().is_err() {
            return Err(LogError::Busy { path: path.to_owned() });
        }
        // Read under the lock: nobody adds a line between reading and writing.
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(fail)?;
        let mut text = crate::file::text(bytes).map_err(fail)?;
        let whole = text.rfind('\n').map_or(0, |i| i + 1);
        let torn = whole < text.len();
        text.truncate(whole);
        let identity = identity(&file.metadata().map_err(fail)?);
        let disk = Box::new(file);
        let good = whole as u64;
        Ok((Self { path: path.to_owned(), disk, file: identity, good, torn }, text))
    }

    /// The whole lines of a log that somebody else may hold.
    ///
    /// # Errors
    /// [`LogError::Io`].
    pub fn read(path: &Path) -> Result<String, LogError> {
        let fail = |source| LogError::Io { path: path.to_owned(), source };
        check_kind(path).map_err(fail)?;
        let mut text = crate::file::read_string(path).map_err(fail)?;
        text.truncate(text.rfind('\n').map_or(0, |i| i + 1));
        Ok(text)
    }

    /// Path of the log.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a line, which holds no line break itself. On disk before this returns; after an error the
    /// log is as before.
    ///
    /// # Errors
    /// [`LogError::Io`] when the disk refuses, [`LogError::Replaced`] when the path leads to another file or to less.
    pub fn append(&mut self, line: &str) -> Result<(), LogError> {
        let is_whole = |len: u64| if self.torn { len >= self.good } else { len == self.good };
        let now = std::fs::symlink_metadata(&self.path).ok();
        if !now.is_some_and(|now| identity(&now) == self.file && is_whole(now.len())) {
            return Err(LogError::Replaced { path: self.path.clone() });
        }
        let fail = |source| LogError::Io { path: self.path.clone(), source };
        if self.torn {
            self.disk.cut(self.good).map_err(fail)?;
            self.torn = false;
        }
        let text = format!("{line}\n");
        if let Err(e) = self.disk.append(text.as_bytes()) {
            // Half a line must not stay: the next one would be glued to it.
            self.torn = self.disk.cut(self.good).is_err();
            return Err(fail(e));
        }
        self.good += text.len() as u64;
        Ok(())
    }
}

/// Device and number of a file.
type Identity = (u64, u64);

#[cfg(unix)]
fn identity(data: &std::fs::Metadata) -> Identity {
    use std::os::unix::fs::MetadataExt;
    (data.dev(), data.ino())
}

/// Elsewhere an open file cannot be replaced.
#[cfg(not(unix))]
fn identity(_: &std::fs::Metadata) -> Identity {
    (0, 0)
}

/// Refuses a path that is there and is not a regular file: a link would be written to wherever it
/// leads, and a pipe may never answer.
fn check_kind(path: &Path) -> io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Ok(data) if data.is_symlink() => {
            Err(io::Error::other("is a link; a log must be a file of its own folder"))
        }
        Ok(data) if !data.is_file() => Err(io::Error::other("is not a regular file")),
        Ok(data) if data.len() > LARGEST => Err(io::Error::other("is too large for a log")),
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    /// A disk with so much room; `stuck`: what was half written cannot be cut off.
    struct Small {
        file: File,
        room: Arc<Mutex<(usize, bool)>>,
    }

    impl Disk for Small {
        fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
            let mut room = self.room.lock().unwrap();
            let n = bytes.len().min(room.0);
            self.file.append(&bytes[..n])?;
            room.0 -= n;
            if n < bytes.len() { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
        }

        fn cut(&mut self, length: u64) -> io::Result<()> {
            match self.room.lock().unwrap().1 {
                true => Err(io::Error::other("stuck")),
                false => self.file.cut(length),
            }
        }
    }

    #[test]
    fn a_refused_name_states_why() {
        for good in ["anna", "A-1_b.c", "cona", "com", "com12", "lpt.1", &"x".repeat(64)] {
            assert_eq!(check_name(good), Ok(()), "{good}");
        }
        for (bad, part) in [
            ("", "nothing was entered"),
            (&*"x".repeat(65), "65 characters are too many"),
            (".anna", "a dot"),
            ("../x", "`/` cannot be used"),
            ("Jörg M", "`ö` and a space cannot be used"),
            ("a\u{7}", "U+0007"),
            ("con", "Windows reads `con` as a device"),
            ("AUX.b", "as a device"),
            ("Com1", "as a device"),
            ("lpt9", "as a device"),
        ] {
            let message = check_name(bad).unwrap_err().to_string();
            assert!(message.contains(part), "{bad}: {message}");
        }
    }

    #[test]
    fn a_full_disk_leaves_no_half_line() {
        for stuck in [false, true] {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("a.jsonl");
            let (mut log, before) = Log::open(&path).unwrap();
            assert!(before.is_empty());
            log.append("one").unwrap();
            let room = Arc::new(Mutex::new((2, stuck)));
            let file = OpenOptions::new().append(true).open(&path).unwrap();
            log.disk = Box::new(Small { file, room: Arc::clone(&room) });
            assert!(log.append("two").is_err() && log.append("2").is_err());
            // Room again: the next line is complete.
            *room.lock().unwrap() = (100, false);
            log.append("three").unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\nthree\n", "stuck: {stuck}");
        }
    }

    #[test]
    #[cfg(unix)]
    fn a_link_is_refused_and_a_log_is_private() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let (link, outside) = (dir.path().join("a.jsonl"), dir.path().join("outside"));
        std::os::unix::fs::symlink(&outside, &link).unwrap();
        let refused = Log::open(&link).err().unwrap().to_string();
        assert!(refused.contains("is a link") && !outside.exists(), "{refused}");
        let path = dir.path().join("b.jsonl");
        Log::open(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn nothing_is_added_to_a_log_that_was_replaced_or_cut() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.jsonl");
        let copy = || {
            std::fs::copy(&path, dir.path().join("copy")).unwrap();
            std::fs::rename(dir.path().join("copy"), &path).unwrap();
        };
        let cut = || OpenOptions::new().write(true).open(&path).unwrap().set_len(2).unwrap();
        let gone = || std::fs::remove_file(&path).unwrap();
        for change in [&copy as &dyn Fn(), &cut, &gone] {
            let _ = std::fs::remove_file(&path);
            let (mut log, _) = Log::open(&path).unwrap();
            log.append("one").unwrap();
            change();
            let refused = log.append("two").unwrap_err();
            assert!(matches!(refused, LogError::Replaced { .. }), "{refused}");
        }
    }

    #[test]
    fn a_cut_last_line_goes_and_one_process_holds_a_log() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.jsonl");
        std::fs::write(&path, "one\ntw").unwrap();
        let (mut log, text) = Log::open(&path).unwrap();
        assert_eq!(text, "one\n");
        assert!(matches!(Log::open(&path), Err(LogError::Busy { .. })));
        assert_eq!(Log::read(&path).unwrap(), "one\n");
        log.append("three").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\nthree\n");
    }
}
