//! Refusals of the start page.

use base::remedy::{Remedied, Remedy};
use base::text::Shown;
use infer::PackageError;
use mithras::batch::InputError;
use mithras::regions::RegionError;
use pages::server::Answer;
use slide::SlideError;
use std::path::PathBuf;

/// Why a request of the page was refused, or the page itself.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// A slide cannot be read.
    #[error(transparent)]
    Slide(#[from] SlideError),
    /// A slide's picture cannot be written as JPEG.
    #[error("{}: its picture cannot be encoded", Shown(path))]
    Picture {
        /// Path of the slide.
        path: PathBuf,
        /// Error of the encoder.
        source: jpeg_encoder::EncodingError,
    },
    /// A folder cannot be listed.
    #[error("{}: cannot be listed: {reason}", Shown(path))]
    List {
        /// Folder that cannot be listed.
        path: PathBuf,
        /// Why it cannot be listed.
        reason: ListError,
    },
    /// The results of a run cannot be read.
    #[error(transparent)]
    Results(#[from] base::json::JsonError),
    /// A package cannot be used.
    #[error(transparent)]
    Package(#[from] PackageError),
    /// No package has a segmenter, without which nothing is found.
    #[error("no package for detection")]
    NoPackage,
    /// What was chosen holds no slides.
    #[error(transparent)]
    Input(#[from] InputError),
    /// Regions that do not fit the slides.
    #[error(transparent)]
    Regions(#[from] RegionError),
    /// Not a resolution.
    #[error(transparent)]
    Mpp(#[from] mitosis::MppError),
    /// A run of nothing.
    #[error("no slide is chosen")]
    NoSlides,
    /// A number that no slide has.
    #[error("no chosen slide has the number {0}")]
    NoSlide(usize),
    /// A folder for results without its whole path: it would depend on where the program was started.
    #[error("{}: the folder for the results needs its whole path", Shown(.0))]
    PartialPath(PathBuf),
    /// One run at a time.
    #[error("a run is at work; cancel it first, or wait for its end")]
    Busy,
    /// The run cannot be counted with a review.
    #[error(transparent)]
    Recount(#[from] review::view::RecountError),
    /// The system gives no thread.
    #[error("no thread for the run")]
    Thread(#[source] std::io::Error),
}

impl Remedied for PageError {
    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Slide(e) => e.remedy(),
            Self::Input(e) => e.remedy(),
            Self::Regions(e) => e.remedy(),
            Self::Recount(e) => e.remedy(),
            Self::NoPackage => Some(Remedy::Package),
            _ => None,
        }
    }
}

/// Why a folder cannot be listed.
#[derive(Debug, thiserror::Error)]
pub enum ListError {
    /// A part of a path.
    #[error("a whole path is needed, from the drive or from /")]
    PartialPath,
    /// A file.
    #[error("is a file, not a folder")]
    File,
    /// Nothing.
    #[error("no such folder")]
    Missing,
    /// A path that a page cannot name.
    #[error("its name is not Unicode text")]
    NotText,
    /// The system refuses.
    #[error("{0}")]
    Io(#[source] std::io::Error),
}

/// An error with its causes, for a page.
pub fn full_message(error: &dyn std::error::Error) -> String {
    let chain = std::iter::successors(Some(error), |e| e.source());
    base::text::plain_lines(&base::text::joined_once(chain))
}

/// The page shows the reason.
impl From<PageError> for Answer {
    fn from(error: PageError) -> Self {
        Self::refusal(400, &full_message(&error))
    }
}
