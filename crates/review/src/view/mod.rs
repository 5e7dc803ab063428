//! Slides, what was found on them and what reviewers decided, as a page on this machine: `docs/view.md`.

mod content;
mod dataset;
pub mod decisions;
mod dicom;
mod drawn;
mod judged;
mod keep;
mod logs;
mod open;
mod places;
mod qupath;
mod recount;
mod refusal;
mod review;
mod reviews;
mod searched;
mod server;
mod settle;
mod signature;
mod tiles;
mod tissue;

pub use dataset::{DatasetError, REVIEWS, ReviewedRegions, dataset};
pub use dicom::{DicomError, Written, WrittenSlide, write_dicom};
pub use judged::{JudgedCandidate, JudgedError, JudgedRun, JudgedSlide, judged_slides};
pub use open::{Item, OpenError, Opened, open, opened, run_folders};
pub(crate) use open::{is_counted, open_run, patient};
pub use qupath::{ObjectError, Project, QupathError, write_project};
pub use recount::{
    Counted, Grading, Recount, RecountError, RecountRow, figures_after_review, recount,
};
pub use review::{
    Entry, LogLine, ReviewError, SlideKey, SlideVerdicts, Verdict, VerdictLog, Verdicts, agreement,
};
pub use searched::{Outside, SearchedArea, SearchedError};
pub use server::Viewer;
pub use settle::{Disagreement, Settled, TOGETHER, settled};
pub use tiles::{TILE, TileAddress, TileError, Tiles, max_level};
