//! Why a corpus is not built.

use base::file::{LockError, ReadError, WriteError};
use base::remedy::{Remedied, Remedy};
use base::table::TableError;
use base::text::Shown;
use crops::CorpusError;
use detect::DetectError;
use infer::{EngineError, PackageError};
use mithras::batch::Failure;
use mithras::detector::DetectorError;
use mitosis::PortError;
use slide::SlideError;
use std::path::{Path, PathBuf};

/// Why a corpus, or a slide's part of it, is not built.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "fields whose names state what they are")]
pub enum ConstructError {
    /// A slide table that names none of the slides.
    #[error("no row of the table of slides names one of them: {join}")]
    NoneNamed {
        /// What either side has.
        join: Box<base::table::Unmatched>,
    },
    /// No preset of this name.
    #[error("no preset `{name}`: a file, or one of {known}")]
    NoPreset {
        /// What was asked for.
        name: String,
        known: String,
    },
    /// The preset cannot be read or carried out.
    #[error("preset {name}: {reason}")]
    Preset {
        /// Its name or file.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The preset or the model lacks a part.
    #[error("{0}")]
    Part(&'static str),
    /// Pseudo-labels need both scores.
    #[error("the model has no second stage; pseudo-labels need both scores")]
    OneStage,
    /// The rule of pseudo-labels and the detector do not fit.
    #[error(
        "model `{name}`: {source}; set `candidates.threshold` in the preset to the rule's lowest limit or below, which may find too few all the same"
    )]
    Unreachable {
        name: String,
        /// What the rule cannot reach.
        source: mitosis::pseudo_label::Unreachable,
    },
    /// The table of slides names one twice.
    #[error("{place}: slide `{slide}` is listed twice")]
    Twice {
        /// File, line and column.
        place: String,
        /// Name of the slide.
        slide: String,
    },
    /// The cohort of a slide is unknown.
    #[error("slide `{slide}` has no cohort, and excluded cohorts are known by it")]
    NoCohort {
        /// Name of the slide.
        slide: String,
    },
    /// A slide of a cohort that the preset does not name.
    #[error(
        "slide `{slide}` is of cohort `{cohort}`, which the preset does not list ({known}); it may be an excluded \
         cohort under another name"
    )]
    UnknownCohort {
        /// Name of the slide.
        slide: String,
        /// Its cohort, as given.
        cohort: String,
        known: String,
    },
    /// A list of what is kept out holds something else.
    #[error("{}, line {number}: `{line}` is not `cohort|patient|slide,NAME`", Shown(path))]
    Line { path: PathBuf, number: u64, line: String },
    /// The corpus of the folder has slides that are not given now.
    #[error(
        "{}: its corpus has crops of {slides}, not among the slides now, and they would be lost; name these slides, \
         too, or choose another folder",
        Shown(out)
    )]
    Lost {
        /// Folder of the corpus.
        out: PathBuf,
        /// The slides, or the first of many.
        slides: String,
    },
    /// The tumour filter takes crops of another size than the preset's sub-patches.
    #[error(
        "{}: the filter takes crops of {takes} px, the preset's sub-patches have {has} px",
        Shown(package)
    )]
    FilterSize { package: PathBuf, takes: usize, has: u32 },
    /// The tumour filter is made for another resolution than the preset's sub-patches.
    #[error(
        "{}: the filter is made for {made} um/px, the preset's sub-patches are at {used} um/px; convert it with the \
         um/px it is to be used at, or change `tiles.mpp` and `tiles.sub` in the preset",
        Shown(package)
    )]
    FilterMpp { package: PathBuf, made: f64, used: f64 },
    /// A kind of preset takes another number of tumour filters.
    #[error("a preset of kind `{kind}` takes {takes} of the tumour filters")]
    Filters {
        kind: String,
        /// How many it takes.
        takes: &'static str,
    },
    /// The filter's package holds no classifier.
    #[error("{}: the package has no classifier", Shown(package))]
    NoFilter {
        /// Folder of the package.
        package: PathBuf,
    },
    /// The filter knows no such class.
    #[error("{}: no class `{class}` among {known}", Shown(package))]
    FilterClass {
        package: PathBuf,
        /// What should be tumour.
        class: String,
        known: String,
    },
    /// A crop cannot be encoded.
    #[error("a crop {0}")]
    Encode(#[from] crops::EncodeError),
    /// A file or folder cannot be made, moved or removed.
    #[error("{}: {source}", Shown(path))]
    Io {
        /// Path of the file or folder.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// A file cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A file cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// Another process is at work in the folder.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// A table cannot be read.
    #[error(transparent)]
    Table(#[from] TableError),
    /// A corpus cannot be read or written.
    #[error(transparent)]
    Corpus(#[from] CorpusError),
    /// The slide cannot be opened or read.
    #[error(transparent)]
    Slide(#[from] SlideError),
    /// The detector does not open.
    #[error(transparent)]
    Detector(#[from] DetectorError),
    /// Detection ended.
    #[error(transparent)]
    Detect(#[from] DetectError),
    /// The tumour filter does not open.
    #[error(transparent)]
    Package(#[from] PackageError),
    /// No engine runs the tumour filter.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The tumour filter stopped.
    #[error(transparent)]
    Port(#[from] PortError),
    /// The manifest's notes cannot be written as JSON.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

/// Why one slide has no part in the corpus.
pub type SlideFailure = Failure<ConstructError>;

impl ConstructError {
    pub(super) fn io(path: &Path, source: std::io::Error) -> Self {
        Self::Io { path: path.to_owned(), source }
    }
}

impl Remedied for ConstructError {
    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Corpus(e) => e.remedy(),
            Self::Slide(e) => e.remedy(),
            Self::Detect(e) => e.remedy(),
            Self::Detector(e) => e.remedy(),
            Self::Engine(e) => e.remedy(),
            Self::NoCohort { .. } => Some(Remedy::Cohorts),
            Self::FilterClass { .. } => Some(Remedy::TumourClass),
            Self::UnknownCohort { .. } => Some(Remedy::AnyCohort),
            Self::FilterMpp { .. } => Some(Remedy::FilterResolution),
            _ => None,
        }
    }
}
