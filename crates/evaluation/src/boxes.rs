//! Detectors of others as packages: one network that gives boxes, in place of two stages.

use crate::robustness::point::Chosen;
use base::digest::sha256;
use base::file;
use base::remedy::{Remedied, Remedy};
use infer::boxes::{self, BoxesDraft};
use infer::convert::ConvertError;
use infer::{EngineOptions, ModelPackage};
use std::path::{Path, PathBuf};

/// Why a file becomes no package.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "fields whose names state what they are")]
pub enum ImportError {
    /// It cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// Path of the ONNX file.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The file is not a detector of boxes.
    #[error("{}: {source}", path.display())]
    Convert {
        /// Path of the ONNX file.
        path: PathBuf,
        /// Why it cannot be converted.
        source: Box<ConvertError>,
    },
    /// The folder holds a package already.
    #[error("{} holds a package already; choose another folder", .0.display())]
    Exists(PathBuf),
    /// The points do not fit.
    #[error("{}: {reason}", path.display())]
    Points {
        /// Path of the ONNX file.
        path: PathBuf,
        reason: String,
    },
    /// The package cannot be written, or not be read again.
    #[error(transparent)]
    Write(#[from] file::WriteError),
    /// As written.
    #[error(transparent)]
    Package(#[from] infer::package::PackageError),
    /// The card as text.
    #[error(transparent)]
    Card(#[from] infer::card::CardError),
}

impl Remedied for ImportError {
    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Convert { source, .. } => source.remedy(),
            Self::Card(e) => e.remedy(),
            Self::Exists(_) => Some(Remedy::Folder),
            _ => None,
        }
    }
}

/// Makes a package of an ONNX file that gives boxes ([`infer::boxes`]). `points` are those that were
/// chosen on left-out slides (`evaluate operating-point`); the one named `balanced` takes the place of
/// the draft's.
///
/// # Errors
/// [`ImportError`].
pub fn import(
    onnx: &Path,
    points: Option<&Path>,
    out: &Path,
    mut draft: BoxesDraft,
    options: &EngineOptions,
) -> Result<ModelPackage, ImportError> {
    let card = out.join("card.toml");
    if card.exists() {
        return Err(ImportError::Exists(out.to_owned()));
    }
    let bytes = file::read_whole(onnx)
        .map_err(|source| ImportError::Read { path: onnx.to_owned(), source })?;
    let name = onnx.file_name().unwrap_or_default().to_string_lossy().into_owned();
    draft.training.insert("file".into(), name.into());
    draft.training.insert("file_sha256".into(), sha256(&bytes).into());
    if let Some(path) = points {
        let bad = |reason: String| ImportError::Points { path: path.to_owned(), reason };
        let chosen: Chosen = base::json::read(path).map_err(|e| bad(e.to_string()))?;
        let card = chosen.calibrated_scale(None).and_then(|scale| chosen.for_card(&scale));
        let (named, results) = card.map_err(|e| bad(e.to_string()))?;
        if let Some(p) = named.get("balanced") {
            let provenance = p.provenance.clone();
            draft.operating_point = mitosis::OperatingPoint { seg: p.seg, cls: p.cls, provenance };
        }
        (draft.operating_points, draft.results) = (named, Some(results));
    }
    let boxes::ConvertedBoxes { card: made, onnx: network } =
        boxes::convert(&bytes, &draft, options)
            .map_err(|e| ImportError::Convert { path: onnx.to_owned(), source: Box::new(e) })?;
    std::fs::create_dir_all(out)
        .map_err(|source| file::WriteError { path: out.to_owned(), source })?;
    file::write(&out.join(boxes::FILE), &network)?;
    // Last: a folder without a card is not a package.
    file::write(&card, made.to_toml()?.as_bytes())?;
    Ok(ModelPackage::open(out)?)
}
