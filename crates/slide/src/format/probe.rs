//! A format, and a file that is tried for one.

use crate::file::SlideFile;
use crate::limits::{Fault, Limits};
use crate::source::Opened;
use crate::tiff::{Ifd, TiffFile};
use crate::{OpenOptions, SlideError, exif};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What to do about pixels that are stored in a way that is not read.
const PLAIN: &str = "export it as 8-bit RGB with JPEG or deflate if its program can";

/// A reader: how it is called, what it reads, how it knows its files, how it opens them.
pub struct Format {
    /// Short name, e.g. `aperio`.
    pub name: &'static str,
    /// Files and compressions that it reads.
    pub about: &'static str,
    pub(crate) knows: fn(&Probe) -> bool,
    pub(crate) open: fn(&Probe, &OpenOptions) -> Result<Opened, SlideError>,
}

/// What a reader may look at before it states whether the file is its own.
pub(crate) struct Probe {
    pub(crate) path: PathBuf,
    pub(crate) file: Arc<SlideFile>,
    pub(crate) len: u64,
    pub(crate) head: Vec<u8>,
    /// The directories, when the file starts like a TIFF.
    pub(super) tiff: Option<Result<TiffFile, Fault>>,
}

impl Probe {
    pub(super) fn new(path: &Path, limits: &Limits) -> Result<Self, SlideError> {
        let io = |source| SlideError::Io { path: path.to_path_buf(), source };
        let file = Arc::new(SlideFile::open(path, limits)?);
        let len = file.len;
        let mut head = vec![0; len.min(64) as usize];
        file.read_at(&mut head, 0).map_err(|e| file.or_failure(path, io(e)))?;
        let tiff = crate::tiff::is_tiff(&head).then(|| TiffFile::read(&file, limits));
        Ok(Self { path: path.to_path_buf(), file, len, head, tiff })
    }

    pub(crate) fn is_tiff(&self) -> bool {
        self.tiff.is_some()
    }

    /// Whether its name ends so, in letters of either case.
    pub(crate) fn is_named(&self, suffix: &str) -> bool {
        self.path.extension().is_some_and(|e| e.eq_ignore_ascii_case(suffix))
    }

    /// The directories, or what is wrong with them.
    pub(crate) fn tiff(&self) -> Result<&TiffFile, SlideError> {
        match &self.tiff {
            Some(Ok(t)) => Ok(t),
            Some(Err(fault)) => Err(self.fault(fault.clone())),
            None => Err(self.malformed("not a TIFF".into())),
        }
    }

    pub(crate) fn first(&self) -> Option<&Ifd> {
        self.tiff().ok().map(|t| &t.ifds[0])
    }

    pub(crate) fn malformed(&self, reason: String) -> SlideError {
        SlideError::Malformed { path: self.path.clone(), reason }
    }

    pub(crate) fn unsupported(&self, reason: String, remedy: &str) -> SlideError {
        SlideError::Unsupported { path: self.path.clone(), reason, remedy: remedy.into() }
    }

    /// What an unusable part makes of the file.
    pub(crate) fn fault(&self, fault: Fault) -> SlideError {
        match fault {
            Fault::Damaged(reason) => self.malformed(reason),
            Fault::Unsupported(reason) => {
                let turned = reason.contains("orientation ");
                let remedy = if turned { exif::UPRIGHT } else { PLAIN };
                self.unsupported(reason, remedy)
            }
            Fault::Limit(breach) => SlideError::limit(&self.path, breach),
            Fault::Read(reason) => SlideError::read(&self.path, reason),
        }
    }

    /// The first bytes of the file, at most so many.
    pub(crate) fn start(&self, most: u64) -> Result<Vec<u8>, SlideError> {
        let mut buf = vec![0; self.len.min(most) as usize];
        let io = |source| SlideError::Io { path: self.path.clone(), source };
        self.file.read_at(&mut buf, 0).map_err(io)?;
        Ok(buf)
    }
}
