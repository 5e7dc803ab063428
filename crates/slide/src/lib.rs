//! Whole-slide reading: pyramids, physical resolution, tissue mask, window plan.
//!
//! ```no_run
//! use mitosis::{Mpp, Rect};
//! let slide = slide::Slide::open("case.svs")?;
//! println!("{:?} px, {}", slide.dimensions(), slide.resolution()?.mean());
//! let window = slide.read_at(Mpp::PAPER, Rect::new(400, 800, 512, 512))?;
//! # Ok::<(), slide::SlideError>(())
//! ```
//!
//! Files are known by their content, never by their suffix. A path may be an address, `https://` or
//! `s3://`, where the feature `remote` is on. TIFF-family slides, DICOM and flat images are
//! read here; everything else goes to an OpenSlide 4 library found at run time ([`FORMATS`]).

mod agree;
mod blank;
mod cache;
mod code_words;
pub mod deidentify;
mod error;
mod exif;
mod file;
mod format;
mod former;
mod icc;
pub mod info;
mod inventory;
mod jp2;
mod jpeg;
mod limits;
mod maker;
mod memory;
mod options;
pub mod otsu;
pub mod outline;
mod picture;
mod pieces;
mod plan;
mod png;
mod positioned;
pub mod privacy;
mod reduced;
mod resample;
mod resolution;
mod scratch;
mod several;
mod slide;
mod source;
mod tiff;
mod tissue;
mod whole;

pub use error::SlideError;
pub use format::{
    DicomPart, FORMATS, Format, NoOpenSlide, dicom_part, further_files, openslide_version,
    read_pages,
};
pub use former::outdated;
pub use inventory::{Finding, Inventory};
pub use limits::{LimitAbout, LimitError, Limits};
pub use memory::{Kept, Memory};
pub use mitosis::Rect;
pub use options::{MppRule, OpenOptions};
pub use outline::{Outlines, Polygon};
pub use picture::{PictureError, picture_fault, read_picture};
pub use plan::{PlannedWindow, WindowPlan};
pub use png::{PngResolution, png_resolutions};
pub use resolution::{ANISOTROPY, CONTRADICTION, MAX_DENSITY_MPP};
pub use slide::{MAX_READ_BYTES, Slide};
pub use source::{AssociatedImage, BACKGROUND, Disagreement, Level, SuspectTile, TileAt};
pub use tissue::{TissueMask, TissueOptions, TissueRule};
