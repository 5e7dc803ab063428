//! The image of annotations, found by its size among the files of a slide.

use dicom_core::{Tag, VR};
use dicom_dictionary_std::{tags, uids};
use dicom_object::{FileDicomObject, InMemDicomObject, OpenFileOptions};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Why an image is not found.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "fields whose names state what they are")]
pub enum SourceError {
    /// The file or folder cannot be read.
    #[error("{}: {reason}", .path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        reason: String,
    },
    /// No image of this size is there.
    #[error("{}: no slide image (VL Whole Slide Microscopy) of {width} x {height} px{}", .path.display(), sizes(.others))]
    None {
        /// The file or folder.
        path: PathBuf,
        width: u64,
        height: u64,
        /// Sizes of the slide images that are there.
        others: Vec<(u64, u64)>,
    },
    /// Images of several series have this size: they may be of other patients.
    #[error(
        "{} and {} are of different series, and both have an image of {width} x {height} px, so leave the files of \
         one slide in the folder",
        .first.display(),
        .second.display()
    )]
    Several {
        /// A file of one series.
        first: PathBuf,
        /// A file of another one.
        second: PathBuf,
        width: u64,
        height: u64,
    },
    /// A field that the standard requires is missing.
    #[error("{}: the header lacks {field}", .path.display())]
    Field {
        /// Path of the DICOM file.
        path: PathBuf,
        /// Its name in the standard.
        field: &'static str,
    },
}

fn sizes(others: &[(u64, u64)]) -> String {
    match others {
        [] => String::new(),
        sizes => {
            let list: Vec<_> = sizes.iter().map(|(w, h)| format!("{w} x {h}")).collect();
            format!("; there are {}", list.join(", "))
        }
    }
}

/// Fields that identify patient and study: of the modules Patient and General Study.
const PERSON: [(Tag, VR); 9] = [
    (tags::PATIENT_NAME, VR::PN),
    (tags::PATIENT_ID, VR::LO),
    (tags::PATIENT_BIRTH_DATE, VR::DA),
    (tags::PATIENT_SEX, VR::CS),
    (tags::STUDY_DATE, VR::DA),
    (tags::STUDY_TIME, VR::TM),
    (tags::REFERRING_PHYSICIAN_NAME, VR::PN),
    (tags::STUDY_ID, VR::SH),
    (tags::ACCESSION_NUMBER, VR::SH),
];

/// What annotations must state of their image.
#[derive(Clone, Debug)]
pub struct Source {
    /// Study Instance UID.
    pub study: String,
    /// Series Instance UID.
    pub series: String,
    /// SOP Class UID.
    pub class: String,
    /// SOP Instance UID; of an image in several files that of the whole.
    pub instance: String,
    /// Frame of Reference UID.
    pub frame_of_reference: Option<String>,
    /// Total pixel matrix: width, px.
    pub width: u64,
    /// Total pixel matrix: height, px.
    pub height: u64,
    /// Fields about the person, as they are.
    person: Vec<(Tag, VR, String)>,
}

/// Whether a file is one of DICOM, by its first bytes.
#[must_use]
pub fn is_dicom(path: &Path) -> bool {
    let magic = || {
        let (mut file, mut magic) = (File::open(path)?, [0; 4]);
        file.seek(SeekFrom::Start(128))?;
        file.read_exact(&mut magic).map(|()| magic)
    };
    path.is_file() && magic().is_ok_and(|m: [u8; 4]| m == *b"DICM")
}

type Header = FileDicomObject<InMemDicomObject>;

/// The header of a file, up to what belongs to single frames.
fn header(path: &Path) -> Result<Header, SourceError> {
    if path.exists() && !path.is_file() {
        let reason = "is not a regular file".to_owned();
        return Err(SourceError::Read { path: path.to_owned(), reason });
    }
    let options = OpenFileOptions::new().read_until(tags::PER_FRAME_FUNCTIONAL_GROUPS_SEQUENCE);
    // The library names all causes of an error in its chain.
    options.open_file(path).map_err(|e| {
        let chain = std::iter::successors(Some(&e as &dyn std::error::Error), |e| e.source());
        let reason: Vec<String> = chain.map(ToString::to_string).collect();
        SourceError::Read { path: path.to_owned(), reason: reason.join(": ") }
    })
}

fn field(header: &Header, tag: Tag) -> Option<String> {
    let text = header.get(tag)?.to_str().ok()?;
    let text = text.trim_end_matches(['\0', ' ']);
    (!text.is_empty()).then(|| text.to_owned())
}

/// Size of the total pixel matrix of a slide image; none for another object, label or overview.
fn size(header: &Header) -> Option<(u64, u64)> {
    let class = field(header, tags::SOP_CLASS_UID)?;
    let volume = field(header, tags::IMAGE_TYPE)?.contains("VOLUME");
    let side = |tag| header.get(tag)?.to_int::<u64>().ok();
    let size = (side(tags::TOTAL_PIXEL_MATRIX_COLUMNS)?, side(tags::TOTAL_PIXEL_MATRIX_ROWS)?);
    (volume && class == uids::VL_WHOLE_SLIDE_MICROSCOPY_IMAGE_STORAGE).then_some(size)
}

impl Source {
    /// The image of this size: in a file, else among the other files of the same series, or among
    /// those of a folder.
    ///
    /// # Errors
    /// [`SourceError`]; also where two series of a folder have such an image.
    pub fn find(path: &Path, (width, height): (u64, u64)) -> Result<Self, SourceError> {
        let mut series = None;
        let mut others = Vec::new();
        let folder = match path.is_dir() {
            true => path,
            false => {
                let first = header(path)?;
                if size(&first) == Some((width, height)) {
                    return Self::from_header(&first, path);
                }
                others.extend(size(&first));
                series = field(&first, tags::SERIES_INSTANCE_UID);
                path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
            }
        };
        let fail = |e: std::io::Error| SourceError::Read {
            path: folder.to_owned(),
            reason: e.to_string(),
        };
        let mut files = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(fail)? {
            files.push(entry.map_err(fail)?.path());
        }
        files.sort();
        let mut found: Option<(Self, &Path)> = None;
        for file in files.iter().filter(|f| f.as_path() != path && is_dicom(f)) {
            // A broken neighbour is nobody's image.
            let Ok(header) = header(file) else { continue };
            let same = series.is_none() || series == field(&header, tags::SERIES_INSTANCE_UID);
            match size(&header).filter(|_| same) {
                Some(s) if s == (width, height) => {
                    let source = Self::from_header(&header, file)?;
                    match &found {
                        Some((one, first)) if one.series != source.series => {
                            let (first, second) = (first.to_path_buf(), file.clone());
                            return Err(SourceError::Several { first, second, width, height });
                        }
                        Some(_) => {}
                        None => found = Some((source, file)),
                    }
                }
                Some(s) => others.push(s),
                None => {}
            }
        }
        if let Some((source, _)) = found {
            return Ok(source);
        }
        others.sort_unstable();
        others.dedup();
        Err(SourceError::None { path: path.to_owned(), width, height, others })
    }

    fn from_header(header: &Header, path: &Path) -> Result<Self, SourceError> {
        let need = |tag, name| {
            field(header, tag)
                .ok_or_else(|| SourceError::Field { path: path.to_owned(), field: name })
        };
        let (width, height) = size(header).expect("asked for before");
        // An image may be cut into several files, which name the whole.
        let whole = field(header, tags::SOP_INSTANCE_UID_OF_CONCATENATION_SOURCE);
        let present = |(tag, vr)| Some((tag, vr, field(header, tag)?));
        Ok(Self {
            study: need(tags::STUDY_INSTANCE_UID, "Study Instance UID")?,
            series: need(tags::SERIES_INSTANCE_UID, "Series Instance UID")?,
            class: need(tags::SOP_CLASS_UID, "SOP Class UID")?,
            instance: match whole {
                Some(uid) => uid,
                None => need(tags::SOP_INSTANCE_UID, "SOP Instance UID")?,
            },
            frame_of_reference: field(header, tags::FRAME_OF_REFERENCE_UID),
            width,
            height,
            person: PERSON.into_iter().filter_map(present).collect(),
        })
    }

    /// The fields of the modules Patient and General Study, as they are, or empty: the standard wants
    /// them to be there, and allows nothing in them (type 2).
    pub(crate) fn person(&self, named: bool) -> impl Iterator<Item = (Tag, VR, &str)> {
        PERSON.into_iter().map(move |(tag, vr)| {
            let own = self.person.iter().find(|p| named && p.0 == tag);
            (tag, vr, own.map_or("", |p| p.2.as_str()))
        })
    }
}
