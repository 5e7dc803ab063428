//! One slide file: its name in the results, and what tells it from another.

use artifact::digest::{Digest, Sha256, hex};
use artifact::table::uncell;
use mitosis::Mpp;
use mitosis::text::plain;
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// How much of either end of a slide goes into its digest.
const ENDS: u64 = 1 << 20;

/// One slide to read.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    /// Its file.
    pub path: PathBuf,
    /// Name of its folder in the results: the file name without its suffix.
    pub name: String,
    /// The user's um/px, if given.
    pub mpp: Option<Mpp>,
    /// Whether `mpp` was given for this slide alone: then the slide must not contradict it. One for
    /// all slides serves those that state none.
    pub own_mpp: bool,
    /// Further columns of the list that names it, with its cells, in the list's order; they are
    /// carried into the tables over the run and change no number.
    pub columns: Vec<(String, String)>,
}

impl Input {
    /// A file by itself, with the resolution that it states.
    #[must_use]
    pub fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            name: stem(path),
            mpp: None,
            own_mpp: false,
            columns: Vec::new(),
        }
    }

    /// The file's name, without its folder.
    #[must_use]
    pub fn file_name(&self) -> String {
        file_name(&self.path)
    }
}

pub(crate) fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// Longest folder name in bytes; file systems take 255.
const LONGEST: usize = 200;

/// The name of a slide's folder: the file name without its last suffix (`.ome.tif` counts as one
/// suffix), made safe so that it is always one folder below the one it is joined to. Control
/// characters, `/ \ : * ? " < > |` and dots at either end become `_`; an empty name becomes `_`,
/// and a very long one is cut. A table's apostrophe in front of `=`, `+`, `-` or `@` is taken off
/// ([`artifact::table::cell`]).
#[must_use]
pub fn stem(path: &Path) -> String {
    let name = path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    let lower = name.to_ascii_lowercase();
    let short = match lower.strip_suffix(".ome") {
        Some(short) if !short.is_empty() => &name[..short.len()],
        _ => &name,
    };
    folder_name(uncell(short))
}

fn folder_name(name: &str) -> String {
    let strange = |c: char| c.is_control() || r#"/\:*?"<>|"#.contains(c) || plain_differs(c);
    let mut safe: String = name.chars().map(|c| if strange(c) { '_' } else { c }).collect();
    while safe.len() > LONGEST {
        safe.pop();
    }
    let dots = |s: &str, from_end: bool| {
        let dot = |c: &char| matches!(c, '.' | ' ');
        if from_end {
            s.chars().rev().take_while(dot).count()
        } else {
            s.chars().take_while(|c| *c == '.').count()
        }
    };
    let (head, tail) = (dots(&safe, false), dots(&safe, true));
    let all = safe.chars().count();
    if all == 0 {
        return "_".into();
    }
    let keep = |(i, c): (usize, char)| if i < head || i + tail >= all { '_' } else { c };
    safe.chars().enumerate().map(keep).collect()
}

/// Whether a character is written out when it is shown.
fn plain_differs(c: char) -> bool {
    let mut buffer = [0; 4];
    let text: &str = c.encode_utf8(&mut buffer);
    plain(text) != text
}

/// What tells one slide file from another without reading all of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputDigest {
    /// Path as given.
    pub path: String,
    /// Bytes.
    pub size: u64,
    /// Seconds since 1970 of the last change; 0 when unknown.
    pub modified: u64,
    /// SHA-256 over size, first and last MiB.
    pub sha256: String,
}

impl InputDigest {
    /// Looks at a file.
    ///
    /// # Errors
    /// The system's, when it cannot be read.
    pub fn of(path: &Path) -> io::Result<Self> {
        let mut file = std::fs::File::open(path)?;
        let about = file.metadata()?;
        let size = about.len();
        let mut hash = Sha256::new();
        hash.update(size.to_le_bytes());
        let mut part = Vec::new();
        file.by_ref().take(ENDS).read_to_end(&mut part)?;
        hash.update(&part);
        if size > ENDS {
            part.clear();
            file.seek(SeekFrom::Start(size.saturating_sub(ENDS).max(ENDS)))?;
            file.take(ENDS).read_to_end(&mut part)?;
            hash.update(&part);
        }
        let modified = about.modified().ok().and_then(|t| t.duration_since(UNIX_EPOCH).ok());
        Ok(Self {
            path: path.display().to_string(),
            size,
            modified: modified.map_or(0, |d| d.as_secs()),
            sha256: hex(&hash.finalize()),
        })
    }

    /// Whether it holds the same bytes, as far as they are looked at.
    #[must_use]
    pub fn same_content(&self, other: &Self) -> bool {
        (self.size, &self.sha256) == (other.size, &other.sha256)
    }

    /// Whether it is the same file, wherever it lies now.
    #[must_use]
    pub fn same(&self, other: &Self) -> bool {
        (self.size, self.modified, &self.sha256) == (other.size, other.modified, &other.sha256)
    }
}

/// What tells that a file was changed or replaced while it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp {
    modified: Option<SystemTime>,
    /// Which file it is, where the system says so.
    node: u64,
    digest: InputDigest,
}

impl Stamp {
    /// Looks at a file.
    ///
    /// # Errors
    /// The system's, when it cannot be read.
    pub fn of(path: &Path) -> io::Result<Self> {
        let about = std::fs::metadata(path)?;
        #[cfg(unix)]
        let node = std::os::unix::fs::MetadataExt::ino(&about);
        #[cfg(not(unix))]
        let node = 0;
        Ok(Self { modified: about.modified().ok(), node, digest: InputDigest::of(path)? })
    }

    /// The digest that goes into the results.
    #[must_use]
    pub fn digest(&self) -> &InputDigest {
        &self.digest
    }

    /// What is another than in `self`; `None` for an untouched file.
    #[must_use]
    pub fn differs(&self, now: &Self) -> Option<&'static str> {
        if self.digest.size != now.digest.size {
            Some("its size")
        } else if self.digest.sha256 != now.digest.sha256 {
            Some("its content")
        } else if self.node != now.node {
            Some("the file in its place")
        } else {
            (self.modified != now.modified).then_some("its time of change")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stems() {
        for (path, name) in
            [("a/b.svs", "b"), ("x.ome.tif", "x"), ("c.1.tiff", "c.1"), (".ome.tif", "_ome")]
        {
            assert_eq!(stem(Path::new(path)), name);
        }
    }

    #[test]
    fn no_name_leads_out_of_the_folder() {
        for (file, name) in [
            ("...svs", "__"),
            ("..svs", "_"),
            ("....svs", "___"),
            ("..", "__"),
            ("a..svs", "a_"),
            ("a\nb.svs", "a_b"),
            ("\u{1b}[2Jx.svs", "_[2Jx"),
            ("a\\..\\b.svs", "a_.._b"),
            ("<img src=x>.svs", "_img src=x_"),
            ("=1+1.svs", "=1+1"),
            ("'=1+1.svs", "=1+1"),
            ("Fall 12 (HE).svs", "Fall 12 (HE)"),
        ] {
            assert_eq!(stem(Path::new(file)), name, "{file}");
        }
        let long = stem(Path::new(&format!("{}.svs", "ü".repeat(300))));
        assert!(long.len() <= LONGEST && long.len() > LONGEST - 4, "{}", long.len());
    }
}
