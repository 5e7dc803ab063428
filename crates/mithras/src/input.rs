//! One slide file: its name in the results, and its identity.

use crate::regions::RegionSource;
use base::digest::{sha256, sha256_ends, sha256_pieces};
use base::name::folder_name;
use base::table::uncell;
use mitosis::Mpp;
use remote::{Address, Object, RemoteError};
use serde::{Deserialize, Serialize};
use std::fs::Metadata;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// One slide to read.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    /// Its file, or its address without a query.
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
    /// The regions that are to be searched; none for the whole slide.
    pub regions: Option<RegionSource>,
    /// The list, or the command, that names it, with all slides of it, also those that other processes do.
    pub list: Option<Arc<Listed>>,
}

/// The slides of a list, or of a command, with their further columns, as the records of a run hold them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Listed {
    /// Version of this format.
    pub schema: String,
    /// All its slides.
    pub slides: Vec<ListedSlide>,
    /// Where the list is: one that was corrected replaces its record.
    #[serde(skip)]
    pub source: String,
}

/// A slide of a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ListedSlide {
    /// Name of its folder.
    pub name: String,
    /// Its cells, by column.
    pub columns: Vec<(String, String)>,
}

impl Input {
    /// A file by itself, with the resolution that it states.
    #[must_use]
    pub fn new(path: &Path) -> Self {
        // A query would appear in the results. Faults of an address are reported where it is opened.
        let address = Address::parse(path).ok().flatten();
        Self {
            path: address.map_or_else(|| path.to_owned(), |a| a.path()),
            name: stem(path),
            mpp: None,
            own_mpp: false,
            columns: Vec::new(),
            regions: None,
            list: None,
        }
    }

    /// The file's name, without its folder.
    #[must_use]
    pub fn file_name(&self) -> String {
        file_name(&self.path)
    }
}

pub(crate) fn file_name(path: &Path) -> String {
    let last = Address::parse(path).ok().flatten().map(|a| a.file_name());
    let path = last.as_deref().unwrap_or(path);
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// The name of a slide's folder: the file name (of an address, its last part, with `%20` and the like
/// decoded) without its last suffix (`.ome.tif` counts as one
/// suffix), made safe so that it is always one folder below the one it is joined to. Control
/// characters, `/ \ : * ? " < > |` and dots at either end become `_`; an empty name becomes `_`,
/// and a very long one is cut. A table's apostrophe in front of `=`, `+`, `-` or `@` is taken off
/// ([`base::table::cell`]). A name that a table over the run has gets an underscore behind it.
#[must_use]
pub fn stem(path: &Path) -> String {
    let last = Address::parse(path).ok().flatten().map(|a| a.file_name());
    let path = last.as_deref().unwrap_or(path);
    let name = path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    let lower = name.to_ascii_lowercase();
    let short = match lower.strip_suffix(".ome") {
        Some(short) if !short.is_empty() => &name[..short.len()],
        _ => &name,
    };
    let mut name = folder_name(uncell(short));
    if RESERVED.split(' ').any(|taken| taken == name.to_lowercase()) {
        name.push('_');
    }
    name
}

/// Names in the folder of a run or corpus that are not slides'. Compared without case, as some file
/// systems do.
const RESERVED: &str = "counts.csv cases.csv regions.csv run.json summary.html recount.csv reviews reports \
    truth.csv slides.csv build.json corpus joined evaluation.json robustness.json robustness.csv robustness.svg \
    candidates.csv quality.csv quality.html state.json report.html results.json";

/// The identity of a slide file, without reading all of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputDigest {
    /// Path or address as given; an address without its query.
    pub path: String,
    /// Bytes.
    pub size: u64,
    /// Seconds since 1970 of the last change; 0 when unknown.
    pub modified: u64,
    /// SHA-256 over size, first and last MiB.
    pub sha256: String,
    /// SHA-256 over pieces between them ([`sha256_pieces`]), which differs between slides with the same white margins;
    /// absent of a small file, of an object on a server and in files of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pieces_sha256: Option<String>,
    /// Of a slide in several files on this machine ([`slide::further_files`]): SHA-256 over names, sizes and ends of
    /// the others; absent in files of earlier versions, which cover the named file alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series_sha256: Option<String>,
}

impl InputDigest {
    /// Looks at a file, or at an object on a server: its copy on this machine has the same digest.
    ///
    /// # Errors
    /// The system's or the server's, when it cannot be read.
    pub fn from_file(path: &Path) -> io::Result<Self> {
        Ok(Stamp::from_file(path)?.digest)
    }

    /// Of a file that cannot be read.
    pub(crate) fn unseen(path: String) -> Self {
        let (pieces_sha256, series_sha256) = (None, None);
        Self { path, size: 0, modified: 0, sha256: String::new(), pieces_sha256, series_sha256 }
    }

    /// Whether it holds the same bytes, as far as both were looked at.
    #[must_use]
    pub fn same_content(&self, other: &Self) -> bool {
        let pieces = self.pieces_sha256.as_ref().zip(other.pieces_sha256.as_ref());
        (self.size, &self.sha256) == (other.size, &other.sha256)
            && pieces.is_none_or(|(a, b)| a == b)
    }

    /// The same, with the other files of the slide, as far as both were looked at.
    #[must_use]
    pub fn same_slide(&self, other: &Self) -> bool {
        let series = self.series_sha256.as_ref().zip(other.series_sha256.as_ref());
        self.same_content(other) && series.is_none_or(|(a, b)| a == b)
    }

    /// Names this file among all, for what is kept of it outside the results of one run.
    #[must_use]
    pub fn identity(&self) -> String {
        // Only a digest of every byte makes a copy, or a file that was touched, the same.
        let content = match &self.pieces_sha256 {
            _ if self.is_covered() => self.size.to_string(),
            Some(pieces) => format!("{pieces} {}", self.modified),
            None => format!("{} {}", self.path, self.modified),
        };
        format!("{} {content} {}", self.sha256, self.series_sha256.as_deref().unwrap_or_default())
    }

    /// Whether the digest of both ends covers every byte.
    fn is_covered(&self) -> bool {
        self.size <= 2 * base::digest::END
    }

    /// Whether it is the same file, wherever it is stored now: by its content, or where that was not looked at in full,
    /// by its time of change.
    #[must_use]
    pub fn same(&self, other: &Self) -> bool {
        let pieces = self.pieces_sha256.is_some() && other.pieces_sha256.is_some();
        let proven = self.is_covered() || pieces;
        self.same_slide(other) && (proven || self.modified == other.modified)
    }

    /// The same file as it is now, with what was known of it before and could not be looked at.
    pub(crate) fn updated(&self, now: Self) -> Self {
        let old = self.clone();
        let pieces_sha256 = now.pieces_sha256.or(old.pieces_sha256);
        Self { pieces_sha256, series_sha256: now.series_sha256.or(old.series_sha256), ..now }
    }
}

/// A stamp to detect that a file was changed or replaced while it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp {
    modified: Option<SystemTime>,
    /// Which file it is, where the system provides this.
    node: u64,
    /// The server's word for the content of an object.
    etag: Option<String>,
    digest: InputDigest,
    /// The other files of the slide: size, time of change and which file it is.
    series: Vec<(PathBuf, u64, Option<SystemTime>, u64)>,
}

/// The inode, where the system has one.
fn node(about: &Metadata) -> u64 {
    #[cfg(unix)]
    let node = std::os::unix::fs::MetadataExt::ino(about);
    #[cfg(not(unix))]
    let node = {
        let _ = about;
        0
    };
    node
}

impl Stamp {
    /// Looks at a file.
    ///
    /// # Errors
    /// The system's, when it cannot be read.
    pub fn from_file(path: &Path) -> io::Result<Self> {
        let mut stamp = Self::alone(path)?;
        if let Some(files) = slide::further_files(path) {
            let mut ends = Vec::new();
            for path in files {
                let digest = Self::alone(&path)?.digest;
                ends.push(format!("{} {} {}", file_name(&path), digest.size, digest.sha256));
                let about = path.metadata()?;
                stamp.series.push((path, about.len(), about.modified().ok(), node(&about)));
            }
            ends.sort_unstable();
            stamp.digest.series_sha256 = Some(sha256(ends.join("\n")));
        }
        Ok(stamp)
    }

    fn alone(path: &Path) -> io::Result<Self> {
        if let Some(address) = Address::parse(path).map_err(io::Error::other)? {
            return Self::of_object(&address).map_err(io::Error::other);
        }
        let file = base::file::open_regular(path)?;
        let about = file.metadata()?;
        let modified = about.modified().ok();
        let read = |part: &mut [u8], at| {
            (&file).seek(SeekFrom::Start(at))?;
            (&file).read_exact(part)
        };
        let since = modified.and_then(|t| t.duration_since(UNIX_EPOCH).ok());
        let digest = InputDigest {
            path: path.display().to_string(),
            size: about.len(),
            modified: since.map_or(0, |d| d.as_secs()),
            sha256: sha256_ends(about.len(), read)?,
            pieces_sha256: sha256_pieces(about.len(), read)?,
            series_sha256: None,
        };
        let node = node(&about);
        Ok(Self { modified, node, etag: None, digest, series: Vec::new() })
    }

    fn of_object(address: &Address) -> Result<Self, RemoteError> {
        let object = Object::open(address)?;
        let digest = InputDigest {
            path: address.to_string(),
            size: object.size(),
            modified: object.modified().unwrap_or(0),
            sha256: sha256_ends(object.size(), |part, at| object.read_at(part, at))?,
            // Each piece would be a request.
            pieces_sha256: None,
            series_sha256: None,
        };
        let etag = object.etag().map(str::to_owned);
        Ok(Self { modified: None, node: 0, etag, digest, series: Vec::new() })
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
        } else if !self.digest.same_content(&now.digest) {
            Some("its content")
        } else if self.etag != now.etag {
            Some("its ETag")
        } else if self.node != now.node {
            Some("the file in its place")
        } else if self.series != now.series || !self.digest.same_slide(&now.digest) {
            Some("another of its files")
        } else {
            let same = self.modified == now.modified && self.digest.modified == now.digest.modified;
            (!same).then_some("its time of change")
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
        for table in ["counts.csv", "cases.csv", "regions.csv", "run.json", "summary.html"] {
            assert_eq!(stem(Path::new(&format!("{table}.tiff"))), format!("{table}_"));
        }
    }

    #[test]
    fn the_other_files_of_a_series_belong_to_it() {
        let dir = tempfile::tempdir().unwrap();
        let drawn = testkit::workspace().join("crates/slide/tests/golden/dicom/series");
        for file in ["a.dcm", "b.dcm", "c.dcm"] {
            std::fs::copy(drawn.join(file), dir.path().join(file)).unwrap();
        }
        let stamp = || Stamp::from_file(&dir.path().join("b.dcm")).unwrap();
        let first = stamp();
        assert_eq!(first.differs(&stamp()), None);
        std::fs::remove_file(dir.path().join("c.dcm")).unwrap();
        assert_eq!(first.differs(&stamp()), Some("another of its files"));
    }

    #[test]
    fn the_data_files_of_a_slide_in_a_folder_belong_to_it() {
        let dir = tempfile::tempdir().unwrap();
        let (slide, data) = (dir.path().join("s.mrxs"), dir.path().join("s/Data0000.dat"));
        std::fs::create_dir(dir.path().join("s")).unwrap();
        std::fs::write(&slide, "thumbnail").unwrap();
        std::fs::write(&data, "pixels").unwrap();
        let stamp = || Stamp::from_file(&slide).unwrap();
        let before = stamp();
        assert!(before.digest.same(&stamp().digest));
        std::fs::write(&data, "others").unwrap();
        let now = stamp();
        assert_eq!(before.differs(&now), Some("another of its files"));
        assert!(now.digest.same_content(&before.digest) && !now.digest.same(&before.digest));
        assert_ne!(now.digest.identity(), before.digest.identity());
        // Of earlier versions, which looked at the named file alone.
        let earlier = InputDigest { series_sha256: None, ..before.digest };
        assert!(now.digest.same(&earlier));
        std::fs::remove_dir_all(dir.path().join("s")).unwrap();
        assert!(!stamp().digest.same(&now.digest));
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
    }
}
