//! Mitotic-figure analysis of H&E slides as a library: drawn slides, runs, exports, reports.
//!
//! What is built on it has crates of its own: `evaluation`, `review`, `construct`, `slurm`, `training`.
//!
//! A model package is opened once and run on slide after slide:
//!
//! ```
//! use mithras::demo::{self, Container, Layout, Spec};
//! use mithras::{Builder, EngineChoice};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // A drawn slide of 800 x 800 px with four figures; any slide will do.
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("drawn.tiff");
//! let layout = Layout::new(Spec::new(800, 800, 7, 4)?)?;
//! demo::write(&layout, &path, Container::Auto, &mut mithras::progress::Silent)?;
//!
//! // `Detector::bundled()` takes the first engine of a fixed order that runs; two are embedded.
//! let mut detector = Builder::default().engine(EngineChoice::Rten).bundled()?;
//! let slide = detector.slide(&path)?;
//! let found = detector.run(&slide)?;
//!
//! for figure in found.figures() {
//!     println!("{} {} px, s_seg {}, s_cls {:?}", figure.x_px, figure.y_px, figure.s_seg, figure.s_cls);
//! }
//! let hotspot = found.hotspot().ok_or("the drawn figures are found")?;
//! let density = found.density_per_20_mm2().ok_or("the slide has tissue")?;
//! println!("{} figures in the densest 2 mm2, {density:.1} per 20 mm2", hotspot.count);
//! assert!(found.analysed_mm2() > 0.0 && found.unread_mm2() == 0.0);
//! println!("{}", serde_json::to_string(&found)?);
//! # Ok(())
//! # }
//! ```
//!
//! | module | what |
//! |---|---|
//! | [`detector`] | a package at work on slides |
//! | [`record`] | what one slide gave |
//! | [`regions`] | detection within regions that people drew |
//! | [`demo`] | drawn slides with known figures |
//! | [`run`] | a whole run: check, slides, tables |
//! | [`input`], [`batch`] | slide files; work on many of them that can be killed and taken up again, as detection |
//! | [`embed`] | features of crops, images and many slides |
//! | [`export`] | files per slide, one table [`export::EXPORTS`] |
//! | [`subtypes`] | subtypes of accepted figures |
//! | [`progress`] | progress of a piece of work |
//! | [`report`] | `counts.csv`, `run.json`, `summary.html`, gathered from slides' folders |

#![forbid(unsafe_code)]

pub mod batch;
pub mod detector;
pub mod doctor;
pub mod embed;
pub mod export;
pub mod input;
pub mod record;
pub mod regions;
pub mod report;
pub mod run;
pub mod subtypes;

pub use base::file;
pub use base::progress;
pub use detector::{Builder, Detector, DetectorError, RunError, Stages, Thresholds};
pub use draw as demo;
pub use infer::{EngineChoice, EngineOptions, ModelPackage, Precision, Provider};
pub use pages::server as web;
pub use record::SlideRecord;
pub use remote::without_query;

/// Program and version, as files name what wrote them.
#[must_use]
pub fn program() -> String {
    concat!("mithras ", env!("CARGO_PKG_VERSION")).to_owned()
}
