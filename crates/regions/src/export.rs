//! What the forms that a regions dataset is written in for other programs have in common.

use crate::dataset::RegionsError;
use crate::folds::FoldsError;
use base::file;
use base::file::FileError;
use base::remedy::{Remedied, Remedy};
use std::path::{Path, PathBuf};

/// Why a dataset cannot be written so.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "fields whose names state what they are")]
pub enum ExportError {
    /// The dataset.
    #[error(transparent)]
    Regions(#[from] RegionsError),
    /// The fold.
    #[error(transparent)]
    Folds(#[from] FoldsError),
    /// A file.
    #[error(transparent)]
    File(#[from] FileError),
    /// A window cannot be coded.
    #[error("{}: {reason}", path.display())]
    Image {
        /// Path of the PNG.
        path: PathBuf,
        reason: String,
    },
    /// Sizes that make no sense.
    #[error("{0}")]
    Options(String),
    /// A folder with something in it.
    #[error("{} is not empty; choose another folder", .0.display())]
    Exists(PathBuf),
}

impl ExportError {
    pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        FileError::io(path)
    }
}

/// A folder that appears under its name when it is complete; dropped before, nothing stays of it.
pub(crate) struct Unfinished {
    folder: file::Unfinished,
    out: PathBuf,
}

impl Unfinished {
    /// A folder next to `out`, which must be missing or empty.
    pub(crate) fn new(out: &Path) -> Result<Self, ExportError> {
        if std::fs::read_dir(out).is_ok_and(|mut d| d.next().is_some()) {
            return Err(ExportError::Exists(out.to_owned()));
        }
        let parent = out.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        std::fs::create_dir_all(parent).map_err(ExportError::io(parent))?;
        let folder = file::Unfinished::new(parent);
        Ok(Self {
            folder: folder.map_err(|e| ExportError::io(&e.path)(e.source))?,
            out: out.to_owned(),
        })
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn finish(self) -> Result<(), ExportError> {
        let _ = std::fs::remove_dir(&self.out);
        self.folder.persist(&self.out).map_err(|e| ExportError::io(&self.out)(e.source))
    }
}

impl Remedied for ExportError {
    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Regions(e) => e.remedy(),
            _ => None,
        }
    }
}
