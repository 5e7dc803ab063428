//! A run as annotations for a DICOM archive, one file per slide.

mod objects;

use super::open::{OpenError, check_free, every_folder};
use ::dicom::{EncodeError, Source, SourceError, is_dicom};
use base::file::{self, WriteError};
use base::json::JsonError;
use base::remedy::{Remedied, Remedy};
use base::text::{Many, Shown, plain};
use mithras::batch::DetectionState;
use mithras::export::CountsFile;
use mithras::input::InputDigest;
use mithras::regions::outlines;
use mithras::report::{self, ReportError, Results};
use serde::Serialize;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Why nothing is written.
#[derive(Debug, thiserror::Error)]
pub enum DicomError {
    /// The run's folder.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The folder to write.
    #[error("{}: {source}", Shown(path))]
    Folder {
        /// Folder for the DICOM files.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
}

/// Why a slide has no file.
#[derive(Debug, thiserror::Error)]
enum Left {
    #[error(transparent)]
    Report(#[from] ReportError),
    #[error(transparent)]
    Regions(#[from] JsonError),
    #[error("{}: {source}", Shown(path))]
    Read { path: PathBuf, source: std::io::Error },
    #[error("its file is not at {}; name the folder of the slides if they are elsewhere", Shown(.0))]
    Missing(PathBuf),
    #[error("{} is not the file of the run", Shown(.0))]
    Other(PathBuf),
    #[error(
        "{} is not a DICOM file, but an annotation has to name its DICOM image: name the \
         folder of the slide's conversion, {name}.dcm or a folder {name}, if it was converted",
        Shown(path)
    )]
    NotDicom { path: PathBuf, name: String },
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error(transparent)]
    Encode(#[from] EncodeError),
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// What was written of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Written {
    /// Folder with the DICOM files.
    #[serde(serialize_with = "base::json::lossy")]
    pub folder: PathBuf,
    /// Whether the files identify the patient.
    pub patient: bool,
    /// The slides, by name.
    pub slides: Vec<WrittenSlide>,
}

/// What was written of a slide.
#[derive(Clone, Debug, Serialize)]
pub struct WrittenSlide {
    /// Its name in the run.
    pub name: String,
    /// Its file's name; none where none was written.
    pub file: Option<String>,
    /// Name of the file of its structured report; none where none was written.
    pub report: Option<String>,
    /// Figures in it.
    pub figures: usize,
    /// Candidates in it, figures included.
    pub candidates: usize,
    /// Why the file is missing; none also for a slide without candidates, which gets no file.
    pub error: Option<String>,
}

impl Written {
    /// Slides that should have a file and have none.
    #[must_use]
    pub fn failed(&self) -> usize {
        self.slides.iter().filter(|s| s.error.is_some()).count()
    }
}

/// Writes `NAME.dcm`, annotations, and `NAME.sr.dcm`, a structured report, for every slide of a run that has
/// candidates, on the DICOM image that was read.
///
/// A slide's file is looked for in `slides`, where given, and then where the run read it. Where that is
/// not a DICOM file, its conversion is looked for: `slides/NAME.dcm` or the folder `slides/NAME`, an image of
/// exactly the slide's size. With `patient` the files contain the patient's data of the images.
///
/// # Errors
/// [`DicomError`]; a single slide's is in its row.
pub fn write_dicom(
    run: &Path,
    out: &Path,
    slides: Option<&Path>,
    patient: bool,
) -> Result<Written, DicomError> {
    let folders = every_folder(run)?;
    check_free(out)?;
    let io = |source| DicomError::Folder { path: out.to_owned(), source };
    std::fs::create_dir_all(out).map_err(io)?;
    let mut written = Vec::new();
    for folder in &folders {
        let name = folder.file_name().unwrap_or(folder.as_os_str()).to_string_lossy().into_owned();
        let mut row =
            WrittenSlide { name, file: None, report: None, figures: 0, candidates: 0, error: None };
        if let Err(e) = slide(folder, out, slides, patient, &mut row) {
            row.error = Some(plain(&e.to_string()).into_owned());
        }
        written.push(row);
    }
    Ok(Written { folder: out.to_owned(), patient, slides: written })
}

fn slide(
    folder: &Path,
    out: &Path,
    slides: Option<&Path>,
    patient: bool,
    row: &mut WrittenSlide,
) -> Result<(), Left> {
    let Results { counts, rows } = report::results(folder).map_err(ReportError::from)?;
    (row.figures, row.candidates) = (rows.iter().filter(|r| r.accepted).count(), rows.len());
    let regions = outlines(folder, counts.slide.bounds_offset)?;
    let groups = objects::groups(&counts, &rows, &regions);
    if groups.is_empty() {
        return Ok(());
    }
    let source = source(folder, slides, &row.name, &counts)?;
    let (digest, at) = results(folder)?;
    let made = objects::Made { digest: &digest, at };
    let bytes = objects::object(&counts, groups, &source, patient, made)?;
    // `a.sr.dcm` is the report of the slide `a`.
    let is_report = row.name.to_lowercase().ends_with(".sr");
    let name = format!("{}{}", row.name, if is_report { "_" } else { "" });
    let file = format!("{name}.dcm");
    file::write(&out.join(&file), &bytes)?;
    row.file = Some(file);
    let bytes = objects::report(&counts, &source, patient, made)?;
    let file = format!("{name}.sr.dcm");
    file::write(&out.join(&file), &bytes)?;
    row.report = Some(file);
    Ok(())
}

/// Digest of the files that the annotations are made of, and when the last was written.
fn results(folder: &Path) -> Result<(String, SystemTime), Left> {
    let (mut all, mut last) = (String::new(), SystemTime::UNIX_EPOCH);
    for name in ["counts.json", "detections.csv"] {
        let path = folder.join(name);
        let fail = |source| Left::Read { path: path.clone(), source };
        all += &base::digest::sha256(file::read_whole(&path).map_err(fail)?);
        let changed = std::fs::metadata(&path).and_then(|m| m.modified()).map_err(fail)?;
        last = last.max(changed);
    }
    Ok((base::digest::sha256(all), last))
}

/// The image of a slide.
fn source(
    folder: &Path,
    slides: Option<&Path>,
    name: &str,
    counts: &CountsFile,
) -> Result<Source, Left> {
    let size = (counts.slide.width, counts.slide.height);
    let seen = DetectionState::load(folder).map(|s| s.input);
    let recorded = seen.as_ref().map(|d| PathBuf::from(&d.path));
    let given = slides.map(|d| d.join(&counts.slide.file));
    let places: Vec<PathBuf> = given.into_iter().chain(recorded).collect();
    let file = places.iter().find(|p| p.is_file());
    if let Some(file) = file.filter(|f| is_dicom(f)) {
        let digest = InputDigest::from_file(file)
            .map_err(|source| Left::Read { path: file.clone(), source })?;
        let other = seen.is_some_and(|d| !digest.same_slide(&d));
        if other || digest.sha256 != counts.slide.digest {
            return Err(Left::Other(file.clone()));
        }
        return Ok(Source::find(file, size)?);
    }
    let conversions =
        slides.into_iter().flat_map(|d| [d.join(format!("{name}.dcm")), d.join(name)]);
    if let Some(conversion) = conversions.into_iter().find(|c| c.is_dir() || is_dicom(c)) {
        return Ok(Source::find(&conversion, size)?);
    }
    Err(match (file, places.first()) {
        (Some(file), _) => Left::NotDicom { path: file.clone(), name: name.to_owned() },
        (None, place) => {
            Left::Missing(place.cloned().unwrap_or_else(|| PathBuf::from(&counts.slide.file)))
        }
    })
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for s in &self.slides {
            match (&s.file, &s.error) {
                (Some(file), _) => writeln!(
                    f,
                    "{file}: {}, {}",
                    Many(s.figures, "figure"),
                    Many(s.candidates, "candidate")
                )?,
                (None, Some(error)) => writeln!(f, "{}: no file: {error}", plain(&s.name))?,
                (None, None) => writeln!(f, "{}: no candidate, so no file", plain(&s.name))?,
            }
        }
        let files = self.slides.iter().filter(|s| s.file.is_some()).count();
        let person = match self.patient {
            true => "with the patients' names and numbers, as far as the images have them",
            false => "without any person's data",
        };
        writeln!(f, "{} in {}, {person}", Many(files, "file"), Shown(&self.folder))
    }
}

impl Remedied for DicomError {
    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Open(e) => e.remedy(),
            _ => None,
        }
    }
}
