//! The bytes of a slide, wherever they are: the one place where a local file and a remote object differ.

use crate::{Kept, Limits, SlideError};
use remote::{Address, Object};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Blocks of remote objects take no more memory than this, all together.
const BLOCK_BYTES: u64 = 256 << 20;

/// An opened file. Reads from several threads run at once.
#[derive(Debug)]
pub(crate) struct SlideFile {
    bytes: Bytes,
    pub(crate) len: u64,
    /// The first read of a local file that the system refused.
    failed: OnceLock<String>,
}

#[derive(Debug)]
enum Bytes {
    Local(File),
    Remote(Box<Object>),
    /// In memory.
    Held(Vec<u8>),
}

/// What a path is called in errors and results: an address without its query, other paths as they are.
pub(crate) fn shown(path: &Path) -> Result<PathBuf, SlideError> {
    let fail = |e: remote::AddressError| SlideError::Remote {
        path: PathBuf::from(remote::without_query(&path.to_string_lossy())),
        source: e.into(),
    };
    Ok(Address::parse(path).map_err(fail)?.map_or_else(|| path.to_path_buf(), |a| a.path()))
}

impl From<Vec<u8>> for SlideFile {
    /// A file that is in memory.
    fn from(bytes: Vec<u8>) -> Self {
        Self { len: bytes.len() as u64, bytes: Bytes::Held(bytes), failed: OnceLock::new() }
    }
}

impl SlideFile {
    /// Opens a file or an object.
    pub(crate) fn open(path: &Path, limits: &Limits) -> Result<Self, SlideError> {
        let shown = || path.to_path_buf();
        let remote = |source| SlideError::Remote { path: shown(), source };
        if let Some(address) = Address::parse(path).map_err(|e| remote(e.into()))? {
            // All objects of a process share their blocks, and take their memory once.
            static BLOCKS: OnceLock<Option<Kept>> = OnceLock::new();
            let most = BLOCK_BYTES.min(limits.memory.total() / 8);
            remote::allow_memory(most);
            BLOCKS.get_or_init(|| limits.memory.reserve(most));
            let object = Object::open(&address).map_err(remote)?;
            let len = object.size();
            return match len {
                0 => Err(SlideError::Empty { path: shown() }),
                _ => {
                    let bytes = Bytes::Remote(Box::new(object));
                    Ok(Self { bytes, len, failed: OnceLock::new() })
                }
            };
        }
        let io = |source| SlideError::Io { path: shown(), source };
        let about = std::fs::metadata(path).map_err(io)?;
        if !about.is_file() {
            return Err(SlideError::NotAFile { path: shown() });
        }
        let len = about.len();
        if len == 0 {
            return Err(SlideError::Empty { path: shown() });
        }
        let bytes = Bytes::Local(File::open(path).map_err(io)?);
        Ok(Self { bytes, len, failed: OnceLock::new() })
    }

    /// Reads exactly `buf.len()` bytes at `offset`.
    pub(crate) fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        match &self.bytes {
            Bytes::Local(file) => read_local(file, buf, offset).inspect_err(|e| {
                if e.raw_os_error().is_some() {
                    let _ = self.failed.set(format!("read error at byte {offset}: {e}"));
                }
            }),
            Bytes::Remote(object) => object.read_at(buf, offset).map_err(io::Error::other),
            Bytes::Held(bytes) => {
                let from = usize::try_from(offset).ok();
                let part = from.and_then(|from| bytes.get(from..from.checked_add(buf.len())?));
                buf.copy_from_slice(part.ok_or(io::ErrorKind::UnexpectedEof)?);
                Ok(())
            }
        }
    }

    /// The first read that the system refused, of a local file.
    pub(crate) fn first_failure(&self) -> Option<String> {
        self.failed.get().cloned()
    }

    /// The read that the system refused, or for which the server failed for good.
    pub(crate) fn failure(&self, path: &Path) -> Option<SlideError> {
        match &self.bytes {
            Bytes::Local(_) | Bytes::Held(_) => {
                self.first_failure().map(|reason| SlideError::read(path, reason))
            }
            Bytes::Remote(object) => {
                let path = path.to_path_buf();
                object.failure().map(|source| SlideError::Remote { path, source })
            }
        }
    }

    /// Whether it is on a server.
    pub(crate) fn is_remote(&self) -> bool {
        matches!(self.bytes, Bytes::Remote(_))
    }

    /// The error, or that of the server where it has failed for good: then nothing that was made of its
    /// bytes means anything, and no tile is at fault.
    pub(crate) fn or_failure(&self, path: &Path, error: SlideError) -> SlideError {
        if self.is_remote() { self.failure(path).unwrap_or(error) } else { error }
    }

    /// All of it, from the first byte on.
    pub(crate) fn stream(&self) -> Stream<'_> {
        self.part(0, self.len)
    }

    /// A part of it, which is inside.
    pub(crate) fn part(&self, at: u64, end: u64) -> Stream<'_> {
        Stream { file: self, start: at, at, end }
    }
}

/// A part of a file, byte after byte.
pub(crate) struct Stream<'a> {
    file: &'a SlideFile,
    start: u64,
    at: u64,
    end: u64,
}

impl Read for Stream<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let n = self.end.saturating_sub(self.at).min(out.len() as u64) as usize;
        self.file.read_at(&mut out[..n], self.at)?;
        self.at += n as u64;
        Ok(n)
    }
}

impl Seek for Stream<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let place = match to {
            SeekFrom::Start(n) => self.start.checked_add(n),
            SeekFrom::End(n) => self.end.checked_add_signed(n),
            SeekFrom::Current(n) => self.at.checked_add_signed(n),
        };
        let inside = place.filter(|p| *p >= self.start);
        self.at = inside.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        Ok(self.at - self.start)
    }
}

fn read_local(file: &File, buf: &mut [u8], offset: u64) -> io::Result<()> {
    #[cfg(test)]
    tests::refused()?;
    crate::positioned::read_at(file, buf, offset)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MppRule, OpenOptions, Slide, TissueMask};
    use mitosis::Mpp;
    use mitosis::Rect;
    use std::cell::Cell;

    thread_local! {
        /// Reads of this thread until one is refused, as by a disk or a network drive; then none is.
        static LEFT: Cell<Option<u64>> = const { Cell::new(None) };
    }

    pub(super) fn refused() -> io::Result<()> {
        let left = LEFT.get();
        LEFT.set(left.and_then(|n| n.checked_sub(1)));
        if left == Some(0) { Err(io::Error::from_raw_os_error(5)) } else { Ok(()) }
    }

    type Work = fn(&Slide) -> Result<(), SlideError>;

    /// What of a slide is read, and by which way.
    const WORKS: &[(&str, Work)] = &[
        ("mask", |s| TissueMask::find(s).map(drop)),
        ("thumbnail", |s| s.thumbnail_partial(100).map(drop)),
        ("levels", |s| s.disagreements().map(drop)),
        ("coarse", |s| s.read_partial(Mpp::new(1.0).unwrap(), Rect::new(0, 0, 64, 64)).map(drop)),
        ("fine", |s| s.read_partial(Mpp::PAPER, Rect::new(0, 0, 96, 96)).map(drop)),
        ("other images", |s| {
            let names: Vec<String> = s.associated_images().iter().map(|a| a.name.clone()).collect();
            names.iter().try_for_each(|n| s.associated_image(n).map(drop))
        }),
    ];

    /// A read that the system refuses is neither a damaged tile nor a level to pass over nor a missing field:
    /// it fails the slide, at whatever level and whichever read it is.
    #[test]
    fn a_read_error_is_a_read_error_wherever_it_strikes() {
        let golden = testkit::workspace().join("crates/slide/tests/golden");
        let options = OpenOptions {
            mpp: Some(Mpp::PAPER),
            mpp_rule: MppRule::Fill,
            cache_bytes: 0,
            ..OpenOptions::default()
        };
        for file in [
            "slides/svs_jpeg_420.svs",
            "slides/svs_jp2k_33005.svs",
            "slides/pyramid.ome.tif",
            "slides/deflate_predict.tif",
            "slides/strips.tif",
            "slides/planar.tif",
        ] {
            let path = golden.join(file);
            for (what, work) in WORKS {
                // Until a run has fewer reads than that.
                for n in (0..40).chain((40..).step_by(17)) {
                    LEFT.set(Some(n));
                    let done = Slide::open_with(&path, &options).and_then(|s| work(&s));
                    if LEFT.replace(None).is_some() {
                        assert!(done.is_ok(), "{file}, {what}: {done:?}");
                        assert!(n > 0, "{file}, {what}: read in another way");
                        break;
                    }
                    let Err(e) = done else { panic!("{file}, {what}: read {n} is passed over") };
                    let text = e.to_string();
                    assert!(
                        !e.is_tile()
                            && (text.contains("read error") || text.contains("cannot be read")),
                        "{file}, {what}, {n}: {e}"
                    );
                }
            }
        }
    }
}
